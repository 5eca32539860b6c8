"""`gotrace why`: what the page says of waits off the critical path is what a run with shorter ones shows."""

import json
import re

import pytest

from lib import ROOT, SINGLE, proc

pytestmark = pytest.mark.measured

GOTRACE = ROOT / "build/gotrace"
HALVED = "Waits off the critical path (halved in a replay, the run takes as long):"


def page(trace, *options):
    return proc.run([GOTRACE, "why", *options, trace], timeout=60).ok().stdout


@pytest.mark.long
def test_waits_that_decide_how_often_others_try(traced):
    """A thread tries a lock until it is free: no event tells that, and the replay tries as often with shorter holds."""
    tries = SINGLE / "why/tries"
    whole, half = (min(int(proc.run([tries, *mode]).ok().stdout.split()[0]) for _ in range(2)) for mode in ([], ["half"]))
    shown = page(traced([tries]).ok().trace)
    assert half * 10 < whole * 9, (half, whole)
    assert re.search(r"^(Waits off the critical path|Off the path, but .*):\n +[\d.]+m?s  saver waited in usleep <- save ", shown, re.M), shown
    assert HALVED not in shown and "shorten" not in shown, shown


def test_waits_that_nothing_depends_on(traced):
    """Two threads sleep 120 ms beside main's only sleep of 300 ms: a replay of the run with half of that takes as long."""
    shown = page(traced([SINGLE / "why/twice"]).ok().trace)
    assert re.search(rf"^{re.escape(HALVED)}\n +1\d\d\.\dms  2 threads waited in usleep <- nap ", shown, re.M), shown


@pytest.mark.urgent
def test_a_reader_behind_a_full_pipe(tmp_path):
    """Threads that log wait in fprintf for room that a child makes. No event tells that; a faster child lets them go on sooner."""
    logged, trace = SINGLE / "why/logged", tmp_path / "t.out"
    proc.run([GOTRACE, "-f", "-s", "all", "-o", trace, "--", logged], timeout=60).ok()
    report = json.loads(proc.run([GOTRACE, "why", "--json", trace], timeout=60).ok().stdout)
    first = report["what_if"][0]
    assert "usleep <- store" in first["name"] and first["basis"] == "bounded", report["what_if"]
    assert 0.25 < first["gain"] <= 0.5, first  # half of 960 times 1 ms; other processes delay some of it
    assert re.search(r"^Limited by usleep <- store .*:\n.*\n  If it took half as long, the run would take up to \d\d % less", page(trace), re.M)
