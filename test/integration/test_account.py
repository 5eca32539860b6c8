"""What threads used of CPUs (encoder/thread/account.h), against what the kernel has counted (test/prog/account.c)."""

import collections
import contextlib
import errno
import itertools
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

from lib import PROGRAMS, ROOT, SINGLE, SOURCES, cgroups, gotools, proc
from lib.exported import export, firefox
from lib.reports import ns_of, report, shares

ACCOUNT = PROGRAMS / "account"
GOTRACE = ROOT / "build/gotrace"
SCHEDSTAT = pathlib.Path("/proc/self/schedstat").exists()
MIXED = ["spin=3", "pinned=2", "sleep=1", "hidden=1", "fault=1"]
POINTS = 2  # of a hundred: how far a share may be from the truth
formats = pytest.mark.parametrize("format", gotools.some("go1.5"))


def top(trace):
    """thread → (ns on CPU, ns in run queues, ns unseen, times preempted, faults or None), by `gotrace top --kind=cpu`"""
    names = "cpu_ns", "runnable_ns", "unseen_ns", "involuntary", "faults"
    return {row["thread"]["tid"]: tuple(row[name] for name in names) for row in report(trace, "top", "--kind=cpu", "-n", "100000")["by_thread"]}


Used = collections.namedtuple("Used", "tid kind cpu queue voluntary involuntary faults waited lived")


def told(lines):
    words = [line.split() for line in lines]
    return [Used(int(w[0]), w[1], *map(int, w[2:])) for w in words]


class Running:
    """The program, traced, until its standard input ends."""

    def __init__(self, kinds, trace, **env):
        pipe = subprocess.PIPE
        self.trace = trace
        env = proc.traced_env(trace, env)
        self.child = proc.spawn([ACCOUNT, *kinds], env=env, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=trace.parent)
        assert self.child.stdout.readline() == "ready\n", self.child.stderr.read()
        self.pid = self.child.pid

    def used(self):
        """As told() does, from outside and without what takes long."""
        proc.drain_thread(self.pid)
        tasks = pathlib.Path(f"/proc/{self.pid}/task").iterdir()
        numbers = [(int(t.name), (t / "comm").read_text().strip(), *map(int, (t / "schedstat").read_text().split()[:2])) for t in tasks]
        return {n[0]: Used(*n, 0, 0, 0, 0, 0) for n in numbers if n[1] != "gotrace"}

    def end(self):
        out, err = self.child.communicate(timeout=30)
        assert self.child.returncode == 0, err
        proc.kill_group(self.child)
        return told(out.splitlines())


def run(kinds, trace, seconds, **env):
    program = Running(kinds, trace, **env)
    time.sleep(seconds)
    return program.end()


def check(seen, cpu, queue, most=None):
    """What is seen is not less than that, and not more, or not more than `most`: of CPU, of run queues."""
    most_cpu, most_queue = most or (cpu, queue)
    assert 100 * cpu / seen.lived - POINTS <= seen.cpu <= 100 * most_cpu / seen.lived + POINTS, (seen, cpu, most)
    if SCHEDSTAT:  # which leaves out what a thread has been there for that is there now
        most_queue = seen.lived - cpu if seen.name in ("spin", "pinned") else most_queue
        # What stood in a queue before it was looked at, the kernel counts once that is over. In a call the queue is not known.
        least_queue = 100 * min(queue, seen.lived - cpu) / seen.lived - seen.syscall
        assert least_queue - POINTS <= seen.queue <= 100 * most_queue / seen.lived + POINTS, (seen, queue, most)
    assert abs(seen.sum() - 100) <= 0.5, seen


def stolen():
    """ns that the machine has not had its CPUs for: another one ran on them. The kernel counts it neither as a thread's time
    on a CPU nor as its in a run queue."""
    ticks = int(pathlib.Path("/proc/stat").read_text().split(maxsplit=10)[8])
    return ticks * 1e9 / os.sysconf("SC_CLK_TCK")


