"""A signal ends a recorded program as it would bare; what the program had done by then is in the trace."""

import os
import re
import signal
import struct
import time

import pytest

from lib import LIBRARY, PROGRAMS, ROOT, gotools, proc
from lib.reports import GOTRACE

TOLD = PROGRAMS / "told"
DEADLY = ["TERM", "INT", "HUP", "QUIT", "PIPE", "ALRM", "USR1", "USR2", "VTALRM", "PROF", "XCPU", "XFSZ", "IO", "PWR", "STKFLT", "TRAP", "SEGV", "BUS", "FPE", "ILL", "ABRT"]


def count(journal):
    data = journal.read_bytes() if journal.exists() else b""
    return struct.unpack_from("I", data)[0] if data else 0


def start(tmp_path, way, env):
    """The program, when its thread has slept for a while."""
    (tmp_path / "journal").unlink(missing_ok=True)
    child = proc.spawn([TOLD, tmp_path / "journal", way], env=env, stdout=-1, stderr=-1, text=True)
    proc.until(lambda: count(tmp_path / "journal") >= 60, child=child)
    return child


def told(tmp_path, way, number, env):
    """How the program ended, what it said, how long that took, and how often its thread had slept when the signal was sent."""
    child = start(tmp_path, way, env)
    slept, begin = count(tmp_path / "journal"), time.monotonic()
    child.send_signal(number)
    stdout, stderr = child.communicate(timeout=30)
    return child.returncode, stdout, stderr, time.monotonic() - begin, slept


def traced_env(tmp_path, **env):
    return {"LD_PRELOAD": str(LIBRARY), "GOTRACE_OUTPUT": str(tmp_path / "t.out"), **env}


@pytest.mark.parametrize("format", ["go1.11", "go1.23"])
@pytest.mark.parametrize("name", DEADLY)
def test_nothing_is_lost(tmp_path, name, format):
    """Each sleep that was over when the signal was sent is in the trace, the status is the signal's, and the exit line says so.

    While the trace is written the thread goes on, for longer where it lacks a CPU: those sleeps are in no trace.
    """
    number = signal.Signals[f"SIG{name}"]
    env = traced_env(tmp_path, GOTRACE_FORMAT=format)
    status, stdout, stderr, _, before = told(tmp_path, "nothing", number, env)
    assert (status, stdout) == (-number, "")
    assert "nothing lost" in stderr and len(stderr.splitlines()) == 1
    events = gotools.parse(tmp_path / "t.out")
    slept = sum(e.is_go("Waiting", "Runnable") or e.is_go("Waiting", "Running") for e in events)
    assert before <= slept <= count(tmp_path / "journal") + 1
    assert proc.run([GOTRACE, "info", tmp_path / "t.out"]).ok()


@pytest.mark.parametrize(
    "way, status, said",
    [("handles", 4, "handled 15\n"), ("waits", 3, "got 15\n"), ("asks", -15, "default 1, again 1\n")],
)
@pytest.mark.parametrize("switches", [{}, {"GOTRACE_RING": "1M"}, {"GOTRACE_START": "manual"}, {"GOTRACE": "off"}], ids=str)
def test_as_bare(tmp_path, way, status, said, switches):
    """A program that does something about the signal gets it, and finds its own action."""
    assert told(tmp_path, way, signal.SIGTERM, {})[:2] == (status, said)
    assert told(tmp_path, way, signal.SIGTERM, traced_env(tmp_path, **switches))[:2] == (status, said)


def test_ignored_stays_ignored(tmp_path):
    child = start(tmp_path, "ignores", traced_env(tmp_path))
    before = count(tmp_path / "journal")
    child.send_signal(signal.SIGTERM)
    proc.until(lambda: count(tmp_path / "journal") >= before + 20, child=child)
    child.kill()
    assert child.wait() == -signal.SIGKILL


@pytest.mark.measured
@pytest.mark.urgent
def test_end_is_not_held_up(tmp_path):
    """Where the trace cannot be written, to a FIFO whose reader stands still, the program ends nevertheless."""
    os.mkfifo(tmp_path / "t.out")
    reader = os.open(tmp_path / "t.out", os.O_RDONLY | os.O_NONBLOCK)
    status, _, _, seconds, _ = told(tmp_path, "nothing", signal.SIGTERM, traced_env(tmp_path, GOTRACE_SYSCALLS="all"))
    os.close(reader)
    assert status == -signal.SIGTERM and seconds < 1


ACTIONS = PROGRAMS.parent / "hostile/actions"
WAYS = re.findall(r'{"(\w+)", \w+}', (ROOT / "test/hostile/actions.c").read_text())


@pytest.mark.parametrize("switches", [{}, {"GOTRACE_RING": "1M"}], ids=str)
@pytest.mark.parametrize("way", WAYS)
def test_actions(tmp_path, way, switches):
    """What programs may do about signals, and filters, and namespaces: the same status as bare."""
    bare = proc.run([ACTIONS, way])
    if bare.returncode == 77:
        pytest.skip("needs the right to make a PID namespace")
    traced = proc.traced([ACTIONS, way], tmp_path / "t.out", env=switches)
    assert (traced.returncode, traced.stdout) == (bare.returncode, bare.stdout), traced


def test_no_environment_at_all(tmp_path):
    """A library's constructor, before ours, has cleared it."""
    flags = ["-shared", "-fPIC"]
    proc.compile("#include <stdlib.h>\n__attribute__((constructor)) static void clear(void) { clearenv(); }\n", tmp_path / "libclear.so", *flags)
    text = "#include <pthread.h>\nstatic void *f(void *a) { return a; }\n" \
        "int main(void) { pthread_t t; pthread_create(&t, NULL, f, NULL); return pthread_join(t, NULL); }\n"
    program = proc.compile(text, tmp_path / "cleared", "-Wl,--no-as-needed", f"-L{tmp_path}", "-lclear", f"-Wl,-rpath,{tmp_path}")
    proc.traced([program], tmp_path / "t.out", cwd=tmp_path).ok()
