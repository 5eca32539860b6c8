"""Debuggers and other tracers on test/prog/debugged.c, bare and under the library.

They find the same threads in the same functions, take no longer and have nothing more to complain about; the program
goes on, and its trace is whole.
"""

import contextlib
import os
import re
import resource
import shutil
import signal
import subprocess

import pytest

from lib import LIBC, LIBRARY, PROGRAMS, SINGLE, apps, gotools, proc

PROGRAM = PROGRAMS / "debugged"
FUNCTIONS = {"main", "thread_work", "wait_for_mutex", "wait_for_condition", "wait_for_input", "wait_for_command"}
TRUTH = sorted(
    [("wait_for_command", "main")]
    + [(wait, "thread_work") for wait in ("wait_for_mutex", "wait_for_condition", "wait_for_input")]
)
STATUS, COUNTED = 7, "counted 3000\n"
SLOWER = 1.0  # seconds that a tool may take longer than with the program bare

RECORDINGS = {"file": {}, "ring": {"GOTRACE_RING": "30s"}}
recordings = pytest.mark.parametrize("recording", RECORDINGS)

# What gdb says of every file that a core file names and that has no name any more. The memory itself is in the core.
CONTROL_NAME = "/memfd:gotrace-control (deleted)"
CONTROL_PAGE = f"warning: Can't open file {CONTROL_NAME} during file-backed mapping note processing"


def needs(*commands):
    missing = [command for command in commands if not shutil.which(command)]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {' '.join(missing)}")


# --- the program


def maps_of(pid):
    """What is mapped: {name: [(first address, end)]}."""
    found = {}
    with open(f"/proc/{pid}/maps") as file:
        for words in (line.split(maxsplit=5) for line in file):
            if len(words) == 6:
                span = tuple(int(address, 16) for address in words[0].split("-"))
                found.setdefault(words[5].strip(), []).append(span)
    return found


class Debugged:
    """The program, with all its threads in their functions, and, traced, what symbols are read with loaded."""

    def __init__(self, env, argv=(PROGRAM,), **options):
        pipe = subprocess.PIPE
        self.child = proc.spawn(argv, env=env, stdin=pipe, stdout=pipe, stderr=pipe, text=True, **options)
        self.pid = self.child.pid
        assert self.child.stdout.readline() == "ready\n"
        proc.until(lambda: not env or any("libdw" in name for name in maps_of(self.pid)), child=self.child)

    def end(self):
        """What it writes to standard error when it goes on to its end."""
        out, err = self.child.communicate("x", timeout=20)
        assert (self.child.returncode, out) == (STATUS, COUNTED), err
        proc.kill_group(self.child)
        return err


@contextlib.contextmanager
def standing(env):
    program = Debugged(env)
    yield program
    program.err = program.end()


def check_trace(trace, text):
    apps.check_traces(trace, text)
    assert apps.created(trace) == 3


# --- the tools: (argv to attach to a process, what it prints of a process)


def gdb(*commands, target=()):
    return ["gdb", "-nx", "-batch", *(word for command in commands for word in ("-ex", command)), *target]


BACKTRACE = "thread apply all bt"
ATTACHED = {
    "gdb": lambda pid: gdb(BACKTRACE, target=["-p", pid]),
    "eu-stack": lambda pid: ["eu-stack", "-p", pid],
    "lldb": lambda pid: ["lldb", "-X", "-b", "-p", pid, "-o", "thread backtrace all", "-o", "detach"],
}

_THREAD = re.compile(r"^(?:Thread \d+ \(|TID \d+:|[* ] thread #)", re.M)
_FRAME = re.compile(r"^[ *]*(?:frame )?#\d+:? +(?:0x\w+ +)?(?:in )?(?:[^\s`(]+`)?(\w+)", re.M)


