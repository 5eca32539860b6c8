"""CPU samples that are switched on and off while a program runs (test/prog/demand.c): `gotrace start --cpu=HZ PID`."""

import collections
import os
import pathlib
import select
import subprocess
import sys

import pytest

from lib import PROGRAMS, ROOT, SOURCES, gotools, proc

pytestmark = pytest.mark.limit(120)

COMMAND = ROOT / "build/gotrace"
HZ = 250
SPINNERS = ("first_spinner", "second_spinner")


def gotrace(command, program, *argv):
    return proc.run([COMMAND, command, *argv, program.pid], timeout=60)


class Program:
    def __init__(self, before, what, env):
        pipe = subprocess.PIPE
        argv = [*before, PROGRAMS / "demand", what]
        self.child = proc.spawn(argv, env=env, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        self.pid = self.child.pid
        self.tids = [int(tid) for tid in self.line().split()]

    def line(self):
        assert select.select([self.child.stdout], [], [], 30)[0]
        return self.child.stdout.readline()

    def poke(self):
        self.child.stdin.write("x")
        self.child.stdin.flush()

    def used(self):
        """CPU seconds of its two threads, together."""
        return sum(int(open(f"/proc/{self.pid}/task/{tid}/schedstat").read().split()[0]) for tid in self.tids) / 1e9

    def use(self, seconds):
        """Waits until it has."""
        enough = self.used() + seconds
        proc.until(lambda: self.used() >= enough, 60)

    def used_by_all(self):
        """CPU seconds of all threads that it has, and has had."""
        return sum(map(int, open(f"/proc/{self.pid}/stat").read().rsplit(")", 1)[1].split()[11:13])) / os.sysconf("SC_CLK_TCK")

    def timers(self):
        return pathlib.Path(f"/proc/{self.pid}/timers").read_text().count("\nClockID:")

    def rings(self):
        return pathlib.Path(f"/proc/{self.pid}/maps").read_text().count("perf_event")

    def end(self):
        _, err = self.child.communicate(timeout=30)
        proc.kill_group(self.child)
        assert self.child.returncode == 0, err
        return err


@pytest.fixture
def program(tmp_path):
    """Starts one with the library; those whose tests fail do not go on."""

    def start(what, *before, **env):
        return Program(before, what, proc.traced_env(tmp_path / "t.out", env))

    yield start
    proc.kill_all()


@pytest.fixture(params=["kernel", "signals"])
def before(request):
    """What the program is started by: who samples its threads is one or the other."""
    if request.param == "kernel" and not proc.may_sample_kernel():
        pytest.skip("the kernel does not let this user sample")
    return [] if request.param == "kernel" else [PROGRAMS / "without_perf"]


def samples(trace):
    """Of the two threads: (thread, function) → number."""
    gotools.check(trace)
    found = collections.Counter()
    for e in gotools.parse(trace):
        if e.kind == "StackSample":
            found[e.m, next((f.func for f in e.stack if f.func in SPINNERS), "")] += 1
    return found


def expect(found, least, most):
    """So many CPU seconds' samples, each in its own thread's function, where all of its time goes."""
    assert 0.7 * least * HZ - 4 <= found.total() <= 1.1 * most * HZ + 8, (least, most, found)


@pytest.mark.measured
@pytest.mark.parametrize("env", [{"GOTRACE_RING": "30s"}, {}], ids=["ring", "file"])
def test_on_and_off(program, before, tmp_path, env):
    """Threads that call nothing, in a recording that is under way: named from there on, until there; then nothing is left."""
    ring = bool(env)
    p = program("spins", *before, **env)
    assert p.timers() == p.rings() == 0
    p0 = p.used()
    assert gotrace("start", p, f"--cpu={HZ}").ok().stdout.endswith(", with CPU samples\n")
    p1 = p.used()
    p.use(0.5)
    assert p.timers() == 3 and bool(p.rings()) == (not before)
    traces = [tmp_path / "one.out", tmp_path / "two.out"] if ring else [tmp_path / "t.out"] * 2
    if ring:
        p2 = p.used()
        proc.run([COMMAND, "snapshot", p.pid, traces[0]]).ok()
        expect(samples(traces[0]), p2 - p1, p.used() - p0)
        assert "first_spinner" in proc.run([COMMAND, "top", "--cpu", "--cum", traces[0]]).ok().stdout
    p2 = p.used()
    assert gotrace("stop", p).ok().stdout == "gotrace: no more CPU samples; recording goes on\n"
    p3 = p.used()
    assert p.timers() == p.rings() == 0
    p.use(0.3)
    if ring:
        proc.run([COMMAND, "snapshot", p.pid, traces[1]]).ok()
    else:
        assert f"gotrace: {traces[1]}: " in gotrace("stop", p).ok().stdout
    found = samples(traces[1])
    expect(found, p2 - p1, p3 - p0)
    for tid, function in zip(p.tids, SPINNERS):
        assert found[tid, function] > 20
    assert sum(found[key] for key in zip(p.tids, SPINNERS)) >= 0.95 * found.total()
    p.end()


@pytest.mark.measured
def test_with_a_recording(program, before, tmp_path):
    """One that begins with samples ends with them; the next one has none. A rate of the program's own is had again."""
    p = program("spins", *before, GOTRACE_START="manual")
    gotrace("start", p, f"--cpu={HZ}").ok()
    p.use(0.3)
    assert f"gotrace: {tmp_path}/t.out: " in gotrace("stop", p).ok().stdout
    assert p.timers() == p.rings() == 0
    gotrace("start", p).ok()
    p.use(0.1)
    p.end()
    assert samples(tmp_path / "t.out").total() > 30 and not samples(tmp_path / "t.out.2")

    p = program("spins", *before, GOTRACE_CPU_HZ="1")
    gotrace("start", p, "--cpu=100").ok()
    gotrace("start", p, f"--cpu={HZ}").ok()
    p.use(0.3)
    gotrace("stop", p).ok()
    n = p.used()
    assert p.timers() == 3
    p.end()
    assert 30 < samples(tmp_path / "t.out").total() < 1.1 * HZ * (n + 0.1) + 8


@pytest.mark.measured
def test_threads_that_come_and_go(program, before, tmp_path):
    """While it is switched: each has one timer or none, and those that come later have them, too."""
    p = program("comes", *before)
    for _ in range(15):
        gotrace("start", p, "--cpu=1000").ok()
        gotrace("stop", p).ok()
        assert p.timers() == p.rings() == 0
    gotrace("start", p, "--cpu=1000").ok()
    begun, enough = set(os.listdir(f"/proc/{p.pid}/task")), p.used_by_all() + 0.5
    proc.until(lambda: p.used_by_all() >= enough, 60)
    p.end()
    gotools.check(tmp_path / "t.out")
    brief = [e for e in gotools.parse(tmp_path / "t.out") if e.kind == "StackSample" and any(f.func == "compute_for" for f in e.stack)]
    assert len({e.m for e in brief} - {int(tid) for tid in begun}) > 1


@pytest.mark.measured
def test_signal_stacks(program, tmp_path):
    """What threads have set before is known: no sample is taken on a small one, nor above a handler."""
    p = program("stacks", PROGRAMS / "without_perf", GOTRACE_RING="30s")
    gotrace("start", p, "--cpu=1000").ok()
    p.use(0.3)
    proc.run([COMMAND, "snapshot", p.pid, tmp_path / "s.out"]).ok()
    assert not [tid for tid, _ in samples(tmp_path / "s.out") if tid in p.tids]
    p.end()


@pytest.mark.measured
def test_seccomp(program):
    """A filter that kills for timers: it is said, nothing is done, and the program goes on."""
    p = program("confined")
    result = gotrace("start", p, "--cpu=100")
    assert result.returncode == 1 and "only CPU samples where the program's own seccomp(2) filter" in result.stderr
    p.use(0.05)
    p.end()


@pytest.mark.measured
def test_forks(program, tmp_path):
    """A child has no timers, as without; and its parent goes on with its own."""
    p = program("forks", GOTRACE_CHILDREN="all")
    gotrace("start", p, f"--cpu={HZ}").ok()
    p.poke()
    assert p.line() == "0\n"
    assert p.timers() == 3
    p.use(0.1)
    p.end()
    assert samples(tmp_path / "t.out").total() > 10
    (child,) = tmp_path.glob("t.out.*")
    assert not samples(child)


@pytest.mark.measured
def test_one_thread(program, tmp_path):
    """It does so itself, at its next call."""
    p = program("alone", GOTRACE_START="manual")
    command = proc.spawn([COMMAND, "start", f"--cpu={HZ}", p.pid], stdout=subprocess.PIPE, text=True)
    while select.select([command.stdout], [], [], 0.02)[0] == []:
        p.poke()
        assert p.line() == "done\n"
    assert "with CPU samples" in command.communicate()[0]
    for _ in range(4):
        p.poke()
        assert p.line() == "done\n"
    p.end()
    found = [e for e in gotools.parse(tmp_path / "t.out") if e.kind == "StackSample"]
    assert len([e for e in found if any(f.func == "compute_for" for f in e.stack)]) > 0.1 * HZ


@pytest.mark.measured
def test_no_timers(program, before):
    """Where the limit of signals allows none: the kernel's samples need none; else it is said, and the program goes on."""
    p = program("spins", "prlimit", "--sigpending=0", *before)
    gotrace("start", p, "--cpu=100").ok()
    assert p.timers() == 0 and bool(p.rings()) == (not before)
    assert "no timers for CPU samples of some threads" in p.end()


@pytest.mark.measured
def test_attached(tmp_path):
    """A program that was started without the library."""
    child = proc.spawn([PROGRAMS / "attached", "locks"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    child.stdout.readline()
    program = collections.namedtuple("Attached", "pid")(child.pid)
    gotrace("attach", program, "-o", tmp_path / "t.out", "--ring=30s").ok()
    assert "with CPU samples" in gotrace("start", program, f"--cpu={HZ}").ok().stdout
    timers = pathlib.Path(f"/proc/{child.pid}/timers")
    proc.until(lambda: timers.read_text().count("\nClockID:") >= 3)  # as threads are met
    assert "no more CPU samples" in gotrace("stop", program).ok().stdout
    assert timers.read_text() == ""
    gotrace("start", program, f"--cpu={HZ}").ok()
    gotrace("detach", program).ok()
    assert timers.read_text() == ""
    gotools.check(tmp_path / "t.out")
    child.communicate(timeout=30)
    assert child.returncode == 0
    proc.kill_group(child)


def test_older_library():
    size = 32 + 2 * 4096 + 512 + 24
    child = proc.spawn([sys.executable, SOURCES / "demand/older.py", size], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    result = gotrace("start", child, "--cpu=100")
    assert result.returncode == 1 and "has an older libgotrace.so" in result.stderr, result
    child.communicate()
    assert child.returncode == 0


def test_refused(program):
    for argv in (["--cpu=0", "1"], ["--cpu=10001", "1"], ["--cpu=x", "1"], ["--cpu=", "1"], ["--cpu=10"], ["--cpu", "1"]):
        assert proc.run([COMMAND, "start", *argv]).returncode == 2, argv
    assert proc.run([COMMAND, "stop", "--cpu=10", "1"]).returncode == 2
    p = program("spins", GOTRACE_FORMAT="go1.11")
    result = gotrace("start", p, "--cpu=100")
    assert result.returncode == 1 and "only CPU samples where the format is go1.19 or later" in result.stderr
    p.end()
