"""Reports on a terminal: columns are left out and lines are folded to fit its width."""

import re
import subprocess

import pytest

from lib import PROGRAMS, ROOT, proc
from lib.reports import table

GOTRACE = ROOT / "build/gotrace"


def on_terminal(columns, *argv, status=0):
    """The output of the command on a terminal of so many columns."""
    result = proc.on_terminal([GOTRACE, *argv], columns=columns)
    assert result.returncode == status, str(result)
    return result.stdout


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("command", ["info", "top", "top --by-lock", "why"])
def test_reports_fit_the_terminal(traced, command, columns):
    """No line is wider, and --wide prints what a pipe gets."""
    trace = traced([PROGRAMS / "whys", "convoy"]).ok().trace
    folded, plain = on_terminal(columns, *command.split(), trace), proc.run([GOTRACE, *command.split(), trace]).ok().stdout
    words = max(map(len, re.findall(r"\S+", plain)))
    assert max(map(len, folded.splitlines())) <= max(columns, words)
    assert max(map(len, plain.splitlines())) > 80
    assert on_terminal(columns, *command.split(), "--wide", trace) == proc.run([GOTRACE, *command.split(), "--wide", trace]).ok().stdout


def test_stacks_fit_the_terminal(tmp_path):
    """Of threads in a deadlock, whose report has the longest lines."""
    env = proc.traced_env(tmp_path / "t.out", {"GOTRACE_HANG": "200ms"})
    child = proc.spawn([PROGRAMS / "deadlocks", "ring", "mutex", "3"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert "DEADLOCK" in child.stderr.readline()
        folded = on_terminal(80, "stacks", child.pid, status=3)
    finally:
        proc.stop(child)
    assert "DEADLOCK" in folded and max(map(len, folded.splitlines())) <= 80, folded


WAITS = ["%", "count", "kind"]
SHARES = ["on CPU", "runnable", "idle", "blocked", "calls", "unseen"]
TABLES = {
    "info": ["tid", "lived", *SHARES],
    "top": ["waited", *WAITS, "what <- where"],
    "top --kind=all --idle=none": ["waited", *WAITS, "what <- where"],
    "top --cum": ["cum", *WAITS, "function"],
    "top --wakers": ["waited", *WAITS, "what <- where"],
    "top --preempted": ["no CPU", *WAITS, "what <- where"],
    "top --holders": ["waited", "%", "count", "what <- where, lock"],
    "top --by-lock": ["waited", "%", "count", "threads", "held", "lock"],
    "top --wakeups": ["waits", "signalled", "signals", "missed", "variable, and where it is signalled"],
    "top --cpu": ["samples", "%", "sum", "function"],
    "top --cpu --cum": ["cum", "%", "function"],
    "top --kind=cpu": ["on CPU", "%", "runnable", "preempted", "faults", "thread"],
    "top --kind=sched": ["waited", *WAITS, "what <- where"],
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Waits of all kinds, holders of locks, signals, CPU samples and preemption."""
    env = {"GOTRACE_SCHED": "on", "GOTRACE_CPU_HZ": "500"}
    return proc.traced([PROGRAMS / "incidents", "fsync", "600"], tmp_path_factory.mktemp("server") / "t.out", env=env).ok().trace


@pytest.mark.parametrize("command", TABLES)
def test_no_row_is_folded(server, command):
    """At 80 columns each row has its numbers in one line, as in a pipe; only its last cell may continue, below itself."""
    piped = proc.run([GOTRACE, *command.split(), server])
    if piped.returncode == 1 and "--sched" in piped.stderr:
        pytest.skip("perf_event_open(2) is not allowed here")
    folded = on_terminal(80, *command.split(), server)
    words = max(map(len, re.findall(r"\S+", folded)))
    assert max(map(len, folded.splitlines())) <= max(80, words), folded
    rows = table(folded, *TABLES[command])
    assert rows == table(piped.ok().stdout, *TABLES[command]) and (rows or "--cpu" in command or "--preempted" in command), folded


def test_rows_of_each_thread_are_not_folded(server):
    """--by-thread has a table for each thread: each row begins with a time, and a folded one is below the last head."""
    lines = on_terminal(80, "top", "--by-thread", server).splitlines()
    head = next(line for line in lines if line.endswith("what <- where"))
    below = " " * head.index("what")
    rows = [line for line in lines[lines.index(head) + 1 :] if line.startswith(" ")]
    assert len(rows) > 10 and max(map(len, lines)) <= 80
    for line in rows:
        assert re.match(r" +[\d.]+[mu]?n?s +[\d.]+% +\d+  \w+ ", line) or line.startswith(below), line
