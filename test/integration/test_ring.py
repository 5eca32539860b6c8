"""The flight recorder: what it holds, how it is asked for it, and that it gives it when the program dies."""

import os
import pathlib
import re
import resource
import subprocess
import time

import pytest

from lib import HOSTILE, PROGRAMS, ROOT, SINGLE, gotools, proc

CONTROL = PROGRAMS / "control"
CRASHES = HOSTILE / "crashes"
COMMAND = ROOT / "build/gotrace"

DEATHS = [
    "segv",
    "bus",
    "fpe",
    "ill",
    "abort",
    "thread",
    "corrupt",
    "jump",
    "altstack",
    "term",
    "int",
    "handler",
    "raise",
    "segv handled",
    "alone segv",
    "alone corrupt",
    "alone term",
]


class Running:
    """A traced program that goes on until its standard input ends."""

    def __init__(self, tmp_path, what="load", **env):
        self.trace = tmp_path / "t.out"
        env = proc.traced_env(self.trace, {"GOTRACE_QUIET": "1"} | env)
        self.child = proc.spawn([CONTROL, what], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.child.pid
        self.tids = [int(tid) for tid in self.child.stdout.readline().split()]

    def poke(self):
        self.child.stdin.write("x")
        self.child.stdin.flush()

    def done(self):
        """How much its threads did so far; of "load" only."""
        self.poke()
        return int(self.child.stdout.readline())

    def snapshot(self, *path):
        said = proc.run([COMMAND, "snapshot", self.pid, *path]).ok().stdout
        return said.removeprefix("gotrace: written to ").strip()

    def resident(self):
        return int(re.search(r"VmRSS:\s*(\d+)", open(f"/proc/{self.pid}/status").read())[1]) << 10

    def end(self):
        self.child.communicate(timeout=20)
        assert self.child.returncode == 0
        proc.kill_group(self.child)


def read_by_all(format, traces):
    for go in gotools.readers_of(format).values():
        result = proc.run([gotools.read_all(go), *traces], timeout=120).ok()
        assert not result.stdout, result.stdout[:2000]


def span(trace):
    events = [e for e in gotools.parse(trace) if e.kind != "Sync"]
    return (max(e.time for e in events) - min(e.time for e in events)) / 1e9


@pytest.mark.chance
@pytest.mark.limit(180)
@pytest.mark.parametrize("format", gotools.some())
@pytest.mark.long
def test_snapshots_under_load(tmp_path, format):
    """Recording goes on; each has a name of its own and is a trace, though it begins anywhere."""
    program = Running(tmp_path, GOTRACE_RING="1MiB", GOTRACE_FORMAT=format)
    traces = []
    for _ in range(12):
        traces.append(program.snapshot())
        time.sleep(0.05)
    program.end()
    assert traces == [str(program.trace)] + [f"{program.trace}.{n}" for n in range(2, 13)]
    read_by_all(format, [*traces, f"{program.trace}.13"])  # the last one at exit


@pytest.mark.measured
def test_what_is_older_is_forgotten(tmp_path):
    """What is left are whole generations, of a second, and the one under way, with all that happened since their begin."""
    program, poked = Running(tmp_path, "idle", GOTRACE_RING="1s,32M"), []
    for _ in range(35):
        time.sleep(0.1)
        program.poke()
        poked.append(time.monotonic())
    trace = program.snapshot()
    end = time.monotonic()
    program.end()
    assert 1 <= span(trace) < 3
    reads = [e for e in gotools.parse(trace) if e.is_go("Running", "Syscall")]
    recent = sum(end - at < span(trace) for at in poked)  # or more: it was written some time before that
    assert 0 < recent - 1 <= len(reads) < 30, (poked, end, len(reads))


@pytest.mark.measured
@pytest.mark.limit(300)
@pytest.mark.long
def test_memory(tmp_path):
    """The recorder stays within its bound, whatever the program does.

    What waits for the library's thread, which may have no CPU for a while, has a bound of its own.
    """
    program = Running(tmp_path, GOTRACE_RING="4M", GOTRACE_MAX_MEM="1M")

    def resident_after(times):
        proc.until(lambda: program.done() >= times, 200)
        return program.resident()

    first = resident_after(600_000)  # twice what fills it
    sizes = [resident_after(times) - first for times in (800_000, 1_000_000, 1_200_000)]
    assert os.stat(program.snapshot()).st_size > 2 << 20  # it is full
    program.end()
    assert max(sizes) < 2 << 20, sizes


@pytest.mark.measured
def test_memory_beside_what_it_holds(tmp_path):
    """Some 3 MiB, says libgotrace(7)."""
    recorded = Running(tmp_path, "idle", GOTRACE_RING="64M")
    bare = Running(tmp_path, "idle", LD_PRELOAD="")
    more = recorded.resident() - bare.resident()
    recorded.end()
    bare.end()
    assert more < 5 << 20, more


@pytest.mark.measured
@pytest.mark.long
def test_idle_program_is_hardly_woken(tmp_path):
    """Once a second by the library's thread, says libgotrace(7), for 0.2 ms of CPU."""
    program = Running(tmp_path, "idle", GOTRACE_RING="30s")
    (ours,) = set(map(int, os.listdir(f"/proc/{program.pid}/task"))) - {program.pid, *program.tids}
    status, times = pathlib.Path(f"/proc/{ours}/status"), pathlib.Path(f"/proc/{ours}/schedstat")

    def so_far():
        return int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status.read_text(), re.M)[1]), int(times.read_text().split()[0])

    time.sleep(2)
    before = so_far()
    time.sleep(3)
    woken, ns = (after - then for then, after in zip(before, so_far()))
    program.end()
    assert woken <= 5 and ns < 6e6, (woken, ns)