def stacks(text):
    """The program's own functions in each thread's stack, innermost first, as any of these tools shows them."""
    text = text[max(0, text.find("(lldb) thread backtrace all")) :]  # lldb names some when it stops them, too
    found = [tuple(f for f in _FRAME.findall(part) if f in FUNCTIONS) for part in _THREAD.split(text)[1:]]
    return sorted(stack for stack in found if stack)  # the library's own thread has none


def complaints(result):
    """Without addresses and numbers, which are others in each process, and without frames, whose names report errors."""
    lines = (result.stdout + result.stderr).splitlines()
    lines = [line for line in lines if not line.startswith("#") and re.search("warn|error|fail|can't|cannot|unable|missing", line, re.I)]
    return {re.sub(r"0x[0-9a-f]+|\d+", "N", line) for line in lines}


def as_fast(bare, traced):
    """The results of two functions that run a tool: on the bare program, and on the traced one."""
    first, second = bare(), traced()
    assert second.seconds <= first.seconds + SLOWER, f"bare: {first}\ntraced: {second}"
    return first, second


def same_answers(look, tmp_path, recording, *, but=()):
    """`look(pid)` runs a tool on the process."""
    trace = tmp_path / "t.out"
    texts = []

    def bare():
        with standing({}) as program:
            return look(program.pid)

    def traced():
        with standing(proc.traced_env(trace, RECORDINGS[recording])) as program:
            result = look(program.pid)
        texts.append(program.err)
        return result

    first, second = as_fast(bare, traced)
    assert stacks(first.stdout) == stacks(second.stdout) == TRUTH, f"bare: {first}\ntraced: {second}"
    assert second.returncode == first.returncode, f"bare: {first}\ntraced: {second}"
    assert complaints(second) - complaints(first) <= set(but), f"bare: {first}\ntraced: {second}"
    check_trace(trace, texts[-1])
    return first, second


@pytest.mark.measured
@recordings
@pytest.mark.parametrize("tool", [pytest.param(name, marks=needs(name)) for name in ATTACHED])
@pytest.mark.limit(120)
def test_attached(tmp_path, tool, recording):
    same_answers(lambda pid: proc.run(ATTACHED[tool](pid)), tmp_path, recording)


@pytest.mark.measured
@recordings
@needs("gdb")
@pytest.mark.limit(120)
def test_gdb_reads_its_commands(tmp_path, recording):
    """From a pipe and from a terminal: none of them goes to a file that it opens."""
    commands = f"set height 0\n{BACKTRACE}\necho gdb still reads\\n\ndetach\nquit\n"

    def from_pipe(pid):
        return proc.run(["gdb", "-nx", "-q", "-p", pid], stdin=commands)

    def from_terminal(pid):
        return proc.on_terminal(["gdb", "-nx", "-q", "-p", pid], says=commands, env={"TERM": "dumb"})

    for look in from_pipe, from_terminal:
        for result in same_answers(look, tmp_path, recording):
            assert re.search("^(.gdb. )?gdb still reads", result.stdout, re.M), str(result)


@pytest.mark.measured
@recordings
@needs("gdb", "gcore", "eu-stack")
@pytest.mark.limit(120)
def test_core_of_a_running_program(tmp_path, recording):
    """Taken by gcore; gdb reads it at once, eu-stack when the process has gone."""
    cores = []

    def take(pid):
        result = proc.run(["gcore", "-o", tmp_path / "core", pid], timeout=60).ok()
        cores.append(tmp_path / f"core.{pid}")
        readable = proc.run(gdb(BACKTRACE, target=[PROGRAM, cores[-1]])).ok()
        result.stdout = readable.stdout
        result.stderr += readable.stderr
        return result

    same_answers(take, tmp_path, recording, but=[CONTROL_PAGE])
    for core in cores:
        result = proc.run(["eu-stack", "--core", core, "-e", PROGRAM]).ok()
        assert stacks(result.stdout) == TRUTH and not complaints(result), str(result)
        core.unlink()


