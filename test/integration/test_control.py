"""Starting and stopping recordings: by the program (test/prog/control.c), the environment, a signal, from outside."""

import contextlib
import ctypes
import glob
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

from lib import FUTEX, LIBRARY, PROGRAMS, ROOT, SINGLE, cgroups, gotools, proc

CONTROL = PROGRAMS / "control"
COMMAND = ROOT / "build/gotrace"
CYCLES = int(os.environ.get("CYCLES", "60"))
MANUAL = {"GOTRACE_START": "manual"}


def events_of(trace):
    return gotools.parse(trace)


def command(*argv):
    return proc.run([COMMAND, *argv])


class Running:
    """A traced program that goes on until its standard input ends."""

    def __init__(self, argv, trace, env):
        self.trace, pipe = trace, subprocess.PIPE
        self.child = proc.spawn(argv, env=proc.traced_env(trace, env), stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        self.pid = self.child.pid

    def stderr_line(self):
        assert select.select([self.child.stderr], [], [], 20)[0], "nothing on standard error"
        return self.child.stderr.readline()

    def poke(self):
        self.child.stdin.write("x")
        self.child.stdin.flush()

    def end(self):
        out, err = self.child.communicate(timeout=20)
        assert self.child.returncode == 0, err
        proc.kill_group(self.child)
        return err


class Control(Running):
    """test/prog/control.c, which begins by saying its threads' ids."""

    def __init__(self, tmp_path, what, env):
        super().__init__([CONTROL, what], tmp_path / "t.out", env)
        self.tids = [int(tid) for tid in self.child.stdout.readline().split()]


@pytest.fixture
def running(tmp_path):
    return lambda what="idle", **env: Control(tmp_path, what, env)


# --- by the program


@pytest.mark.parametrize("format", gotools.some("go1.22"))
def test_late(traced, format):
    """Threads that wait when recording starts: every reader takes it."""
    result = traced([CONTROL, "late"], env=MANUAL | {"GOTRACE_FORMAT": format}).ok()
    for go in gotools.readers_of(format).values():
        gotools.check(result.trace, go=go)


@pytest.mark.parametrize("format", ["go1.23", "go1.26"])
@pytest.mark.alone
def test_late_states(traced, format):
    """Each is where it really is, with its stack and its routine, and ends by the hand that ended it."""
    result = traced([CONTROL, "late"], env=MANUAL | {"GOTRACE_FORMAT": format}).ok()
    events = events_of(result.trace)
    began = {}
    for e in events:
        if e.goid is not None and e.old == "Undetermined":
            began[e.m] = e
    expected = [line.split() for line in result.stdout.splitlines()]
    assert len(expected) == 8
    for hook, waiter, ender, state in expected:
        e = began[int(waiter)]
        assert e.new == state, f"{hook}: {e}"
        functions = [frame.func for frame in e.transition_stack]
        assert "run_kind" in functions, f"{hook}: {functions}"
        if state == "Running":
            continue
        assert functions[0] == hook
        if state == "Syscall":  # its stack was taken now
            assert functions[1:3] == [f"wait_{hook}", "run_kind"]
        end = next(x for x in events if x.goid == e.goid and x.old == state and x.new != state)
        assert end.m == int(ender), f"{hook}: ended by {end.m}, not {ender}"
    assert not [e for e in events if e.is_go("NotExist", "Runnable")]  # nobody was created since


@pytest.mark.limit(300)
def test_many_recordings_under_load(tmp_path):
    """Each is a trace of its own, with no reader complaining of any."""
    env = proc.traced_env(tmp_path / "%n.out", MANUAL | {"GOTRACE_QUIET": "1"})
    proc.run([CONTROL, "cycles", CYCLES], env=env, timeout=200).ok()
    traces = [tmp_path / f"{n}.out" for n in range(1, CYCLES + 1)]
    assert sorted(tmp_path.iterdir()) == sorted(traces)
    for go in gotools.readers_of("go1.23").values():
        result = proc.run([gotools.read_all(go), *traces], timeout=120).ok()
        assert not result.stdout, result.stdout[:2000]


@pytest.mark.limit(120)
@pytest.mark.parametrize("format", gotools.some("go1.26", of=[f for f in gotools.FORMATS if f != "go1.23"]))
def test_recordings_in_all_formats(tmp_path, format):
    env = proc.traced_env(tmp_path / "%n.out", MANUAL | {"GOTRACE_QUIET": "1", "GOTRACE_FORMAT": format})
    proc.run([CONTROL, "cycles", 30], env=env, timeout=60).ok()
    traces = [tmp_path / f"{n}.out" for n in range(1, 31)]
    for go in gotools.readers_of(format).values():
        result = proc.run([gotools.read_all(go), *traces], timeout=120).ok()
        assert not result.stdout, result.stdout[:2000]


@pytest.mark.measured
@pytest.mark.parametrize("format", ["go1.5", "go1.21", "go1.23"])
def test_recordings_leave_no_memory(tmp_path, format):
    program = SINGLE / "control/recordings"
    env = MANUAL | {"GOTRACE_QUIET": "1", "GOTRACE_FORMAT": format}
    grown = int(proc.run([program], env=proc.traced_env(tmp_path / "%n.out", env)).ok().stdout)
    assert grown < 2048, f"{grown} KiB in 80 recordings"


def test_names_of_files(tmp_path):
    """Without %n files after the first get a number; each has its exit line."""
    result = proc.run([CONTROL, "cycles", 3], env=proc.traced_env(tmp_path / "t.out", MANUAL)).ok()
    names = ["t.out", "t.out.2", "t.out.3"]
    assert sorted(p.name for p in tmp_path.iterdir()) == names
    lines = result.stderr.splitlines()
    assert [line.split(":")[1].strip() for line in lines] == [str(tmp_path / name) for name in names], lines
    assert all("nothing lost" in line for line in lines)


def test_results(traced):
    assert proc.run([CONTROL, "results"]).ok().stdout.split()[2:4] == [str(38), "ENOSYS"]
    out = traced([CONTROL, "results"], env=MANUAL).ok().stdout.split()
    assert out == ["EALREADY", "EALREADY", "0", "EALREADY", "0", "0", "EALREADY"]


def test_cannot_make_the_file():
    result = proc.run([CONTROL, "results"], env=proc.traced_env("/nonexistent/t.out", MANUAL)).ok()
    assert result.stdout.split() == ["EALREADY", "EALREADY", "2", "ENOENT", "114", "114", "EALREADY"]
    assert result.stderr == ""


def test_never_started(traced):
    """Nothing is left behind, and nothing said."""
    result = traced([PROGRAMS / "threads", "4"], env=MANUAL).ok()
    assert not result.trace.exists() and result.stderr == ""


def test_fork_while_stopped(traced, tmp_path):
    result = traced([CONTROL, "fork"], env=MANUAL).ok()
    trace = tmp_path / f"t.out.{result.stdout.strip()}"
    assert list(tmp_path.iterdir()) == [trace]
    gotools.check_all(trace)
    assert len([e for e in events_of(trace) if e.goid is not None and e.old == "Undetermined"]) == 2


# --- by the environment


def seconds(trace):
    events = events_of(trace)
    return (events[-1].time - events[0].time) / 1e9


@pytest.mark.measured
def test_delay_and_duration(running):
    """From 0.3 s on for 0.2 s, of a program that does nothing."""
    program = running(GOTRACE_DELAY="300ms", GOTRACE_DURATION="0.2s")
    line = program.stderr_line()
    assert 0.19 < float(re.search(r"events in ([\d.]+) s", line)[1]) < 1, line  # longer if the drain thread gets its CPU late
    assert program.end() == ""
    gotools.check_all(program.trace)


@pytest.mark.measured
def test_delay_and_duration_without_threads(tmp_path):
    """The same at the next call that may block."""
    env = proc.traced_env(tmp_path / "t.out", {"GOTRACE_DELAY": "300ms", "GOTRACE_DURATION": "0.2s"})
    result = proc.run([CONTROL, "alone"], env=env, stdin="x" * 700).ok()
    gotools.check_all(tmp_path / "t.out")
    assert 0.19 < float(re.search(r"events in ([\d.]+) s", result.stderr)[1]) < 1, result  # longer if the program gets its CPU late
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("directory", ["missing", "x" * 200 + "/%e" * 1000])
@pytest.mark.measured
def test_late_start_cannot_make_the_file(tmp_path, directory):
    """One line says so; the drain thread has no more to do."""
    env = {"GOTRACE_OUTPUT": tmp_path / directory / "t.out", "GOTRACE_DELAY": "100ms", "GOTRACE_DURATION": "100ms"}
    program = Control(tmp_path, "idle", env)
    line = program.stderr_line()
    assert "nothing is recorded" in line, line

    def cpu():
        return sum(map(int, open(f"/proc/{program.pid}/stat").read().rsplit(")", 1)[1].split()[11:13]))

    before = cpu()
    time.sleep(1)
    assert cpu() - before < 20, "hundredths of a second"  # a thread that spins takes 100
    assert program.end() == ""


@pytest.mark.measured
def test_duration_alone(tmp_path):
    result = proc.run(
        [CONTROL, "alone"], env=proc.traced_env(tmp_path / "t.out", {"GOTRACE_DURATION": "100ms"}), stdin="x" * 500
    ).ok()
    assert 0.1 <= float(re.search(r"events in ([\d.]+) s", result.stderr)[1]) < 1, result  # longer if the program gets its CPU late


@pytest.mark.parametrize(
    "name, value",
    [
        ("GOTRACE_START", "later"),
        ("GOTRACE_DELAY", "soon"),
        ("GOTRACE_DELAY", "-1s"),
        ("GOTRACE_DURATION", "10x"),
        ("GOTRACE_SIGNAL", "KILL"),
        ("GOTRACE_SIGNAL", "SIGSEGV"),
        ("GOTRACE_SIGNAL", "32"),
        ("GOTRACE_SIGNAL", "FOO"),
    ],
)
def test_bad_values(traced, name, value):
    result = traced([PROGRAMS / "threads", "2"], env={name: value}).ok()
    assert result.stderr.startswith(f"gotrace: {name}={value} is not "), result.stderr
    gotools.check(result.trace)


# --- by a signal


@pytest.mark.parametrize("name, number", [("USR1", signal.SIGUSR1), ("SIGRTMIN+3", signal.SIGRTMIN + 3), ("12", 12)])
def test_signal(running, name, number):
    program = running(GOTRACE_START="manual", GOTRACE_SIGNAL=name)
    os.kill(program.pid, number)
    proc.until(lambda: program.trace.exists() and program.trace.stat().st_size)
    os.kill(program.pid, number)
    assert f"gotrace: {program.trace}: " in program.stderr_line()
    assert program.end() == ""
    gotools.check_all(program.trace)
    states = {e.m: e.new for e in events_of(program.trace) if e.goid is not None and e.old == "Undetermined"}
    assert states == dict.fromkeys(program.tids, "Syscall")


def test_signal_of_a_single_threaded_program(running):
    """It takes effect at a call that may block, here one that the signal interrupts."""
    program = running("alone", GOTRACE_START="manual", GOTRACE_SIGNAL="USR2")
    os.kill(program.pid, signal.SIGUSR2)
    program.poke()
    program.poke()
    proc.until(lambda: program.trace.exists())
    assert len(os.listdir(f"/proc/{program.pid}/task")) == 1
    assert "nothing lost" in program.end()
    gotools.check_all(program.trace)


def test_signal_for_a_child_that_does_not_record_yet(tmp_path):
    """It changes nothing: the child records from its first thread on, as ever."""
    program = SINGLE / "control/signalled_child"
    proc.traced([program], tmp_path / "t.out", env={"GOTRACE_SIGNAL": "USR2"}).ok()
    (child,) = tmp_path.glob("t.out.*")
    naps = [e for e in events_of(child) if e.is_go("Running", "Waiting") and e.stack[0].func == "usleep"]
    assert len(naps) == 1


def test_program_cannot_take_the_signal(tmp_path):
    """It sets and reads its action as ever."""
    program = SINGLE / "control/takes_the_signal"
    bare = proc.run([program]).ok()
    result = proc.traced([program], tmp_path / "t.out", env=MANUAL | {"GOTRACE_SIGNAL": "USR1"}).ok()
    assert result.stdout == bare.stdout == "1\n1\n1\nits own\n"


# --- from outside


def test_command(running):
    """A program that does nothing at all is started, looked at, stopped and started again."""
    program = running(GOTRACE_START="manual")
    assert command("start", program.pid).ok().stdout == f"gotrace: recording to {program.trace}\n"
    again = command("start", program.pid)
    assert (again.returncode, again.stderr) == (1, f"gotrace: process {program.pid} is recording already\n")
    assert command("snapshot", program.pid).ok().stdout == f"gotrace: written to {program.trace}\n"
    gotools.check_all(program.trace)
    stopped = command("stop", program.pid).ok()
    assert stopped.stdout.startswith(f"gotrace: {program.trace}: ") and "nothing lost" in stopped.stdout
    again = command("stop", program.pid)
    assert (again.returncode, again.stderr) == (1, f"gotrace: process {program.pid} is not recording\n")
    command("start", program.pid).ok()
    program.stderr_line()
    assert f"{program.trace}.2" in program.end()
    for trace in program.trace, f"{program.trace}.2":
        gotools.check_all(trace)
        started = {e.m: e.new for e in events_of(trace) if e.goid is not None and e.old == "Undetermined"}
        assert started == dict.fromkeys(program.tids, "Syscall")


@pytest.mark.alone
def test_the_program_notices_nothing(running):
    """Neither a descriptor, nor a signal, nor an interrupted call."""
    program = running(GOTRACE_START="manual")
    proc.until(lambda: all(" S " in open(f"/proc/{program.pid}/task/{tid}/stat").read() for tid in program.tids))
    before = os.listdir(f"/proc/{program.pid}/fd"), calls_interrupted(program)
    command("start", program.pid).ok()
    command("stop", program.pid).ok()
    assert (os.listdir(f"/proc/{program.pid}/fd"), calls_interrupted(program)) == before
    program.end()


def calls_interrupted(program):
    """Voluntary and other context switches of its threads: one that was woken would have more."""
    return [
        re.findall(r"ctxt_switches:\s*(\d+)", open(f"/proc/{program.pid}/task/{tid}/status").read())
        for tid in program.tids
    ]


def test_command_errors(running):
    assert {command(*argv).returncode for argv in (["start"], ["stop", "1x"], ["start", "1", "x"])} == {2}
    assert command("snapshot").stderr.startswith("gotrace: snapshot needs a process id: gotrace snapshot PID\nusage: ")
    assert "usage: gotrace start [--cpu=HZ] PID" in command("snapshot", "--help").ok().stdout
    gone = proc.spawn(["true"])
    gone.wait()
    assert command("start", gone.pid).stderr == f"gotrace: there is no process {gone.pid}\n"
    bare = proc.spawn(["cat", "-u"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    os.write(bare.stdin.fileno(), b"begun\n")
    bare.stdout.readline()  # before, its command line may not be there yet
    assert "start: gotrace --start=manual -- cat -u\n" in command("start", bare.pid).stderr
    assert "start: gotrace --ring=30s -- cat -u\n" in command("snapshot", bare.pid).stderr
    proc.kill_group(bare)


@pytest.mark.parametrize("words", [["it's", "a\nline", "\x1b[2J", "", "$HOME"], ["x" * 501]])
def test_command_that_starts_a_program_can_be_typed(words):
    """As it stands; a long one has its first word only, and says that there is more."""
    program = ["sed", "-u", "-e", "", "--", "-", *words]
    bare = proc.spawn(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    os.write(bare.stdin.fileno(), b"begun\n")
    bare.stdout.readline()  # before, its command line may not be there yet
    shown = re.search("start: gotrace --start=manual -- (.*)\n", command("start", bare.pid).stderr)[1]
    proc.kill_group(bare)
    typed = proc.run(["bash", "-c", f"printf '%s\\0' {shown}"]).ok().stdout.split("\0")[:-1]
    assert typed == (program if len(words) > 1 else ["sed", "…"]), shown


def untraced(pid, what):
    """The answer to each command, which must be the same and begin with that."""
    (answer,) = {command(action, pid).stderr for action in ("start", "stop", "snapshot")}
    assert answer.startswith(f"gotrace: process {pid} {what}") and answer.count("\n") == 1, answer


def test_how_to_start_it_again_is_what_a_shell_takes():
    argv = ["/a b/it's", "-c", 'import time; print(flush=True); time.sleep(60) # "$HOME" * ü']
    bare = proc.spawn(argv, executable=sys.executable, stdout=subprocess.PIPE)
    bare.stdout.readline()  # before, it is not yet seen what it has loaded
    line = command("start", bare.pid).stderr
    proc.kill_group(bare)
    quoted = line.partition(" -- ")[2].strip()
    assert proc.run(["sh", "-c", f"printf '%s\\n' {quoted}"]).ok().stdout.splitlines() == bare.args


@pytest.mark.parametrize("what", ["alone", "idle"])
def test_command_where_recording_is_off(running, what):
    off = running(what, GOTRACE="off")
    untraced(off.pid, "was started with GOTRACE=off: nothing is recorded in it.")
    off.end()


def test_command_of_a_child_with_threads_that_is_not_traced(tmp_path):
    program = Single(tmp_path, "child_with_threads", {"GOTRACE_CHILDREN": "0"})
    child = int(program.child.stdout.readline())
    untraced(child, "is a child of the program that was started with GOTRACE_CHILDREN=0: nothing is recorded in it")
    program.end()


def test_command_of_a_program_that_withdrew(tmp_path):
    """Its filter would end it for what we do: it is recorded until then."""
    program = Single(tmp_path, "withdraws")
    program.child.stdout.readline()
    untraced(program.pid, "confines itself by seccomp(2): nothing is recorded in it any more")
    program.end()


def test_answers_do_not_control_the_terminal(tmp_path):
    """A name of the traced program's, which may be another user's."""
    program = Running([CONTROL, "idle"], tmp_path / "\x1b[31mred", MANUAL)
    program.child.stdout.readline()
    assert command("start", program.pid).ok().stdout == f"gotrace: recording to {tmp_path}/?[31mred\n"
    program.end()


def test_command_cannot_make_the_file():
    child = proc.spawn(
        [CONTROL, "idle"],
        env=proc.traced_env("/nonexistent/t.out", MANUAL),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    child.stdout.readline()
    result = command("start", child.pid)
    assert result.returncode == 1 and "/nonexistent/t.out: No such file or directory" in result.stderr, result
    child.communicate(timeout=10)
    assert child.returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_command_of_another_user(running):
    program = running(GOTRACE_START="manual")
    result = proc.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", COMMAND, "start", program.pid])
    assert result.returncode == 1 and "another user's" in result.stderr, result
    program.end()
    assert not program.trace.exists()


@pytest.fixture
def for_others(tmp_path):
    """Copies a file to where other users may come."""
    for path in (tmp_path, *tmp_path.parents[:-2]):
        path.chmod(path.stat().st_mode | 0o055)

    def copy(file):
        copied = pathlib.Path(shutil.copy(file, tmp_path))
        copied.chmod(0o755)
        return copied

    return copy


PTRACE_SEIZE = 0x4206
WALL = 0x40000000  # for waitpid(2): threads, too


def kept_as_a_zombie(child):
    """The thread of test/single/control/ending.c, which has ended; its tracer is this process."""
    tid = int(child.stdout.readline())
    assert ctypes.CDLL(None).ptrace(PTRACE_SEIZE, tid, None, None) == 0
    child.stdin.write("\n")
    child.stdin.flush()
    assert child.stdout.readline() == "ready\n"
    return tid


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
@pytest.mark.parametrize("which", ["control/ending", "stacks/leaves"])
def test_command_where_a_thread_is_ending(for_others, which):
    """By its user: the kernel gives that thread's files to root. The thread has the name of the library's, or is the first one."""
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    env = MANUAL | {"LD_PRELOAD": for_others(LIBRARY), "GOTRACE_QUIET": "1"}
    argv = [*user, "env", *[f"{name}={value}" for name, value in env.items()], for_others(SINGLE / which)]
    child = proc.spawn(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    tid = kept_as_a_zombie(child) if which == "control/ending" else child.pid
    try:
        proc.until(lambda: "State:\tZ" in pathlib.Path(f"/proc/{child.pid}/task/{tid}/status").read_text())
        says = f"gotrace: process {child.pid} is not recording\n"
        proc.until(lambda: command("stop", child.pid).stderr == says)  # root is told so at once or when the library's thread is there
        assert proc.run([*user, for_others(COMMAND), "stop", child.pid]).stderr == says
    finally:
        child.kill()
        os.waitpid(tid, WALL)
        proc.kill_group(child)


def is_stopped(pid):
    """All of its threads: the signal stops one, which then stops the others."""
    states = [open(stat).read().rsplit(") ", 1)[1][0] for stat in glob.glob(f"/proc/{pid}/task/*/stat")]
    return set(states) == {"T"}


def test_process_that_does_not_answer(running):
    """One that ends instead of answering."""
    program = running(GOTRACE_START="manual")
    proc.run([COMMAND, "start", program.pid]).ok()
    os.kill(program.pid, signal.SIGSTOP)
    proc.until(lambda: is_stopped(program.pid))
    asking = proc.spawn([COMMAND, "stop", program.pid], stderr=subprocess.PIPE, text=True)
    proc.until(lambda: open(f"/proc/{asking.pid}/syscall").read().startswith(f"{FUTEX} "))
    proc.kill_group(program.child)
    assert "does not answer" in asking.communicate(timeout=20)[1] and asking.returncode == 1


def test_process_that_is_stopped(running):
    """It says so at once, and takes the command when it goes on."""
    program = running(GOTRACE_START="manual")
    proc.run([COMMAND, "start", program.pid]).ok()
    os.kill(program.pid, signal.SIGSTOP)
    proc.until(lambda: is_stopped(program.pid))
    result = proc.run([COMMAND, "stop", program.pid], timeout=30)
    assert result.returncode == 1 and f"is stopped, and does not answer: kill -CONT {program.pid}" in result.stderr
    os.kill(program.pid, signal.SIGCONT)
    proc.until(lambda: "is not recording" in proc.run([COMMAND, "stop", program.pid]).stderr)
    program.end()


def test_process_that_is_stopped_before_it_can_be_asked():
    """It has a thread, and none of the library's that serves commands."""
    child = proc.spawn([SINGLE / "control/ending"], env=MANUAL | {"LD_PRELOAD": LIBRARY}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    child.stdout.readline()
    assert "cannot be asked" in command("stop", child.pid).stderr
    os.kill(child.pid, signal.SIGSTOP)
    proc.until(lambda: is_stopped(child.pid))
    assert f"is stopped, and does not answer: kill -CONT {child.pid}" in command("stop", child.pid).stderr
    proc.kill_group(child)


@pytest.mark.parametrize("version", cgroups.FREEZERS)
def test_process_that_is_frozen(running, version):
    program = running(GOTRACE_START="manual")
    with cgroups.frozen(program.pid, version):
        result = proc.run([COMMAND, "start", program.pid], timeout=30)
    assert result.returncode == 1 and "is frozen by its cgroup" in result.stderr
    program.end()


# --- from outside, of a program without threads


class Alone:
    """One that makes a call that may block every few milliseconds, and none while it rests."""

    @contextlib.contextmanager
    def at_work(self):
        over = threading.Event()

        def poke():
            while not over.wait(0.005):
                self.poke()

        poker = threading.Thread(target=poke)
        poker.start()
        try:
            yield
        finally:
            over.set()
            poker.join()

    def asks(self, *argv):
        """A command under way: it has read the program's memory."""
        asking = proc.spawn([COMMAND, *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        proc.until(lambda: open(f"/proc/{asking.pid}/syscall").read().startswith("230 "))  # clock_nanosleep
        return asking


class AloneControl(Alone, Control):
    def __init__(self, tmp_path, env=MANUAL):
        super().__init__(tmp_path, "alone", env)


def test_command_of_a_single_threaded_program(tmp_path):
    program = AloneControl(tmp_path)
    before = os.listdir(f"/proc/{program.pid}/fd")
    with program.at_work():
        assert command("stop", program.pid).stderr == f"gotrace: process {program.pid} is not recording\n"
        assert command("start", program.pid).ok().stdout == f"gotrace: recording to {program.trace}\n"
        assert command("start", program.pid).stderr == f"gotrace: process {program.pid} is recording already\n"
        assert command("snapshot", program.pid).ok().stdout == f"gotrace: written to {program.trace}\n"
        gotools.check_all(program.trace)
        assert "is no flight recorder" in command("snapshot", program.pid, tmp_path / "mine").stderr
        stopped = command("stop", program.pid).ok().stdout
        assert stopped.startswith(f"gotrace: {program.trace}: ") and "nothing lost" in stopped
        assert os.listdir(f"/proc/{program.pid}/fd") == before
        command("start", program.pid).ok()
    assert os.listdir(f"/proc/{program.pid}/task") == [str(program.pid)]
    assert program.end().count("nothing lost") == 2
    for trace in program.trace, f"{program.trace}.2":
        gotools.check_all(trace)
        assert {e.m for e in events_of(trace) if e.goid is not None and e.old == "Undetermined"} == {program.pid}


def is_idle(program):
    return open(f"/proc/{program.pid}/syscall").read().startswith("0 ")  # read


def test_program_that_makes_no_call(tmp_path):
    """The command says so, and that is the end of it: what it wanted is not done later."""
    program = AloneControl(tmp_path)
    proc.until(lambda: is_idle(program))
    result = command("start", program.pid)
    assert result.returncode == 1 and "made no call that may block for 5 s" in result.stderr, result
    for _ in range(5):
        program.poke()
    assert program.end() == "" and not program.trace.exists()


def test_command_that_was_killed(tmp_path):
    """What it asked for is not done when nobody waits for it any more."""
    program = AloneControl(tmp_path)
    proc.until(lambda: is_idle(program))
    asking = program.asks("start", program.pid)
    proc.kill_group(asking)
    time.sleep(3.1)  # the command stays valid for 2 s (LEASE_S in scripts/tool/alone.c), counted in whole seconds
    with program.at_work():
        assert "is not recording" in command("stop", program.pid).stderr
    assert program.end() == "" and not program.trace.exists()


def test_commands_of_several(tmp_path):
    """They take turns; each is done or refused for what the others did."""
    program = AloneControl(tmp_path)
    results = []

    def ask():
        for i in range(15):
            results.append(command(("start", "stop")[i % 2], program.pid))

    with program.at_work():
        askers = [threading.Thread(target=ask) for _ in range(4)]
        for asker in askers:
            asker.start()
        for asker in askers:
            asker.join()
        command("stop", program.pid)
    program.end()
    done = [result.argv[1] for result in results if result.returncode == 0]
    refused = [result for result in results if result.returncode]
    assert len(done) + len(refused) == 60 and {"start", "stop"} == set(done)
    for result in refused:
        assert re.search("is recording already|is not recording", result.stderr), result
    traces = list(tmp_path.iterdir())
    assert len(traces) == done.count("start")
    for go in gotools.readers_of("go1.23").values():
        result = proc.run([gotools.read_all(go), *traces], timeout=120).ok()
        assert not result.stdout, result.stdout[:2000]


class Single(Alone, Running):
    """A program of test/single/control, that goes on when its standard input says so."""

    def __init__(self, tmp_path, name, env=MANUAL):
        (tmp_path / "traces").mkdir()
        super().__init__([SINGLE / "control" / name], tmp_path / "traces/t.out", env)


def test_threads_come_meanwhile(tmp_path):
    """The command asks our thread then, and nothing is done twice."""
    program = Single(tmp_path, "late_thread")
    proc.until(lambda: is_idle(program))
    asking = program.asks("start", program.pid)
    program.poke()
    out, err = asking.communicate(timeout=20)
    assert (asking.returncode, out) == (0, f"gotrace: recording to {program.trace}\n"), err
    assert "nothing lost" in command("stop", program.pid).ok().stdout
    program.end()
    assert list(program.trace.parent.iterdir()) == [program.trace]


def test_program_execs_meanwhile(tmp_path):
    """Nothing is written into the memory of what it has become."""
    program = Single(tmp_path, "becomes_cat")
    proc.until(lambda: is_idle(program))
    asking = program.asks("start", program.pid)
    program.poke()
    err = asking.communicate(timeout=20)[1]
    assert asking.returncode == 1 and "become another program" in err, err
    program.end()


@pytest.mark.parametrize("mode", ["auto", "manual"])
@pytest.mark.parametrize("who", ["parent", "child"])
def test_only_the_process_that_is_meant(tmp_path, who, mode):
    """A forked child without threads can be told to record, and is not when its parent is."""
    program = Single(tmp_path, "two", {"GOTRACE_START": mode})
    child = int(program.child.stdout.readline())
    pid, trace = (program.pid, program.trace) if who == "parent" else (child, f"{program.trace}.{child}")
    with program.at_work():
        if (who, mode) == ("child", "auto"):
            assert "is not recording" in command("stop", pid).stderr
        if (who, mode) == ("parent", "auto"):
            assert "is recording already" in command("start", pid).stderr
        else:
            assert command("start", pid).ok().stdout == f"gotrace: recording to {trace}\n"
    program.end()
    expected = {str(trace)} | ({str(program.trace)} if mode == "auto" else set())
    assert {str(path) for path in program.trace.parent.iterdir()} == expected
    gotools.check_all(trace)
    assert {e.m for e in events_of(trace) if e.goid is not None and e.old == "Undetermined"} == {pid}


def test_program_under_seccomp(tmp_path):
    """What a command needs may be forbidden to it on pain of death."""
    program = Single(tmp_path, "under_seccomp")
    program.child.stdout.readline()
    with program.at_work():
        assert "is under seccomp(2)" in command("start", program.pid).stderr
    assert program.end() == "" and not program.trace.exists()


def unattended_of(pid):
    """Where gt_drain_unattended is in the process's memory."""
    maps = open(f"/proc/{pid}/maps").read()
    base, library = re.search(r"^(\w+)-\w+ r--p 00000000 \S+ \S+ +(/.*/libgotrace.so)$", maps, re.M).groups()
    symbols = proc.run(["nm", library]).ok().stdout
    return int(base, 16) + int(re.search(r"^(\w+) b gt_drain_unattended$", symbols, re.M)[1], 16)


@pytest.mark.alone
def test_threads_are_not_slowed(running):
    """A kick that comes too late, when our thread does such things, is taken back."""
    program = running(GOTRACE_START="manual")
    at = unattended_of(program.pid)
    with open(f"/proc/{program.pid}/mem", "r+b", buffering=0) as memory:
        def attended():
            memory.seek(at)
            return memory.read(4) == bytes(4)

        assert attended()
        memory.seek(at)
        memory.write(b"\1\0\0\0")
        program.poke()
        proc.until(attended)
    program.end()


def test_a_kick_leaves_the_other_bits(tmp_path):
    """One of them holds the program's threads while its file is completed."""
    program = Single(tmp_path, "late_thread")
    proc.until(lambda: is_idle(program))
    at = unattended_of(program.pid)
    with open(f"/proc/{program.pid}/mem", "r+b", buffering=0) as memory:
        def bits():
            memory.seek(at)
            return memory.read(4)

        memory.seek(at)
        memory.write(b"\0\1\0\0")
        asking = program.asks("start", program.pid)
        proc.until(lambda: bits() != b"\0\1\0\0")
        assert bits() == b"\1\1\0\0"
    program.poke()
    assert asking.communicate(timeout=20) and asking.returncode == 0
    program.end()