@pytest.mark.measured
def test_idle_program(tmp_path):
    """Whose threads have done nothing since before the recorder's memory begins."""
    program = Running(tmp_path, "idle", GOTRACE_RING="1s")
    time.sleep(3.5)
    trace = program.snapshot()
    program.end()
    gotools.check_all(trace)
    events = gotools.parse(trace)
    began = {e.m: e for e in events if e.goid is not None and e.old == "Undetermined"}
    assert {tid: began[tid].new for tid in program.tids} == dict.fromkeys(program.tids, "Syscall")
    assert {began[tid].transition_stack[0].func for tid in program.tids} == {"read"}
    assert span(trace) < 2.5


@pytest.mark.long
def test_names_given_before(tmp_path):
    """A thread that named itself before the recorder's memory begins has its name when it runs."""
    program = Running(tmp_path, GOTRACE_RING="1M")
    proc.until(lambda: program.done() > 150_000, seconds=100)  # twice what fills it: test_memory
    trace = program.snapshot()
    program.end()
    assert "follower" in {e.fields["Label"] for e in gotools.parse(trace) if e.kind == "Label"}


def test_snapshot_to_a_path(tmp_path):
    program = Running(tmp_path, "idle", GOTRACE_RING="1s")
    assert program.snapshot(tmp_path / "mine") == str(tmp_path / "mine")
    again = proc.run([COMMAND, "snapshot", program.pid, tmp_path / "mine"])
    assert again.returncode == 1 and "mine: File exists" in again.stderr
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    linked = proc.run([COMMAND, "snapshot", program.pid, "link"], cwd=tmp_path)
    assert linked.returncode == 1 and "File exists" in linked.stderr
    gotools.check_all(tmp_path / "mine")
    program.end()
    gotools.check_all(program.trace)


def test_start_by_command(tmp_path):
    program = Running(tmp_path, "idle", GOTRACE_RING="1s", GOTRACE_START="manual")
    for name in "first", "second":
        assert proc.run([COMMAND, "start", program.pid]).ok().stdout == "gotrace: recording to memory\n"
        assert program.snapshot(tmp_path / name) == str(tmp_path / name)
        proc.run([COMMAND, "stop", program.pid]).ok()
        gotools.check_all(tmp_path / name)
    program.end()


def test_path_without_recorder(tmp_path):
    program = Running(tmp_path, "idle")
    result = proc.run([COMMAND, "snapshot", program.pid, tmp_path / "mine"])
    assert result.returncode == 1 and "is no flight recorder" in result.stderr
    program.end()


@pytest.mark.parametrize("limit", ["GOTRACE_MAX_SIZE", "RLIMIT_FSIZE"])
@pytest.mark.parametrize("format", ["go1.21", "go1.23"])
@pytest.mark.alone
@pytest.mark.long
def test_file_smaller_than_the_ring(tmp_path, format, limit):
    """It holds the newest."""
    size = 300 << 10
    program = SINGLE / "ring/recorder"
    env = proc.EVERY_YIELD | {"GOTRACE_RING": "8M", "GOTRACE_FORMAT": format}
    argv = [program]
    if limit == "RLIMIT_FSIZE":
        env["GOTRACE_RING"] = "1M"  # its generations are a sixteenth of that
        argv = ["prlimit", f"--fsize={size}", program]
    else:
        env[limit] = size
    result = proc.traced(argv, tmp_path / "t.out", env=env).ok()
    gotools.check_all(result.trace)
    assert size // 3 < result.trace.stat().st_size <= size
    said = [int(e.fields["Message"]) for e in gotools.parse(result.trace) if e.kind == "Log"]
    assert said == list(range(said[0], 40000)) and said[0] > 0


@pytest.mark.measured
@pytest.mark.limit(300)
@pytest.mark.long
def test_many_samples(tmp_path):
    """More of them in a second than the recorder's memory has room for."""
    env = {"GOTRACE_RING": "1M", "GOTRACE_CPU_HZ": "10000"}
    result = proc.traced([PROGRAMS / "cpu", 3], tmp_path / "t.out", env=env, timeout=200).ok()
    samples = [e for e in gotools.parse(result.trace) if e.kind == "StackSample"]
    assert len(samples) > 2000, result.stderr