@pytest.mark.foreign
@recordings
@needs("gdb", "prlimit")
def test_core_of_a_program_that_crashed(tmp_path, recording):
    with open("/proc/sys/kernel/core_pattern") as file:
        pattern = file.read().strip()
    if pattern.startswith(("|", "/")) or resource.getrlimit(resource.RLIMIT_CORE)[1] != resource.RLIM_INFINITY:
        pytest.skip(f"no core files here: {pattern}")
    results = []
    for env in {}, proc.traced_env(tmp_path / "t.out", RECORDINGS[recording]):
        program = Debugged(env, ["prlimit", "--core=unlimited", PROGRAM], cwd=tmp_path)
        assert proc.stop(program.child, sig=signal.SIGSEGV) == -signal.SIGSEGV
        (core,) = tmp_path.glob(pattern.split("%")[0] + "*")
        results.append(proc.run(gdb(BACKTRACE, target=[PROGRAM, core])).ok())
        core.unlink()
    bare, traced = results
    assert stacks(bare.stdout) == stacks(traced.stdout) == TRUTH, f"bare: {bare}\ntraced: {traced}"
    assert complaints(traced) - complaints(bare) <= {CONTROL_PAGE}, f"bare: {bare}\ntraced: {traced}"


# --- what they see of us


@pytest.mark.foreign
@recordings
def test_every_name_is_that_of_a_file(tmp_path, recording):
    """Nothing that others read of the process names what is something else, or nothing, to them."""
    with standing({}) as program:
        before = set(maps_of(program.pid))
    with standing(proc.traced_env(tmp_path / "t.out", RECORDINGS[recording])) as program:
        names = set(maps_of(program.pid)) - before
        assert names and all(os.path.isfile(name) for name in names - {CONTROL_NAME}), names


@pytest.mark.foreign
@recordings
def test_one_page_begins_as_the_library(tmp_path, recording):
    """Of a core file eu-stack takes each page with an ELF header for a library, as far as that one would reach."""
    with standing(proc.traced_env(tmp_path / "t.out", RECORDINGS[recording])) as program, open(f"/proc/{program.pid}/maps") as file:
        firsts = [line for line in file if line.rstrip().endswith(str(LIBRARY)) and line.split()[2] == "00000000"]
        assert len(firsts) == 1, firsts


@pytest.mark.foreign
@recordings
@needs("gdb")
def test_gdb_sees_one_libc(tmp_path, recording):
    """Functions that are called by hand are those that the program calls."""
    for env in {}, proc.traced_env(tmp_path / "t.out", RECORDINGS[recording]):
        with standing(env) as program:
            commands = ["info sharedlibrary", "frame function main", 'print/x (long)strdup("a copy")']
            result = proc.run(gdb(*commands, target=["-p", program.pid]))
            if not env and "Couldn't write extended state status" in result.stderr:
                pytest.skip("this gdb cannot call functions on this processor, without the library either")
            text = result.ok().stdout
            libraries = re.findall(r"^0x.*\s(/\S+)$", text, re.M)
            ((lo, hi),) = maps_of(program.pid)["[heap]"]
            assert lo <= int(re.search(r"^\$1 = (0x\w+)$", text, re.M)[1], 16) < hi, text
            assert sorted(set(libraries)) == sorted(libraries) and "libc.so.6" in str(libraries), text
            assert bool(env) == (str(LIBRARY) in libraries) and "libdebuginfod" not in str(libraries), text
            assert LIBC < 34 or "libdw" not in str(libraries), text  # before that it is among the program's


# --- what runs the program


def ran(tool, program, recording, trace, **options):
    """What `tool`, the beginning of a command, says of a program, bare and traced: the file `tool.log`, if it is there,
    becomes the beginning of the result's stderr."""
    log = trace.parent / "tool.log"

    def run(env):
        result = proc.run([*tool, "env", *(f"{name}={value}" for name, value in env.items()), *program], **options)
        if log.exists():
            result.stderr = log.read_text() + result.stderr
        return result

    bare, traced = as_fast(lambda: run({}), lambda: run(proc.traced_env(trace, RECORDINGS[recording])))
    assert complaints(traced) <= complaints(bare), f"bare: {bare}\ntraced: {traced}"
    apps.check_traces(trace, traced.stderr)
    return bare, traced


