"""`gotrace attach`: programs that were started without the library (test/prog/attached.c) go on as if nothing had been."""

import contextlib
import glob
import os
import pathlib
import platform
import pwd
import re
import select
import shutil
import subprocess
import tempfile
import time

import pytest

from lib import LIBC, LIBRARY, PROGRAMS, ROOT, SINGLE, SOURCES, gotools, proc, reports

GOTRACE = ROOT / "build/gotrace"
ATTACHED = PROGRAMS / "attached"
CYCLES = int(os.environ.get("ATTACH_CYCLES", "5"))

pytestmark = [
    pytest.mark.skipif(platform.machine() != "x86_64", reason="attaching is there for x86-64 only"),
    pytest.mark.skipif(LIBC < 34, reason="nothing is attached to where threads are a library of their own"),
    pytest.mark.limit(120),
]


class Program:
    """One of attached.c's, which says what happens to it."""

    def __init__(self, *what, argv=(ATTACHED,), **options):
        self.child = proc.spawn([*argv, *what], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)
        assert self.child.stdout.readline() == "ready\n"
        self.pid = self.child.pid

    def end(self):
        out, _ = self.child.communicate(timeout=30)
        assert self.child.returncode == 0 and re.fullmatch(r"\d+ rounds\n", out), (self.child.returncode, out)
        return int(out.split()[0])


@contextlib.contextmanager
def running(*what, **options):
    program = Program(*what, **options)
    try:
        yield program
    finally:
        proc.kill_group(program.child)


def gotrace(command, *argv, **options):
    return proc.run([GOTRACE, command, *argv], timeout=60, **options)


def attach(program, trace, *options):
    return gotrace("attach", "-o", trace, *options, program.pid).ok()


def detach(program):
    return gotrace("detach", program.pid).ok()


def await_waits(pid, n=6):
    """For so many rounds of the holder, the second thread. It sleeps twice in each, and seldom elsewhere."""
    status = sorted(pathlib.Path(f"/proc/{pid}/task").iterdir(), key=lambda task: int(task.name))[1] / "status"
    sleeps = lambda: int(re.search(r"^voluntary_ctxt_switches:\t(\d+)", status.read_text(), re.M)[1])
    enough = sleeps() + 2 * n
    proc.until(lambda: sleeps() >= enough, 60)


def values(trace):
    events = [e for e in gotools.parse(trace) if e.fields.get("Name") == "/memory/classes/heap/objects:bytes"]
    return [int(re.search(r"\d+(?=\)})", e.fields["Value"])[0]) for e in events]


@pytest.mark.measured
def test_truth(tmp_path):
    """Waits are right from then on: how long, for which lock, who held it, doing what; and so they are the next time."""
    with running("locks") as program:
        for trace in (tmp_path / "one.out", tmp_path / "two.out"):
            assert attach(program, trace).stdout == f"gotrace: recording to {trace}\n"
            await_waits(program.pid, 12)
            assert f"detached; {trace}: " in detach(program).stdout
            gotools.check(trace)
            waits = reports.report(trace, "top", "--holders")["waits"]
            (wait,) = [row for row in waits if row["place"].startswith("pthread_mutex_lock <- want ") and row["lock"] == "journal"]
            assert wait["count"] >= 3 and 25e6 < wait["average_ns"] < 1000e6, wait
            did = [row["at"]["place"] for row in wait["holders"] if row["taken_in"] == "hold" and row["at"]]
            assert any(place.startswith("usleep <- hold") for place in did), wait
            live = values(trace)
            assert live and all(0 < v < 1 << 24 for v in live), live
        program.end()


def holdings(pid):
    """KiB of memory that it has mapped, mappings, descriptors, threads."""
    text = pathlib.Path(f"/proc/{pid}/smaps").read_text()
    mapped = sum(map(int, re.findall(r"^Size: +(\d+) kB", text, re.M)))
    return mapped, text.count("\nVmFlags:"), *(len(os.listdir(f"/proc/{pid}/{of}")) for of in ("fd", "task"))


@pytest.mark.measured
@pytest.mark.limit(300)
@pytest.mark.long
def test_takes_no_more_each_time(tmp_path):
    """
    What it takes it has after some times: then no memory, no mapping, descriptor or thread more. How much it needs at once
    differs, so it may still take some; a leak would take some in each of these rounds.
    """
    times, rounds = 25, 4
    seen = []
    with running("many", "20") as program:
        for _ in range(rounds):
            for _ in range(times):
                attach(program, tmp_path / "t.out")
                detach(program)
            seen.append(holdings(program.pid))
        program.end()
    assert any(after == before for before, after in zip(seen, seen[1:])), seen