@pytest.mark.measured
@formats
def test_every_format(tmp_path, format):
    before = stolen()
    used = run(MIXED, tmp_path / "t.out", 1.2, GOTRACE_FORMAT=format)
    gone = stolen() - before
    seen = shares(tmp_path / "t.out")
    for thread in used[1:]:
        mine = seen[thread.tid]
        more = mine.lived - thread.lived  # it went on after it had looked
        check(mine, thread.cpu, thread.queue, (thread.cpu + more, thread.queue + more + gone))
        off = 100 * max(0, thread.waited - thread.queue) / mine.lived
        kind = {"sleep": mine.sleep, "hidden": mine.unseen}.get(thread.kind, 0)
        assert kind >= off - POINTS, (thread, mine)
        assert thread.kind != "fault" or mine.sync + mine.network + mine.sleep + mine.other < POINTS, mine
    for go in gotools.readers_of(format).values():
        gotools.check(tmp_path / "t.out", go=go)


@pytest.mark.measured
@pytest.mark.parametrize("format", ["go1.21", "go1.23"])
def test_cpu_time_for_the_firefox_profiler(tmp_path, format):
    used = run(MIXED, tmp_path / "t.out", 0.5, GOTRACE_FORMAT=format)
    profile, seen = firefox(export(tmp_path / "t.out", "firefox")), shares(tmp_path / "t.out")
    assert profile["meta"]["sampleUnits"]["threadCPUDelta"] == "ns"
    assert profile["meta"]["initialVisibleThreads"] == list(range(len(profile["threads"])))  # those that wait, too
    cpu = {thread["tid"]: sum(thread["samples"]["threadCPUDelta"]) for thread in profile["threads"]}
    for thread in used[1:]:
        lived = seen[thread.tid].lived
        off = lived * POINTS / 100
        assert thread.cpu - off <= cpu[thread.tid] <= thread.cpu + lived - thread.lived + off, thread


@pytest.mark.measured
def test_machine_has_no_more(tmp_path):
    """No column says more than there is."""
    used = run(["spin=4", "brood=2"], tmp_path / "t.out", 1.2)
    report = proc.run([GOTRACE, "top", "--kind=cpu", tmp_path / "t.out"]).ok().stdout
    ns, cpu = re.match(r".*: (\S+), \d+ threads; (\S+) on CPUs", report).groups()
    assert 0.9 * sum(t.cpu for t in used) < ns_of(cpu) <= 1.01 * os.cpu_count() * ns_of(ns), report


@pytest.mark.measured
def test_counts(tmp_path):
    used = {t.kind: t for t in run(["spin=4", "fault=1", "sleep=1"], tmp_path / "t.out", 1.5)}
    seen = top(tmp_path / "t.out")
    for kind in "fault", "sleep":
        cpu, _, _, preempted, faults = seen[used[kind].tid]
        assert faults >= used[kind].faults - 2 and preempted >= used[kind].involuntary - 2
        assert kind != "fault" or faults > 1000
        assert cpu >= used[kind].cpu - 5e6


@pytest.mark.measured
@pytest.mark.long
def test_recordings_in_a_running_program(tmp_path):
    """Each tells what was used in it, and nothing from before."""
    program = Running(MIXED, tmp_path / "%n.out", GOTRACE_START="manual")
    for n in 1, 2:
        time.sleep(0.3)
        looks = [program.used()]
        proc.run([GOTRACE, "start", program.pid]).ok()
        looks.append(program.used())
        time.sleep(1.2)
        looks.append(program.used())
        proc.run([GOTRACE, "stop", program.pid]).ok()
        looks.append(program.used())
        seen = shares(tmp_path / f"{n}.out")
        for tid in set(looks[0]) - {program.pid}:
            cpu, queue = ([getattr(look[tid], what) for look in looks] for what in ("cpu", "queue"))
            check(seen[tid], cpu[2] - cpu[1], queue[2] - queue[1], (cpu[3] - cpu[0], queue[3] - queue[0]))
    program.end()


