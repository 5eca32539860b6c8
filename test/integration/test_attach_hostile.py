"""`gotrace attach` where others interfere: a process dies, sends signals, debugs, attaches as well (test/prog/attached.c).

ATTACH_KILLS=100 for how often each is tried.
"""

import contextlib
import os
import platform
import re
import shutil
import signal
import subprocess
import threading
import time

import pytest

from lib import LIBC, PROGRAMS, ROOT, proc
from lib.seeds import seeded

GOTRACE = ROOT / "build/gotrace"
ATTACHED = PROGRAMS / "attached"
TIMES = int(os.environ.get("ATTACH_KILLS", "4"))
REFUSALS = ("is being debugged", "is stopped", "being attached to just now", "has libgotrace.so already", "is recording already", "there is no process", "has ended")

pytestmark = [
    pytest.mark.skipif(platform.machine() != "x86_64", reason="attaching is there for x86-64 only"),
    pytest.mark.skipif(LIBC < 34, reason="nothing is attached to where threads are a library of their own"),
    pytest.mark.limit(60 + 4 * TIMES),
]


@contextlib.contextmanager
def running(*what):
    """attached.c, which goes round, and says so at the end; nothing has happened to it."""
    child = proc.spawn([ATTACHED, *what], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "ready\n"
        yield child
        out, _ = child.communicate(timeout=30)
        assert child.returncode == 0 and re.fullmatch(r"\d+ rounds\n", out), (child.returncode, out)
    finally:
        proc.kill_group(child)


def begin(command, *argv):
    return proc.spawn([GOTRACE, command, *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def outcome(command):
    """(status, what it said)"""
    try:
        out, err = command.communicate(timeout=60)
    finally:
        proc.kill_group(command)
    return command.returncode, out + err


def attach(trace, pid):
    return outcome(begin("attach", "-o", trace, pid))


def detach(pid):
    assert outcome(begin("detach", pid))[0] == 0


@pytest.fixture(scope="module")
def length(tmp_path_factory):
    """How long an attach takes, in seconds."""
    with running("calls") as program:
        started = time.monotonic()
        assert attach(tmp_path_factory.mktemp("length") / "t.out", program.pid)[0] == 0
        taken = time.monotonic() - started
        detach(program.pid)
    return taken


MODES = ["calls", "sleeper", "many 20", "signals"]


@pytest.mark.chance
@pytest.mark.parametrize("what", MODES)
def test_command_killed_at_random(tmp_path, length, what):
    """The program goes on, and can be attached to later."""
    moments, latest, times, killed = seeded(moments=True), length, 0, 0
    while times < TIMES or not killed:
        with running(*what.split()) as program:
            command = begin("attach", "-o", tmp_path / "t.out", program.pid)
            time.sleep(moments.uniform(0, latest))
            command.kill()
            in_time = outcome(command)[0] == -signal.SIGKILL
        killed += in_time
        times += 1
        latest *= 1 if in_time else 0.5  # the machine was slower when `length` was measured
    with running(*what.split()) as program:
        command = begin("attach", "-o", tmp_path / "t.out", program.pid)
        time.sleep(length / 3)
        command.kill()
        outcome(command)
        status, said = attach(tmp_path / "later.out", program.pid)
        assert status == 0 or "is recording already" in said, said
        detach(program.pid)


@pytest.mark.chance
@pytest.mark.parametrize("what", ["calls", "many 20"])
def test_program_killed_at_random(tmp_path, length, what):
    """The command ends, and says that the program has."""
    moments = seeded(moments=True)
    for _ in range(TIMES):
        child = proc.spawn([ATTACHED, *what.split()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert child.stdout.readline() == "ready\n"
        command = begin("attach", "-o", tmp_path / "t.out", child.pid)
        time.sleep(moments.uniform(0, length))
        proc.kill_group(child)
        status, said = outcome(command)
        assert status in (0, 1) and (status == 0 or str(child.pid) in said), said


@pytest.mark.chance
@pytest.mark.parametrize("what", ["signals", "closes"])
def test_interfering_program(tmp_path, what):
    """Signals come to the thread that is borrowed, and no other than without us; or what is open is closed."""
    for i in range(TIMES):
        with running(*what.split()) as program:
            status, said = attach(tmp_path / f"{i}.out", program.pid)
            assert status == 0, said
            detach(program.pid)


@pytest.mark.limit(60 + 20 * TIMES)  # the command tries for 12 s
@pytest.mark.long
def test_program_that_executes_another(tmp_path):
    """It is attached to, or the command says that it has gone; its next incarnation goes on."""
    with running("execs") as program:
        for i in range(TIMES):
            status, said = attach(tmp_path / f"{i}.out", program.pid)
            assert status in (0, 1) and (status == 0 or f"process {program.pid}" in said), said
            assert program.poll() is None


@pytest.mark.chance
def test_program_that_ends(tmp_path, length):
    moments = seeded(moments=True)
    for _ in range(TIMES):
        with running("calls") as program:
            command = begin("attach", "-o", tmp_path / "t.out", program.pid)
            time.sleep(moments.uniform(0, length))
        status, said = outcome(command)
        assert status in (0, 1) and (status == 0 or str(program.pid) in said), said


@pytest.mark.chance
def test_stopped_and_continued(tmp_path):
    """By SIGSTOP and SIGCONT, all the time: it is attached to, or refused; and goes on when the last of these has come."""
    moments, over = seeded(moments=True), threading.Event()

    def stop_and_go(pid):
        while not over.is_set():
            os.kill(pid, signal.SIGSTOP)
            time.sleep(moments.uniform(0, 0.004))
            os.kill(pid, signal.SIGCONT)
            time.sleep(moments.uniform(0, 0.01))

    for what in ("many 20", "locks") * ((TIMES + 1) // 2):
        over.clear()
        with running(*what.split()) as program:
            storm = threading.Thread(target=stop_and_go, args=(program.pid,))
            storm.start()
            try:
                status, said = attach(tmp_path / "t.out", program.pid)
            finally:
                over.set()
                storm.join()
            assert status == 0 or f"process {program.pid} " in said, said


@pytest.mark.chance
@pytest.mark.long
def test_two_at_once(tmp_path):
    """One is first; the other one finds that, or joins in. Then one detach is enough."""
    for i in range(TIMES):
        with running("many", "20") as program:
            said = [outcome(c) for c in [begin("attach", "-o", tmp_path / f"{i}.{k}", program.pid) for k in range(2)]]
            assert 0 in [status for status, _ in said], said
            assert all(status == 0 or any(text in words for text in REFUSALS) for status, words in said), said
            detach(program.pid)


@pytest.mark.chance
def test_looked_at_meanwhile(tmp_path):
    """By `gotrace stacks`, again and again."""
    over, looks = threading.Event(), []

    def look(pid):
        while not over.is_set():
            looks.append(outcome(begin("stacks", pid))[0])

    for i in range(TIMES):
        over.clear()
        with running("many", "20") as program:
            looker = threading.Thread(target=look, args=(program.pid,))
            looker.start()
            try:
                status, said = attach(tmp_path / "t.out", program.pid)
            finally:
                over.set()
                looker.join()
            assert status == 0 or any(text in said for text in REFUSALS), said
    assert 0 in looks


DEBUGGERS = {
    "strace": lambda pid, log: ["strace", "-f", "-o", log, "-p", pid],
    "gdb": lambda pid, log: ["gdb", "-nx", "-q", "-batch", "-ex", "continue", "-p", pid],
}


@pytest.mark.chance
@pytest.mark.parametrize("debugger", DEBUGGERS)
def test_debugged(tmp_path, debugger):
    """It is refused, and nothing happens; when the debugger has gone it is attached to."""
    if not shutil.which(debugger):
        pytest.skip(f"{debugger} is not here; ./scripts/deps all installs it")
    with running("many", "20") as program:  # in calls that are made again: debuggers interrupt them
        other = proc.spawn(DEBUGGERS[debugger](program.pid, tmp_path / "log"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            tasks = f"/proc/{program.pid}/task"
            statuses = lambda: [open(f"{tasks}/{t}/status").read() for t in os.listdir(tasks)]
            proc.until(lambda: not any("TracerPid:\t0\n" in status for status in statuses()), child=other)
            status, said = attach(tmp_path / "t.out", program.pid)
            assert status == 1 and "debug" in said, said
            assert proc.stop(other, sig=signal.SIGINT) is not None
        finally:
            proc.kill_group(other)
        os.kill(program.pid, signal.SIGCONT)
        assert attach(tmp_path / "t.out", program.pid)[0] == 0
        detach(program.pid)