@pytest.mark.chance
@pytest.mark.parametrize("what", ["calls", "sleeper", "many 100", "forks"])
def test_nothing_happens(tmp_path, what):
    with running(*what.split()) as program:
        for i in range(CYCLES):
            attach(program, tmp_path / f"{i}.out")
            detach(program)
        assert program.end()
    gotools.check(tmp_path / "0.out")
    proc.run([GOTRACE, "info", tmp_path / f"{CYCLES - 1}.out"]).ok()


def test_other_commands(tmp_path):
    trace, other = tmp_path / "t.out", tmp_path / "other.out"
    with running("locks") as program:
        assert attach(program, trace, "--start=manual", "--ring=30s").stdout == ""
        again = gotrace("attach", "--ring=10s", program.pid)
        assert again.returncode == 1 and "only --output and --start can change" in again.stderr
        gotrace("start", program.pid).ok()
        await_waits(program.pid)
        gotrace("snapshot", program.pid, other).ok()
        assert gotrace("attach", program.pid).stderr == f"gotrace: process {program.pid} is recording already\n"
        detach(program)
        assert "pthread_mutex_lock <- want" in gotrace("top", other).ok().stdout
        for command, why in (("start", "not attached any more"), ("detach", "not attached any more"), ("stop", "not recording")):
            result = gotrace(command, program.pid)
            assert result.returncode == 1 and why in result.stderr, result
        program.end()


def test_all_is_put_back(tmp_path):
    """What is read-only in its files' memory: relocations, and libc's table of symbols."""

    def memory(pid):
        found = {}
        with open(f"/proc/{pid}/mem", "rb") as f:
            for line in open(f"/proc/{pid}/maps"):
                where, rights, *_, path = line.split(maxsplit=5)
                lo, hi = (int(x, 16) for x in where.split("-"))
                if rights == "r--p" and re.search(r"/(attached|libc\.so\.6|ld-linux.*)$", path.strip()):
                    f.seek(lo)
                    for at in range(lo, hi, 4096):  # mappings may have been split
                        found[at] = f.read(4096)
        return found

    with running("many", "4") as program:
        before = memory(program.pid)
        attach(program, tmp_path / "t.out")
        during = memory(program.pid)
        detach(program)
        after = memory(program.pid)
        assert len(before) > 20 and any(during[at] != page for at, page in before.items())
        assert not [hex(at) for at, page in before.items() if after[at] != page]
        program.end()


# --- who dies in the middle


@pytest.fixture(scope="module")
def die(tmp_path_factory):
    return proc.compile(SOURCES / "attach/die.c", tmp_path_factory.mktemp("die") / "die.so", "-shared", "-fPIC", "-ldl")


def attach_dying(program, trace, die, at, **env):
    env = {"LD_PRELOAD": die, "DIE_AT": str(at)} | {k: str(v) for k, v in env.items()}
    return gotrace("attach", "-o", trace, program.pid, env=env)


def steps_of(die, tmp_path, what):
    """About how many calls of ptrace an attach takes: more, where a thread has moved."""
    with running(what) as program:
        attach_dying(program, tmp_path / "t.out", die, -1, DIE_COUNT=tmp_path / "n").ok()
        detach(program)
        program.end()
    return int((tmp_path / "n").read_text().split()[-1])  # of the last try


