"""Who ended waits at what processes share: `gotrace merge` finds it in the other process's trace, where it is certain."""

import collections

import pytest

from lib import PROGRAMS, gotools, proc
from lib.reports import GOTRACE
from lib.spans import check_readers

SLACK = 20_000  # ns between our clock and the program's: what it takes to leave a log
AT_ONCE = 8_000_000  # a waiter that runs so soon was woken just before, also for the command
WAKERS = {"sem": "sem_post", "two": "sem_post", "mutex": "pthread_mutex_unlock", "chain": "pthread_mutex_unlock",
          "cond": "pthread_cond_signal", "all": "pthread_cond_broadcast",
          "read": "pthread_rwlock_unlock", "write": "pthread_rwlock_unlock", "writers": "pthread_rwlock_unlock",
          "barrier": "pthread_barrier_wait"}  # fmt: skip
FORMATS = [format for format in gotools.FORMATS if int(format.removeprefix("go1.")) >= 11]  # which have logs

Wait = collections.namedtuple("Wait", "kind memory waiter waker since until")
Arrow = collections.namedtuple("Arrow", "waker waiter function at")


def waits_of(said):
    """What prog/wakers.c says."""
    return [Wait(kind, memory, *map(int, numbers))
            for kind, memory, *numbers in (line.split()[1:] for line in said.splitlines())]  # fmt: skip


def arrows_of(trace):
    """Those from one process's main thread to another's; when, by CLOCK_MONOTONIC."""
    events = gotools.parse(trace)
    thread = {e.g: e.m for e in events if e.kind == "Log"}  # the main threads'; by their logs "clock"
    shift = min(e.time - int(e.fields["Message"]) for e in events if e.kind == "Log" and e.fields["Category"] == "clock")
    return [Arrow(thread[e.g], thread[e.goid], e.stack[0].func, e.time - shift) for e in events
            if e.is_go("Waiting", "Runnable") and e.goid != e.g and e.g in thread and e.goid in thread]  # fmt: skip


def check(arrows, waits):
    """Each wait that its waker certainly ended has an arrow, unless its thread was slow to run; no other one has."""
    for w in waits:
        found = [a for a in arrows if (a.waiter, a.function) == (w.waiter, WAKERS[w.kind]) and w.since - SLACK <= a.at <= w.until]
        right = [] if w.waker is None or w.kind == "two" else [w.waker]
        assert [a.waker for a in found] == right or (not found and w.until - w.since > AT_ONCE), (w, found)


def check_all(arrows, waits):
    """And there are no more. Of mutexes there may be: those that guard the condition variables."""
    check(arrows, waits)
    most = collections.Counter(WAKERS[w.kind] for w in waits if w.kind != "two")
    found = collections.Counter(a.function for a in arrows)
    assert all(found[function] <= most[function] for function in WAKERS.values() if function != WAKERS["mutex"]), found


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """format → the waits, a trace of each process by its main thread."""
    known = {}

    def record(format):
        if format not in known:
            where = tmp_path_factory.mktemp("wakers")
            env = proc.traced_env(where / "%p.out", {"GOTRACE_FORMAT": format})
            waits = waits_of(proc.run([PROGRAMS / "wakers"], env=env).ok().stdout)
            known[format] = waits, {int(trace.stem): trace for trace in where.glob("*.out")}
        return known[format]

    return record


@pytest.mark.measured
@pytest.mark.parametrize("format", gotools.some(of=FORMATS))
def test_known_wakers(recorded, tmp_path, format):
    waits, traces = recorded(format)
    assert {w.waiter for w in waits} == traces.keys() and {w.kind for w in waits} == WAKERS.keys()
    all, part = tmp_path / "all.out", tmp_path / "part.out"
    proc.run([GOTRACE, "merge", *traces.values(), "-o", all]).ok()
    check_all(arrows_of(all), waits)
    times = sorted(e.time for e in gotools.parse(all))
    middle = (times[len(times) // 2] - times[0]) // 1000
    proc.run([GOTRACE, "cut", f"--from={middle}us", all, "-o", part]).ok()
    check_readers(format, all, part)


@pytest.mark.measured
def test_who_is_not_there_wakes_nobody(recorded, tmp_path):
    waits, traces = recorded("go1.23")
    for missing in traces:
        there = [trace for thread, trace in traces.items() if thread != missing]
        merged = tmp_path / f"without-{missing}.out"
        proc.run([GOTRACE, "merge", *there, "-o", merged]).ok()
        alone = [w for w in waits if w.waiter != missing and w.kind not in ("chain", "writers", "two")]
        check(arrows_of(merged), [w._replace(waker=None) if w.waker == missing else w for w in alone])


@pytest.mark.measured
def test_family(tmp_path):
    """gotrace -f; and what other commands say of it."""
    trace = tmp_path / "t.out"
    said = proc.run([GOTRACE, "-f", "-o", trace, "--", PROGRAMS / "wakers"]).ok().stdout
    check_all(arrows_of(trace), waits_of(said))
    top = proc.run([GOTRACE, "top", "--wakers", trace]).ok().stdout
    assert "sem_wait <- wait_sem" in top and "ended by sem_post <- wake_sem" in top


def test_of_one_process_alone_nothing_is_said(tmp_path):
    """Who waits at a semaphore of its own is known without that."""
    trace = proc.traced([PROGRAMS / "posters", "20"], tmp_path / "t.out").trace
    events = gotools.parse(trace)
    assert any(e.is_go("Waiting", "Runnable") and e.stack and e.stack[0].func == "sem_post" for e in events)
    assert not [e for e in events if e.kind == "Log" and e.fields["Category"].startswith("wakes")]