@pytest.mark.measured
@pytest.mark.parametrize("format", ["go1.21", "go1.23"])
@pytest.mark.long
def test_flight_recorder(tmp_path, format):
    """A file that begins anywhere; and the ring goes on."""
    program = Running(MIXED, tmp_path / "t.out", GOTRACE_RING="2s", GOTRACE_FORMAT=format)
    for n in 1, 2:
        time.sleep(2.2)
        proc.run([GOTRACE, "snapshot", program.pid, tmp_path / f"{n}.out"]).ok()
        seen = {tid: s for tid, s in shares(tmp_path / f"{n}.out").items() if tid != program.pid}
        assert all(abs(s.sum() - 100) <= 0.5 for s in seen.values()), seen
        spinning = [s for s in seen.values() if s.name in ("spin", "pinned") or s.sync + s.sleep + s.unseen < POINTS]
        assert len(spinning) >= 5 and all(s.cpu + s.queue > 100 - 2 * POINTS for s in spinning), seen
        sleeper = max(seen.values(), key=lambda s: s.sleep)
        assert sleeper.cpu + sleeper.queue + sleeper.sleep > 100 - POINTS, sleeper
    program.end()


@pytest.mark.measured
@pytest.mark.long
def test_threads_that_end(tmp_path):
    """The trace has the use of each thread when that ends: together, what the process has."""
    program = SINGLE / "account/ends"
    for format in "go1.5", "go1.21", "go1.23":
        trace = proc.traced([program], tmp_path / "t.out", env={"GOTRACE_FORMAT": format}).ok().trace
        seen, used = shares(trace), top(trace)
        burnt = seen.keys() - {max(seen, key=lambda tid: seen[tid].lived)}
        assert len(burnt) == 400
        # Of one that stood in a queue before it began, the kernel's count is for that time, too: taken in equal measure.
        assert sum(used[tid][0] > 1.9e6 for tid in burnt) > 380, [used[tid] for tid in burnt]
        assert all(abs(seen[tid].sum() - 100) <= 0.5 for tid in burnt)
        # It ran or stood in a run queue; but for a few that had to wait for another one's page fault.
        assert sum(seen[tid].cpu + seen[tid].queue > 95 for tid in burnt) > 360


@pytest.mark.measured
def test_one_thread(tmp_path):
    """Without a thread of ours the program's own looks at itself."""
    program = SINGLE / "account/alone"
    result = proc.traced([program], tmp_path / "t.out").ok()
    cpu, queue, _ = map(int, result.stdout.split())
    (seen,) = shares(result.trace).values()
    assert abs(seen.cpu - 100 * cpu / seen.lived) < 5 and seen.sleep > 100 * 0.5e9 / seen.lived - 5, seen
    assert SCHEDSTAT is False or abs(seen.queue - 100 * queue / seen.lived) < 5, seen


def of_thread(trace, name):
    (seen,) = [s for s in shares(trace).values() if s.name == name]
    return seen


@pytest.mark.measured
def test_thread_that_is_idle_later(traced):
    """What it has used is a part of its whole life."""
    seen = of_thread(traced([SINGLE / "account/burst"]).ok().trace, "burst")
    assert 8 <= seen.cpu + seen.queue <= 14 and seen.sleep > 85, seen


@pytest.mark.measured
def test_calls_that_do_not_sleep_hide_nothing(traced, tmp_path):
    """A long read of what is there is in the trace like a wait; the thread was off the CPU elsewhere."""
    seen = of_thread(traced([proc.compile(SOURCES / "account/mixed.c", tmp_path / "mixed")]).ok().trace, "mixed")
    assert seen.unseen > 60 and seen.queue < 30, seen


@pytest.mark.measured
@pytest.mark.parametrize("threads", [0, 1])
@pytest.mark.parametrize("error", [0, errno.EPERM, errno.EINVAL])
def test_filtered_clocks(traced, error, threads):
    """A filter that allows no clock of another thread is met by no call of ours, and nobody is taken for idle."""
    result = traced([SINGLE / "account/filtered", error, threads])
    if result.returncode == 77:
        pytest.skip("no filters here")
    result.ok()
    for seen in shares(result.trace).values():
        assert seen.unseen < 10 and (seen.cpu + seen.queue > 30 or seen.sync > 30), seen


@pytest.mark.measured
def test_end_of_a_recording(traced):
    """Threads that end while everybody is looked at for the last time."""
    result = traced([SINGLE / "account/forty"]).ok()
    used = sum(cpu for cpu, *_ in top(result.trace).values())
    assert abs(used - int(result.stdout)) < 0.05 * int(result.stdout), (used, result.stdout)


