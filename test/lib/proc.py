"""Runs programs, bare or traced, so that none of them outlives its test.

Every program gets a session, and so a process group, of its own. When its time is over the whole group is killed and
the test fails; `kill_all` does the same for whatever a test that failed or timed out has left behind.
"""

import contextlib
import dataclasses
import fcntl
import functools
import inspect
import os
import pathlib
import pty
import re
import shlex
import shutil
import signal
import struct
import subprocess
import termios
import threading
import time

import pytest

from . import AARCH64, BUILD, LIBRARY, ROOT

EVERY_YIELD = {"GOTRACE_SYSCALL_MIN": "0"}  # is written, whatever it takes

CROSS = {name: [f"aarch64-linux-gnu-{name}"] for name in ("gcc", "g++")} | {
    name: [name, "--target=aarch64-linux-gnu"] for name in ("clang", "clang++")
}

_END = b"\0the end\0"  # of what a terminal shows

_live = set()
urgent = False  # what is started from here on has a CPU when it wants one, and so have its children: the mark `urgent`


class Hang(AssertionError):
    """A program did not end in time."""


@dataclasses.dataclass
class Result:
    argv: list
    env: dict  # what was set on top of our own environment
    returncode: int  # negative: ended by that signal
    stdout: str
    stderr: str
    seconds: float
    trace: pathlib.Path = None  # only from traced()

    def __str__(self):
        return (
            f"repeat: {repeat(self.argv, self.env)}\n"
            f"returncode {self.returncode} after {self.seconds:.2f} s\n"
            f"--- stdout\n{self.stdout}\n--- stderr\n{self.stderr}"
        )

    def ok(self):
        """Returns self if the program ended with status 0, and fails the test otherwise."""
        assert self.returncode == 0, str(self)
        return self


def repeat(argv, env):
    """The shell command that runs this again."""
    settings = [f"{name}={shlex.quote(value)}" for name, value in env.items()]
    return " ".join(["env", *settings, *map(shlex.quote, argv)] if env else map(shlex.quote, argv))


@functools.cache
def _may_be_urgent():
    return subprocess.run(["chrt", "-f", "1", "true"], stderr=subprocess.DEVNULL).returncode == 0


def _be_urgent():
    """The least real-time priority."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


def spawn(argv, *, env=None, **popen):
    """Starts a program in a process group of its own. End it with `stop`."""
    if urgent and _may_be_urgent():
        popen["preexec_fn"] = _be_urgent
    emulator = _emulator(argv[0])
    if AARCH64 and not emulator and "LD_PRELOAD" in (env or {}):
        pytest.skip(f"{argv[0]} is not there for aarch64")
    argv = [*emulator, *map(str, argv)]
    popen.setdefault("stdin", subprocess.DEVNULL)
    child = subprocess.Popen(argv, env=os.environ | _strings(env), start_new_session=True, **popen)
    _live.add(child)
    return child


def kill_group(child):
    """Kills the program and everything in its process group, and reaps it."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.wait()
    _live.discard(child)


def stop(child, *, sig=signal.SIGTERM, timeout=10):
    """Asks a program to end, kills what is left of its group, and returns its return code."""
    child.send_signal(sig)
    try:
        return child.wait(timeout)
    except subprocess.TimeoutExpired as error:
        raise Hang(f"pid {child.pid} still runs {timeout} s after signal {sig}: {child.args}") from error
    finally:
        kill_group(child)


def kill_all():
    for child in list(_live):
        kill_group(child)


