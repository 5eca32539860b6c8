"""The waits of test/prog/truth.c, which knows them, against what the Go tools read in the trace."""

import collections
import os

import pytest

from lib import PROGRAMS, gotools

RUNS = int(os.environ.get("TRUTH_RUNS", "2"))  # the claim in test/README.md is 200
SLEEPS = {"usleep", "nanosleep", "clock_nanosleep"}

# waiter, waker: kernel threads, 0 for none; ns: from call to return; arranged: how much of it the program brought about.
# The rest is the machine's: the thread could go on and had no CPU.
Wait = collections.namedtuple("Wait", "hook waiter waker ns arranged")


def truth(result):
    return [Wait(f[0], *map(int, f[1:])) for f in map(str.split, result.stdout.splitlines())]


def goroutines(events):
    """Kernel thread id → goroutine."""
    return {e.m: e.goid for e in events if e.is_go("Runnable", "Running")} | {
        e.m: e.goid for e in events if e.is_go("Undetermined", "Running")
    }


def waits(events):
    """(goroutine, leaf function) → its waits there, as (ns waiting, threads that ended it, the last one last).

    A thread with a spurious wake-up blocks again at the same place; that is one wait with several wakers.
    """
    found, now = collections.defaultdict(list), {}
    for e in events:
        if e.is_go("Running", "Waiting"):
            now[e.goid] = (e.time, e.stack[0].func)
        elif e.is_go("Waiting", "Runnable"):
            start, leaf = now[e.goid]
            found[e.goid, leaf].append((e.time - start, e.m))
    return found


@pytest.mark.measured
@pytest.mark.parametrize("run", range(RUNS))
def test_waits_and_wakers(traced, run):
    result = traced([PROGRAMS / "truth"]).ok()
    expected = truth(result)
    assert len(expected) == 14, str(result)
    events = gotools.parse(result.trace)
    g_of, found = goroutines(events), waits(events)
    for w in expected:
        assert w.waiter in g_of, f"{w}: thread not in the trace"
        parts = found[g_of[w.waiter], w.hook]
        assert parts, f"{w}: no such wait of goroutine {g_of[w.waiter]}; {dict(found)}"
        blocked = sum(ns for ns, _ in parts)
        assert 0.95 * w.arranged <= blocked <= 1.05 * w.ns, f"{w}: the trace says {blocked} ns"
        # A condition variable is signalled first and its mutex may come from others afterwards. What nobody ended,
        # a timeout, the waiter's own thread ends.
        waker = parts[0][1] if w.hook == "pthread_cond_wait" else parts[-1][1]
        assert waker == (w.waker or w.waiter), f"{w}: {parts}"


@pytest.mark.measured
def test_profile_totals(traced, go):
    result = traced([PROGRAMS / "truth"]).ok()
    sums = collections.defaultdict(tuple)
    for w in truth(result):
        sums[w.hook] += (w.arranged, w.ns)
    leaves = gotools.pprof(result.trace, "sync", go=go).leaf_ns()
    for hook, truths in sums.items():
        if hook in SLEEPS:
            assert hook not in leaves
        else:
            least, most = sum(truths[::2]), sum(truths[1::2])
            assert 0.95 * least <= leaves[hook] <= 1.05 * most, f"{hook}: {leaves[hook]} ns for {least} to {most}"


def test_name_is_a_label(traced):
    result = traced([PROGRAMS / "truth"]).ok()
    labels = [e for e in gotools.parse(result.trace) if e.kind == "Label"]
    assert [e.fields["Label"] for e in labels] == ["truth"]
    assert labels[0].g == 1


@pytest.mark.measured
def test_sleep_reason(traced):
    result = traced([PROGRAMS / "truth"]).ok()
    reasons = {e.stack[0].func: e.reason for e in gotools.parse(result.trace) if e.is_go("Running", "Waiting")}
    assert {reasons[hook] for hook in SLEEPS} == {"sleep"}
    assert reasons["pthread_cond_wait"] in ("sync.(*Cond).Wait", "sync")
    assert reasons["pthread_join"] == "sync"


@pytest.mark.measured
def test_only_long_yields(traced):
    """A thread that spins by sched_yield makes a million of them a second, which are over at once."""
    result = traced([PROGRAMS / "spins"]).ok()
    yields, may, must = map(int, result.stdout.split())
    stops = [e for e in gotools.parse(result.trace) if e.is_go("Running", "Runnable") and e.reason == "runtime.Gosched"]
    assert 10 < must <= len(stops) <= may < yields / 10, (must, len(stops), may, yields)
    assert all([f.func for f in e.stack][:2] == ["sched_yield", "main"] for e in stops)