@pytest.mark.measured
def test_end_by_the_bare_call(traced):
    """Nobody knows what such a thread has used in the end: the trace does not contain that."""
    seen = of_thread(traced([SINGLE / "account/bare_end"]).ok().trace, "ends")
    assert seen.cpu + seen.queue > 95 and seen.unseen < 5, seen


@pytest.mark.parametrize("format", ["go1.19", "go1.23"])
def test_texts_of_the_program(traced, format):
    """One that begins like an account is none."""
    trace = traced([SINGLE / "account/says"], env={"GOTRACE_FORMAT": format}).ok().trace
    for go in gotools.readers_of(format).values():
        gotools.check(trace, go=go)
    assert "gotrace-account was" in trace.read_bytes().decode(errors="replace")
    assert all(abs(s.sum() - 100) <= 0.5 for s in shares(trace).values())


@pytest.mark.measured
def test_openmp(tmp_path):
    """Threads of a pool that sleeps in a futex of its own did not run."""
    program = proc.compile(SOURCES / "account/openmp.c", tmp_path / "prog", "-fopenmp")
    trace = proc.traced([program], tmp_path / "t.out", env={"OMP_WAIT_POLICY": "passive"}).ok().trace
    workers = [s for tid, s in shares(trace).items() if s.sleep < 50]
    assert len(workers) == 3
    assert all(s.sync > 50 and s.cpu < 5 and s.sync + s.queue + s.unseen > 95 for s in workers), workers


@pytest.mark.measured
def test_forked_child(tmp_path):
    """Its account begins with it."""
    result = proc.traced(["/usr/bin/python3", SOURCES / "account/forks.py"], tmp_path / "%p.out").ok()
    used = {f"{pid}.out": int(ns) for pid, ns in map(str.split, result.stdout.splitlines())}
    assert len(used) == 2 and set(used) == {trace.name for trace in tmp_path.glob("*.out")}
    for trace, ns in used.items():
        seen = top(tmp_path / trace)
        assert any(ns <= cpu < ns + 0.1e9 for cpu, *_ in seen.values()), (trace, ns, seen)