@pytest.mark.measured
@recordings
@needs("gdb")
@pytest.mark.limit(120)
def test_gdb_runs_the_program(tmp_path, recording):
    """By commands from a pipe."""
    trace, enough = tmp_path / "t.out", tmp_path / "enough"
    enough.write_text("x")
    commands = f"set height 0\nrun <{enough}\necho gdb still reads\\n\nprint $_exitcode\nquit\n"

    def run(env):
        settings = " ".join(f"{name}={value}" for name, value in env.items())
        argv = ["gdb", "-nx", "-q", "-ex", f"set exec-wrapper env {settings}", PROGRAM]
        return proc.run(argv, stdin=commands).ok()

    bare, traced = as_fast(lambda: run({}), lambda: run(proc.traced_env(trace, RECORDINGS[recording])))
    for result in bare, traced:
        # gdb reports threads' ends in the same lines
        assert COUNTED in result.stdout, str(result)
        assert re.search(r"gdb still reads\n(.gdb. )?\$1 = 7\n", result.stdout), str(result)
    assert complaints(traced) <= complaints(bare), f"bare: {bare}\ntraced: {traced}"
    gotools.check_all(trace)


@pytest.mark.measured
@recordings
@needs("strace")
def test_strace(tmp_path, recording):
    tool = ["strace", "-f", "-o", tmp_path / "tool.log", "-e", "trace=read,exit_group"]
    for result in ran(tool, [PROGRAM], recording, tmp_path / "t.out", stdin="x"):
        assert (result.returncode, result.stdout) == (STATUS, "ready\n" + COUNTED), str(result)
        assert len(re.findall(r'"x", 1\) += 1$', result.stderr, re.M)) == 1, str(result)
        assert len(re.findall(rf"exit_group\({STATUS}\b", result.stderr)) == 1, str(result)
        assert len(re.findall(r"^\d+ +\+\+\+ exited with 0 \+\+\+$", result.stderr, re.M)) >= 3, str(result)


@pytest.mark.measured
@recordings
@needs("ltrace")
def test_ltrace(tmp_path, recording):
    program = SINGLE / "debuggers/one_after_the_other"
    for result in ran(["ltrace", "-f", "-o", tmp_path / "tool.log"], [program], recording, tmp_path / "t.out"):
        assert (result.returncode, result.stdout) == (0, "one\ntwo\nthree\n"), str(result)
        called = re.findall(r"^\d+ (pthread_create|usleep|puts)\(", result.stderr, re.M)
        assert called == 3 * ["pthread_create", "usleep", "puts"], str(result)


@pytest.mark.measured
@recordings
@needs("perf")
@pytest.mark.limit(120)
@pytest.mark.long
def test_perf(tmp_path, recording):
    """test/prog/cpu.c knows where its CPU time goes."""
    data = tmp_path / "perf.data"
    if proc.run(["perf", "record", "-q", "-o", data, "true"]).returncode:
        pytest.skip("perf may not record here")
    ran(["perf", "record", "-q", "-g", "-o", data], [PROGRAMS / "cpu", "0.3"], recording, tmp_path / "t.out")
    for name in data, f"{data}.old":  # the bare one's is the older
        argv = ["perf", "report", "-i", name, "--stdio", "--no-children", "-g", "none", "-F", "overhead,sym"]
        text = proc.run(argv).ok().stdout
        shares = [float(re.search(rf"([\d.]+)% +\[\.\] {leaf}", text)[1]) for leaf in ("three_quarters", "one_quarter")]
        assert 0.7 < shares[0] / sum(shares) < 0.8, text
