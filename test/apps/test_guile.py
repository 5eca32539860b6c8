"""Garbage collections, where Guile's own counters say that there were some."""

import re

import pytest

from lib import SOURCES, gotools, proc

pytestmark = pytest.mark.needs("guile")

both = pytest.mark.parametrize("arguments", [[], ["thread"]], ids=["one-thread", "two-threads"])


def churn(traced, arguments, format):
    """The trace, and how many collections Guile counted."""
    argv = ["guile", "--no-auto-compile", "-s", SOURCES / "guile/churn.scm", *arguments]
    result = traced(argv, env={"GOTRACE_FORMAT": format}, timeout=50).ok()
    times = int(result.stdout)
    assert times > 20
    return result.trace, times


def check(events, times):
    """Collections and pauses, as (what, begin or end, time): as many as Guile says, none in another, no long ones."""
    count = {what: len([e for e in events if e[:2] == (what, "begin")]) for what in ("GC", "STW")}
    # The first and the last ones may lie outside the recording.
    assert times - 2 <= count["GC"] <= times
    assert count["STW"] >= count["GC"]
    begun = {}
    for what, which, time in events:
        if which == "begin":
            assert what not in begun
            begun[what] = time
        else:
            assert 0 <= time - begun.pop(what) < 1_000_000_000
    assert not begun


def parsed(trace, go):
    """What Go 1.23 and later say."""
    for e in gotools.parse(trace, go=go):
        if e.kind in ("RangeBegin", "RangeEnd"):
            name = e.fields["Name"]
            yield "STW" if name.startswith("stop-the-world (GC") else "GC", e.kind[5:].lower(), e.time


def listed(trace, go):
    """What Go 1.22 and older say of traces in v1 formats."""
    argv = [*gotools.tool(go), "-d=1", *gotools.program_of(trace), trace]
    for line in proc.run(argv, timeout=120).ok().stdout.splitlines():
        time, name = line.split()[:2]
        if event := re.fullmatch(r"(GC|STW)(Start|Done)", name.replace("GCSTW", "STW")):
            yield event[1], "begin" if event[2] == "Start" else "end", int(time)


@pytest.mark.measured
@both
def test_collections_are_shown(traced, arguments):
    trace, times = churn(traced, arguments, "go1.23")
    gotools.check_all(trace)
    check(list(parsed(trace, gotools.find())), times)


@pytest.mark.measured
@pytest.mark.limit(300)
@pytest.mark.parametrize("format", gotools.some("go1.5", "go1.22", of=["go1.5", "go1.7", "go1.9", "go1.10", "go1.19", "go1.21", "go1.22", "go1.26"]))
def test_in_other_formats(traced, format):
    trace, times = churn(traced, ["thread"], format)
    for minor, go in gotools.readers_of(format).items():
        if minor >= 23:
            check(list(parsed(trace, go)), times)
        elif format == "go1.22":
            gotools.check(trace, go=go)
        else:
            check(list(listed(trace, go)), times)


@pytest.mark.foreign
@pytest.mark.parametrize("format", ["go1.21", "go1.23"])
def test_in_a_forked_child(tmp_path, format):
    trace = tmp_path / "t.out"
    env = proc.traced_env(trace, {"GOTRACE_FORMAT": format})
    times = int(proc.run(["guile", "--no-auto-compile", "-s", SOURCES / "guile/forks.scm"], env=env, timeout=50).ok().stdout)
    (child,) = tmp_path.glob("t.out.*")
    for each in trace, child:
        gotools.check_all(each)
    go = gotools.find()
    begun = [time for what, which, time in parsed(child, go) if (what, which) == ("GC", "begin")]
    # The first may come before the thread, that is the recording.
    assert times > 1 and times - 1 <= len(begun) <= times and begun == sorted(begun), (times, begun)