@pytest.mark.chance
@pytest.mark.parametrize("what", ["sleeper", "calls"])
def test_killed_command(tmp_path, die, what):
    """Wherever it was: the program goes on, its calls last their time, with its registers and its mask of signals."""
    last = steps_of(die, tmp_path, what)
    died = 0
    for at in sorted({last * i // 5 for i in range(1, 5)} | set(range(max(last - 12, 1), last + 1, 3))):
        with running(what) as program:
            result = attach_dying(program, tmp_path / "t.out", die, at)
            died += result.returncode == -9
            time.sleep(0.05)
            program.end()
    assert died  # the command may be done sooner than the first time


@pytest.mark.measured
def test_killed_program(tmp_path, die):
    last = steps_of(die, tmp_path, "calls")
    for at in range(last // 6, last, last // 6):
        with running("calls") as program:
            result = attach_dying(program, tmp_path / "t.out", die, at, DIE_WHO=program.pid)
            assert result.returncode in (0, 1) and result.seconds < 40, result


# --- who is refused

STATIC = '#include <stdio.h>\n#include <unistd.h>\nint main(void) { puts("ready"); fflush(stdout); char c; while (read(0, &c, 1) > 0) ; puts("1 rounds"); }'


REFUSED = {
    "static": (STATIC, ["-static"], "gcc", "statically linked"),
    "musl": (STATIC, [], "musl-gcc", "has another libc, musl: its loader is .*ld-musl"),
    "confined": (SOURCES / "attach/confined.c", ["-O1"], "gcc", "confines itself by seccomp"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_refused(tmp_path, kind):
    """With the reason, in a line, and nothing changed."""
    source, flags, compiler, why = REFUSED[kind]
    if kind == "musl" and not (shutil.which(compiler) and glob.glob("/lib/ld-musl-*.so.1")):
        pytest.skip("no musl here")
    binary = proc.compile(source, tmp_path / "refused", *flags, compiler=compiler)
    with running(argv=(binary,)) as program:
        maps = open(f"/proc/{program.pid}/maps").read()
        result = gotrace("attach", program.pid, cwd=tmp_path)
        (line,) = result.stderr.splitlines()
        assert result.returncode == 1 and line.startswith("gotrace: ") and re.search(why, line), result
        assert open(f"/proc/{program.pid}/maps").read() == maps
        program.end()


def test_refused_with_the_library(tmp_path):
    env = {"LD_PRELOAD": LIBRARY, "GOTRACE_OUTPUT": tmp_path / "t.out", "GOTRACE_QUIET": "1"}
    child = proc.spawn([ATTACHED, "locks"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert select.select([child.stdout], [], [], 20)[0]
    names = pathlib.Path(f"/proc/{child.pid}/task").glob
    proc.until(lambda: "gotrace\n" in [comm.read_text() for comm in names("*/comm")])  # till then it only "has libgotrace.so already"
    for command in ("attach", "detach"):
        result = gotrace(command, child.pid, cwd=tmp_path)
        assert result.returncode == 1 and "was started with libgotrace.so" in result.stderr, result
    child.communicate(timeout=20)
    proc.kill_group(child)


def test_usage(tmp_path):
    assert gotrace("attach").returncode == 2
    assert "attach [options]" in gotrace("attach", "--help").ok().stdout
    for option in ("--sched", "--cpu-hz=10"):
        result = gotrace("attach", option, os.getpid(), cwd=tmp_path)
        assert result.returncode == 2 and "cannot be attached with" in result.stderr
    assert "there is no process" in gotrace("attach", 4194304 - 1, cwd=tmp_path).stderr


# --- containers


def test_container(tmp_path):
    """Another root's files, and another numbering of processes: it has no libgotrace.so."""
    (tmp_path / "attached").write_bytes(ATTACHED.read_bytes())
    (tmp_path / "attached").chmod(0o755)
    script = f"mount -t tmpfs none {LIBRARY.parent} && cd {tmp_path} && exec ./attached locks"
    unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script]
    if os.geteuid() != 0 or proc.run([*unshare[:-1], f"mount -t tmpfs none {LIBRARY.parent}"]).returncode:
        pytest.skip("no namespaces here")
    before = set(os.listdir("/tmp"))
    with running(argv=unshare) as program:
        (inner,) = open(f"/proc/{program.pid}/task/{program.pid}/children").read().split()
        trace = tmp_path / "t.out"
        gotrace("attach", "-o", trace, inner).ok()
        await_waits(inner)
        gotrace("detach", inner).ok()
        assert "pthread_mutex_lock <- want" in gotrace("top", trace).ok().stdout
        program.end()
        assert not [name for name in set(os.listdir("/tmp")) - before if name.startswith("gotrace.")]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
def test_library_that_its_user_cannot_read(tmp_path):
    """It gets a copy, which goes again."""
    nobody = pwd.getpwnam("nobody")
    private, public = tmp_path / "private", pathlib.Path(tempfile.mkdtemp(prefix="gotrace-"))
    try:
        (private / "bin").mkdir(parents=True)
        command = shutil.copy(GOTRACE, private / "bin")
        shutil.copy(LIBRARY, private)
        private.chmod(0o700)
        public.chmod(0o777)
        binary, trace = shutil.copy(ATTACHED, public), public / "t.out"
        with running(argv=["setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups", binary, "locks"]) as program:
            proc.run([command, "attach", "-o", trace, program.pid]).ok()
            await_waits(program.pid)
            proc.run([command, "detach", program.pid]).ok()
            assert "pthread_mutex_lock <- want" in gotrace("top", trace).ok().stdout
            program.end()
        assert {p.name for p in public.iterdir()} == {"attached", "t.out"}
    finally:
        shutil.rmtree(public)


# --- functions that other libraries than libc have

def test_other_libraries(tmp_path):
    """OpenMP's and libaio's calls are bound, too, those that were not made yet as well; given back, and bound again."""
    binary = tmp_path / "others"

    def rounds(program):
        program.child.stdin.write("?")
        program.child.stdin.flush()
        return int(program.child.stdout.readline().split()[0])

    flags = ["-fopenmp", "-Wl,-z,lazy", "-laio"]
    if proc.run(["gcc", "-g", "-O1", "-o", binary, SOURCES / "attach/others.c", *flags]).returncode:
        pytest.skip("libaio is not here; ./scripts/deps all installs it")
    with running(argv=(binary,)) as program:
        for trace in (tmp_path / "one.out", tmp_path / "two.out"):
            attach(program, trace)
            enough = rounds(program) + 6
            proc.until(lambda: rounds(program) >= enough)
            detach(program)
            gotools.check(trace)
            top = gotrace("top", "--idle=none", trace).ok().stdout
            for what in ("GOMP_critical_start <- critical", "GOMP_barrier <- main", "io_getevents <- await_io"):
                assert what in top, (what, top)
        program.end()


@pytest.mark.measured
def test_calls_that_begin_anew(tmp_path):
    """io_getevents(2) counts its timeout from the beginning when a debugger stops its thread: 3 ms may become no end."""
    for _ in range(6):
        with running(argv=(SINGLE / "attach/anew",), stderr=subprocess.PIPE) as program:
            attach(program, tmp_path / "t.out")
            out, err = program.child.communicate(timeout=30)
        assert int(out.split()[0]) > 5, out
        assert int(err.split()[0]) < 400_000, err


def test_sleep_in_libc(tmp_path):
    """sleep(3) has the kernel write the rest of the time to memory, which libc throws away: it is no call half done."""
    with running(argv=(SINGLE / "attach/sleeps",)) as program:
        attach(program, tmp_path / "t.out")
        detach(program)
    gotools.check(tmp_path / "t.out")


@pytest.mark.measured
def test_calls_with_something_half_done(tmp_path):
    """A write that has copied a part, a timeout that would begin anew: threads in such calls are not the ones that are borrowed."""
    size, ms = 300_000, 3_000
    with running(argv=(PROGRAMS / "halfway",)) as program:
        for i in range(3):
            attach(program, tmp_path / f"{i}.out")
            detach(program)
        said = program.child.communicate(timeout=60)[0]
    results = {name: tuple(map(int, text.split())) for name, text in (line.split(": ") for line in said.splitlines())}
    moved = {name: result for name, (result, _, _) in results.items() if result > 0}
    assert len(moved) == 7 and set(moved.values()) == {size}, results
    waited = {name: (error, took) for name, (result, error, took) in results.items() if result <= 0}
    assert len(waited) == 9 and all(error in (0, 11) and ms - 10 < took < 2 * ms for error, took in waited.values()), waited


# --- children


def test_child_of_one_that_was_attached(tmp_path):
    """It has the library, which does nothing there: it can be attached to like any other, and so can its own child."""
    binary = SINGLE / "attach/parent"

    def tell(program, what):
        program.child.stdin.write(what)
        program.child.stdin.flush()
        return int(program.child.stdout.readline())

    with running(argv=(binary,)) as program:
        attach(program, tmp_path / "parent.out")
        before = tell(program, "f")
        detach(program)
        after = tell(program, "f")
        said = gotrace("attach", before)
        assert said.returncode == 1 and said.stderr == f"gotrace: process {before} has libgotrace.so already: gotrace start {before}\n"
        for command in ("start", "stop", "snapshot", "detach"):
            said = gotrace(command, after)
            assert said.returncode == 1 and f"was forked by a program that had been attached before: gotrace attach {after}\n" in said.stderr
        os.kill(before, 9)  # or it would read the other one's input
        for trace in (tmp_path / "one.out", tmp_path / "two.out"):
            gotrace("attach", "-o", trace, after).ok()
            assert tell(program, "w") == after  # it has slept
            gotrace("detach", after).ok()
            gotools.check(trace)
            sleeps = [e for e in gotools.parse(trace) if e.is_go("Running", "Waiting") and e.stack[0].func == "usleep"]
            assert len(sleeps) == 2 and all("child" in [f.func for f in e.stack] for e in sleeps)
        program.child.stdin.write("q")
        program.end()