def test_child_that_shares_our_memory_dies(tmp_path):
    """Of a signal, between vfork and exec; later its parent does, and leaves its trace."""
    env = {"GOTRACE_RING": "1s"}
    result = proc.traced([SINGLE / "ring/vforks"], tmp_path / "t.out", env=env)
    assert result.returncode == -11, result
    naps = [e for e in gotools.parse(result.trace) if e.is_go("Running", "Waiting") and e.stack[0].func == "usleep"]
    assert len(naps) == 2


def test_start_and_stop(tmp_path):
    program = Running(tmp_path, GOTRACE_RING="8M", GOTRACE_START="manual")
    refused = proc.run([COMMAND, "snapshot", program.pid])
    assert (refused.returncode, refused.stderr) == (1, f"gotrace: process {program.pid} is not recording\n")
    for _ in range(3):
        proc.run([COMMAND, "start", program.pid]).ok()
        enough = program.done() + 10_000
        proc.until(lambda: program.done() > enough)
        proc.run([COMMAND, "stop", program.pid]).ok()
    program.end()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t.out", "t.out.2", "t.out.3"]
    read_by_all("go1.23", tmp_path.iterdir())


@pytest.mark.measured
def test_exit(traced):
    """A program that ends leaves its last moments."""
    result = traced([PROGRAMS / "truth"], env={"GOTRACE_RING": "30s"}).ok()
    assert "nothing lost" in result.stderr
    leaves = gotools.pprof(result.trace, "sync").leaf_ns()
    for hook, _, _, ns, arranged in map(str.split, result.stdout.splitlines()):
        if "sleep" not in hook:
            assert leaves[hook] >= max(1, 0.95 * int(arranged)), f"{hook}: {leaves}"


@pytest.mark.limit(200)
@pytest.mark.parametrize("yields, threads", [(1000, ["a thread"]), pytest.param(1000000, [], marks=pytest.mark.long), (10, [])])
def test_exec(tmp_path, yields, threads):
    """A program that becomes another one leaves its last moments, unless it has hardly any."""
    program = SINGLE / "ring/executes"
    env = {"GOTRACE_RING": "1M", "GOTRACE_SYSCALL_MIN": "0"}
    result = proc.traced([program, yields, *threads], tmp_path / "t.out", env=env).ok()
    assert result.stdout == "another\n"
    gotools.check_all(result.trace)
    seen = [e for e in gotools.parse(result.trace) if e.stack and e.stack[0].func == "sched_yield"]
    if yields < 1000:  # the trace is of the other one, as if there had been nothing before
        assert not seen and f"{result.trace}: " in result.stderr
    elif threads:
        assert len(seen) == yields
    else:  # some are forgotten
        assert 1000 < len(seen) < yields


@pytest.mark.chance
@pytest.mark.limit(120)
@pytest.mark.parametrize("way", DEATHS)
def test_death(tmp_path, way):
    """The file is whole and goes on to the end; status and core are those of the bare program."""
    argv = [CRASHES, *way.split()]
    limits = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (limits[1], limits[1]))
    try:
        bare, bare_status = status_of(argv, tmp_path, {})
        trace = tmp_path / "t.out"
        traced, status = status_of(argv, tmp_path, proc.traced_env(trace, {"GOTRACE_RING": "30s"}))
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, limits)
    assert bare_status not in (0, 2 << 8)
    assert (status, traced) == (bare_status, bare)
    gotools.check_all(trace)
    events = gotools.parse(trace)
    main = [e.stack[0].func for e in events if e.stack and e.is_go("Running", "Waiting") and e.goid == 1]
    assert "usleep" in main
    lines = {frame.line for e in events for frame in e.stack or [] if frame.func == "main" and "crashes.c" in frame.file}
    assert lines - {0}, "names of the program were looked up, but not its lines"
    ends = [e for e in events if e.is_go("Waiting", "Runnable") and e.goid == 1]
    assert ends, "the main thread's sleep, which was over just before, has no end"


def status_of(argv, cwd, env):
    """What it prints and its wait status, with the bit for a core."""
    child = proc.spawn(argv, env=env, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    out = child.stdout.read()
    status = os.waitpid(child.pid, 0)[1]
    child.returncode = os.waitstatus_to_exitcode(status)
    for core in cwd.glob("core*"):
        core.unlink()
    return out, status


def test_sigkill_leaves_nothing(tmp_path):
    trace = tmp_path / "t.out"
    result = proc.traced([CRASHES, "kill"], trace, env={"GOTRACE_RING": "30s"})
    assert result.returncode == -9 and not trace.exists()


@pytest.mark.parametrize("value", ["0", "1s,", "64", "100K", "0s", "10s,1T", "x"])
def test_bad_values(traced, value):
    result = traced([PROGRAMS / "threads", "2"], env={"GOTRACE_RING": value}).ok()
    complaint = result.stderr.splitlines()[0]
    assert complaint.startswith(f"gotrace: GOTRACE_RING={value} is not a time or a size with a unit: 30s, 64M or 30s,64M; "), result.stderr
    assert complaint.endswith("; using none")
    gotools.check(result.trace)