@pytest.mark.measured
def test_without_schedstat(tmp_path):
    """Kernels and sandboxes without it: clocks tell the CPU time, events what they know of the queue."""
    script = "mount -t tmpfs none /proc 2>/dev/null || exit 77; exec \"$@\""
    env = [f"{name}={value}" for name, value in proc.traced_env(tmp_path / "t.out").items()]
    argv = ["unshare", "-r", "-m", "sh", "-c", script, "sh", "env", *env, ACCOUNT, "spin=1", "sleep=1"]
    child = proc.spawn(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    first = child.stdout.readline()
    if first != "ready\n":
        pytest.skip("no namespaces here: " + child.stderr.read())
    time.sleep(1)
    used = {thread.kind: thread for thread in told(child.communicate(timeout=20)[0].splitlines())}
    seen = {s.name: s for s in shares(tmp_path / "t.out").values() if s.name in ("spin", "sleep")}
    assert set(seen) == {"spin", "sleep"} and all(abs(s.sum() - 100) <= 0.5 for s in seen.values())
    for kind, s in seen.items():
        most = used[kind].cpu + s.lived - used[kind].lived  # it went on after it had looked
        assert 100 * used[kind].cpu / s.lived - POINTS <= s.cpu <= 100 * most / s.lived + POINTS, (used[kind], s)
    asleep = seen["sleep"]
    assert asleep.sleep + asleep.queue >= 100 * used["sleep"].waited / asleep.lived - POINTS, (used, asleep)


@pytest.mark.measured
@pytest.mark.needs("strace")
@pytest.mark.long
def test_bounded_work(tmp_path):
    """Many threads take turns. 120 are looked at in a second, but for the two ends, where all are."""
    threads, seconds, log = 400, 3, tmp_path / "strace"
    argv = ["strace", "-f", "--seccomp-bpf", "-qq", "-e", "trace=openat", "-o", log, ACCOUNT, f"sleep={threads}"]
    env = [f"-E{name}={value}" for name, value in proc.traced_env(tmp_path / "t.out").items()]
    child = proc.spawn([*argv[:1], *env, *argv[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    assert child.stdout.readline() == "ready\n"
    begun = time.monotonic()
    time.sleep(seconds)
    child.communicate(timeout=60)
    seconds = time.monotonic() - begun
    read = re.findall(r'"/proc/self/task/(\d+)/schedstat"', log.read_text())
    opened = len([tid for tid, _ in itertools.groupby(read)]) - threads  # its own; what took long is read again, at once
    assert threads - 10 <= opened <= 2 * threads + 130 * (seconds + 3), opened
    # strace holds them up, out of any call's sight, the more the busier the machine is
    assert len([s for s in shares(tmp_path / "t.out").values() if s.sleep + s.unseen > 50]) >= threads - 5


@pytest.mark.measured
@pytest.mark.long
def test_idle_program_writes_nothing_more(tmp_path):
    short, long = (Running(["sleep=0"], tmp_path / f"{name}.out", GOTRACE_FORMAT="go1.21") for name in ("short", "long"))
    for program, seconds in (short, 1.5), (long, 3):
        time.sleep(seconds)
        program.end()
    sizes = [program.trace.stat().st_size for program in (short, long)]
    assert sizes[1] <= sizes[0] + 4096, sizes


# --- What kept the process as a whole from running


def line(trace, name):
    """What `gotrace info` says there; or None."""
    found = re.search(rf"^  {name} +(.*)", proc.run([GOTRACE, "info", trace]).ok().stdout, re.M)
    return found and found[1]


@pytest.fixture
def quota():
    """A cgroup that has a tenth of a CPU."""
    with cgroups.group("cpu") as group:
        (group / "cpu.cfs_period_us").write_text("50000")
        (group / "cpu.cfs_quota_us").write_text("5000")
        yield group


@pytest.mark.measured
@pytest.mark.parametrize("below", ["", "below"])
def test_throttled_by_a_quota(quota, tmp_path, below):
    """The CPUs may be idle meanwhile. The quota may be that of a cgroup above."""
    inner = quota / below
    inner.mkdir(exist_ok=True)
    try:
        command = f'echo $$ >{inner}/cgroup.procs; sleep 2 | "$@"'
        proc.traced(["sh", "-c", command, "sh", ACCOUNT, "spin=2"], tmp_path / "%e.out", timeout=60).ok()
    finally:
        if below:
            inner.rmdir()
    (trace,) = tmp_path.glob("account.out*")
    counted = dict(row.split() for row in (quota / "cpu.stat").read_text().splitlines())
    times, ns = re.match(r"(\d+) times by the CPU quota of its cgroup, (\S+) ", line(trace, "throttled")).groups()
    assert 0.5 * int(counted["nr_throttled"]) < int(times) <= int(counted["nr_throttled"]), (times, counted)
    assert 0.5 * int(counted["throttled_time"]) < ns_of(ns) <= 1.01 * int(counted["throttled_time"]), (ns, counted)
    found = [f["finding"] for f in report(trace, "why")["findings"]]
    assert "throttled" in found and not {"oversubscription", "preempted", "slow_wakeup"} & set(found), found


@contextlib.contextmanager
def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def await_our_thread(program):
    """Until the tracer's thread has written the first generation, and sleeps."""
    stats = lambda: [(t / "stat").read_text() for t in pathlib.Path(f"/proc/{program.pid}/task").iterdir()]
    proc.until(lambda: program.trace.exists() and any("(gotrace) S" in stat for stat in stats()))


@pytest.mark.measured
@pytest.mark.parametrize("halted", [stopped, cgroups.frozen])
def test_stopped(tmp_path, halted):
    """A stopped process is neither computing nor short of CPUs. Up to a second, our thread may have slept anyway."""
    program = Running(["spin=1", "sleep=1"], tmp_path / "t.out")
    await_our_thread(program)
    begin = time.monotonic()
    with halted(program.pid):
        time.sleep(3)
    seconds = time.monotonic() - begin
    program.end()
    told = ns_of(line(tmp_path / "t.out", "stopped").split(",")[0]) / 1e9
    assert 1.9 < told <= seconds, (told, seconds)
    found = [f["finding"] for f in report(tmp_path / "t.out", "why")["findings"]]
    assert found[0] == "stopped" and "oversubscription" not in found, found
