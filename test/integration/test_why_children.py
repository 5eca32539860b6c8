"""`gotrace why` of a program and its child processes, recorded as one trace."""

import json
import re
import sys

import pytest

from lib import SINGLE, SOURCES, proc
from lib.reports import GOTRACE

END_MS = 200


def why(trace, *options):
    return json.loads(proc.run([GOTRACE, "why", "--json", *options, trace], timeout=60).ok().stdout)


@pytest.mark.measured
def test_a_child_that_ends_slowly(tmp_path):
    """Its parent waits for it until it has ended, and is not without a CPU meanwhile."""
    late = proc.compile(SOURCES / "why/ends_late.c", tmp_path / "late.so", "-shared", "-fPIC", f"-DEND_MS={END_MS}")
    trace = tmp_path / "t.out"
    proc.run([GOTRACE, "-f", "-o", trace, "--", SINGLE / "why/reaps"], env={"LD_PRELOAD": late}).ok()
    report = why(trace)
    waits = [row for row in report["path"]["rows"] if row["what"] == "waitpid"]
    assert [(row["kind"], row["count"], row["name"]) for row in waits] == [
        ("syscall", 1, "waitpid <- main (reaps.c:41), after the child's last event")
    ], waits
    assert waits[0]["ns"] >= END_MS * 1e6
    assert sum(row["ns"] for row in report["path"]["rows"] if row["what"] == "usleep" and row["kind"] == "sleep") >= 50e6
    assert not any("waitpid" in finding["text"] for finding in report["findings"])
    assert not any("waitpid" in change["name"] for change in report["what_if"])
    shown = " ".join(proc.run([GOTRACE, "why", trace]).ok().stdout.split())
    assert "Limited by another process: " in shown and "The child was ending: " in shown, shown
    assert ".PID" not in shown, shown  # the child is in this trace


def test_an_untraced_child_after_a_traced_one(tmp_path):
    """The traced one has ended and was reaped before: the wait for the other one is no end of it."""
    trace = tmp_path / "t.out"
    proc.run([GOTRACE, "-f", "-o", trace, "--", SINGLE / "why/reaps", "sleep 1"]).ok()
    waits = [row["name"] for row in why(trace)["path"]["rows"] if row["function"] == "wait_for_command"]
    assert [name for name in waits if name.startswith("waitpid ")] == ["waitpid <- wait_for_command (reaps.c:24)"], waits
    assert "The child was ending" not in proc.run([GOTRACE, "why", trace]).ok().stdout


@pytest.mark.measured
def test_a_poll_without_descriptors_and_timeout(tmp_path):
    """Its end is a signal of another process."""
    shown = proc.traced([SINGLE / "why/signalled"], tmp_path / "t.out").ok()
    text = proc.run([GOTRACE, "why", shown.trace]).ok().stdout
    assert re.search(r"^Limited by the sender of a signal: main waited for a signal in\n  ppoll <- main ", text, re.M), text


@pytest.mark.measured
@pytest.mark.urgent
def test_advice_that_was_followed(tmp_path):
    """A timer ends these waits: no recording knows more of them than the one that the page asks for."""
    trace, advice = tmp_path / "t.out", "gotrace -f -s all"
    proc.traced([SINGLE / "why/ticks"], trace).ok()
    before = proc.run([GOTRACE, "why", trace]).ok().stdout
    assert advice in before and "unknown_wakers" in why(trace), before
    proc.run([GOTRACE, "-f", "-s", "all", "-o", trace, "--", SINGLE / "why/ticks"]).ok()
    after = proc.run([GOTRACE, "why", trace]).ok().stdout
    its = why(trace)["unknown_wakers"]
    assert its["text"].endswith("another thread, process, timer or device may set the pace."), its
    assert f"({its['text']})" in " ".join(after.split()) and advice not in after, after


def seconds(text):
    """Of all times in it that are parts of the path."""
    return [float(n) / {"s": 1, "ms": 1e3}[unit] for n, unit in re.findall(r"([\d.]+)(s|ms) of the critical path", text)]


@pytest.mark.measured  # beside others the end of the manager's process, which main waits for, may be the longest part
@pytest.mark.parametrize("how", [["-f"], ["-f", "-s", "all"]])
def test_a_lock_of_another_process(tmp_path, how):
    """
    Its holder, a thread of the manager, waits for the process that asked for it. That process's work is the longest part of
    the path, or the page says of the longest part that nobody is known to end it. No part is longer than the run.
    """
    trace = tmp_path / "t.out"
    proc.run([GOTRACE, *how, "-o", trace, "--", sys.executable, SOURCES / "why/managed.py"], timeout=60).ok()
    for options in [], ["--as=server"], ["--as=batch"]:
        report = why(trace, *options)
        first = [finding["text"] for finding in report["findings"]]
        assert all(part * 1e9 <= report["to_ns"] for part in seconds(" ".join(first))), first
        waits = [r for r in report["path"]["rows"] if r["kind"] not in ("running", "sched")]  # not for CPUs, as all do
        row, its = waits[0], report.get("unknown_wakers", {})
        assert row["function"] == "save" or row["name"] in its["text"], (row, its)


@pytest.mark.measured
def test_a_lock_of_worker_processes(tmp_path):
    """The parent waits for their results by polls that no recorded thread ends. The work with the lock held takes 40 times 10 ms."""
    trace = tmp_path / "t.out"
    proc.run([GOTRACE, "-f", "-o", trace, "--", sys.executable, SOURCES / "why/pooled.py"], timeout=60).ok()
    report = why(trace, "--as=batch")
    run = report["to_ns"] - report["from_ns"]
    gain = sum(c["gain"] for c in report["what_if"] if c["change"] == "half" and "compact" in c["name"]) * run
    assert 120e6 <= gain <= 230e6, (gain, report["what_if"])
    shown = proc.run([GOTRACE, "why", "--as=batch", trace]).ok().stdout
    first = " ".join(shown.partition("\n\n")[2].partition("\n\n")[0].split())
    assert re.search(r"Lock held across I/O: shared \S+, .*, mostly in clock_nanosleep <- compact \(pooled.py:14\)", first), shown
    assert re.search(r"If .*, the run would take (up to |about |)\d\d % less", first), shown