def run(argv, *, env=None, timeout=90, cwd=None, stdin=None):
    """Runs a program to its end. `stdin` is text or None; `timeout` in seconds, after which the test fails."""
    env = _strings(env)
    begin = time.monotonic()
    child = spawn(
        argv,
        env=env,
        cwd=cwd,
        stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    try:
        stdout, stderr = child.communicate(stdin, timeout)
    except subprocess.TimeoutExpired:
        kill_group(child)
        stdout, stderr = child.communicate()
        raise Hang(
            f"killed after {timeout} s\nrepeat: {repeat(child.args, env)}\n"
            f"--- stdout\n{stdout}\n--- stderr\n{stderr}"
        ) from None
    finally:
        kill_group(child)
    return Result(child.args, env, child.returncode, stdout, stderr, time.monotonic() - begin)


def on_terminal(argv, *, columns=80, says="", env=None, timeout=90):
    """Runs a program on a terminal that says `says`. What it shows, without carriage returns, is the result's stdout."""
    env, begin = _strings(env), time.monotonic()
    reader, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    child = spawn(argv, env=env, stdin=terminal, stdout=terminal, stderr=terminal)
    os.write(reader, says.encode())

    def mark_end():
        """A terminal that nobody has open may lose what was not read yet. So it stays open, and its end is a mark."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout)
        kill_group(child)
        os.write(terminal, _END)

    ender = threading.Thread(target=mark_end)
    ender.start()
    shown = b""
    while not shown.endswith(_END):
        shown += os.read(reader, 65536)
    ender.join()
    os.close(reader)
    os.close(terminal)
    shown = shown.removesuffix(_END).decode(errors="replace").replace("\r\n", "\n")
    return Result(child.args, env, child.returncode, shown, "", time.monotonic() - begin)


def until(condition, seconds=30, *, child=None, pause=0.01):
    """
    Waits until the condition holds, and returns its value. The test fails if that takes longer than `seconds`, or if the
    program `child` ends before.
    """
    end = time.monotonic() + seconds
    while True:
        ended = child and child.poll() is not None
        if value := condition():
            return value
        if ended or time.monotonic() >= end:
            why = f"the program has ended with {child.returncode}" if ended else f"{seconds} s are over"
            raise AssertionError(f"{why}, and this does not hold: {inspect.getsource(condition).strip()}")
        time.sleep(pause)


def drain_thread(pid):
    """The folder below /proc of the library's thread, as soon as there is exactly one thread that calls itself so."""
    tasks = pathlib.Path(f"/proc/{pid}/task")

    def name(task):
        with contextlib.suppress(OSError):  # it may end meanwhile
            return (task / "comm").read_text()

    named = lambda: [task for task in tasks.iterdir() if name(task) == "gotrace\n"]
    return until(lambda: len(found := named()) == 1 and found[0])


def traced_env(trace, env=None):
    return {"LD_PRELOAD": str(LIBRARY), "GOTRACE_OUTPUT": str(trace)} | _strings(env)


def traced(argv, trace, *, env=None, **options):
    """Runs a program under libgotrace.so, which writes to the file `trace`. Takes what `run` takes."""
    result = run(argv, env=traced_env(trace, env), **options)
    result.trace = pathlib.Path(trace)
    return result


def compile(source, output, *flags, compiler="gcc"):
    """Compiles one C or C++ file given as text or as a path; returns the program's path."""
    if isinstance(source, str):
        text, source = source, pathlib.Path(f"{output}{'.cc' if '++' in compiler else '.c'}")
        source.write_text(text)
    run([compiler, "-D_GNU_SOURCE", "-g", "-O1", "-pthread", source, "-o", output, *flags], cwd=ROOT, timeout=60).ok()
    return pathlib.Path(output)


def may_sample_kernel():
    """Whether the kernel may sample itself for us: CAP_PERFMON, or CAP_SYS_ADMIN, or a setting."""
    caps = int(re.search(r"^CapEff:\t(\w+)$", pathlib.Path("/proc/self/status").read_text(), re.M)[1], 16)
    paranoid = pathlib.Path("/proc/sys/kernel/perf_event_paranoid")
    return caps & (1 << 38 | 1 << 21) or paranoid.exists() and int(paranoid.read_text()) <= 1


def use_cross_compilers():
    """From here on `gcc`, `strip` and the like are those for aarch64, for tests and for the programs that they run."""
    there = BUILD / "compilers"
    there.mkdir(exist_ok=True)
    for name, command in CROSS.items():
        if shutil.which(command[0]):
            (there / name).write_text(f'#!/bin/sh\nexec {shutil.which(command[0])} {" ".join(command[1:])} "$@"\n')
            (there / name).chmod(0o755)
    os.environ["PATH"] = f"{there}:/usr/aarch64-linux-gnu/bin:{os.environ['PATH']}"


def _emulator(program):
    """What stands before a program of another architecture on the command line. It is static: it takes no preload itself."""
    if not AARCH64 or not _is_for_aarch64(program):
        return []
    return ["qemu-aarch64-static", "-L", str(BUILD / "root")]


def _is_for_aarch64(program):
    try:
        with open(program, "rb") as file:
            head = file.read(20)
    except OSError:
        return False
    return head[:4] == b"\x7fELF" and head[18:] == b"\xb7\0"


def _strings(env):
    return {name: str(value) for name, value in (env or {}).items()}
