"""A wait that is over while its thread has no CPU ends when its time was over, whatever generation ends meanwhile."""

import re

import pytest

from lib import PROGRAMS, ROOT, SINGLE, gotools

pytestmark = pytest.mark.measured

STARVED = PROGRAMS / "starved"
WAYS = re.findall(r'{"(\w+)", by_\w+}', (ROOT / "test/prog/starved.c").read_text())
WAIT_MS, SLACK_MS = 5, 1

MORE = [{"GOTRACE_FORMAT": "go1.11"}, {"GOTRACE_SCHED": "on"}, {"GOTRACE_RING": "30s"}]
SHORT = [("nanosleep", {}), ("poll", {})]  # a wait and a call
LONG = [(way, {}) for way in WAYS if (way, {}) not in SHORT] + [(way, env) for way, _ in SHORT for env in MORE]


def waits_ms(events):
    """How long the waits of the thread were that has begun in `starve`."""
    (starved,) = [
        e.goid for e in events if e.is_go("NotExist", "Runnable") and e.transition_stack and e.transition_stack[-1].func == "starve"
    ]
    since, waits = None, []
    for e in events:
        if e.goid == starved and e.new == "Waiting":
            since = e.time
        elif e.goid == starved and e.old == "Waiting" and since:
            waits.append((e.time - since) / 1e6)
            since = None
    return waits


@pytest.mark.parametrize(
    "way, env",
    [*SHORT, *(pytest.param(*case, marks=pytest.mark.long) for case in LONG)],
    ids=str,
)
def test_a_wait_is_no_longer_than_its_time(traced, way, env):
    result = traced([STARVED, way], env=env).ok()
    gotools.check_all(result.trace)
    waits = sorted(waits_ms(gotools.parse(result.trace)))
    n, more_than_one = map(int, result.stdout.split())
    assert len(waits) >= n - 1 >= 3
    assert sum(wait > WAIT_MS + SLACK_MS for wait in waits) <= more_than_one <= n / 4, (more_than_one, waits[-5:])


def test_who_lacks_the_mutex_then_waits_for_it(traced):
    """A condition variable's waiter whose time is over, while another thread has the mutex: it is not said to lack a CPU."""
    result = traced([SINGLE / "starved/late"]).ok()
    ns = int(result.stdout)
    gotools.check_all(result.trace)
    events = gotools.parse(result.trace)
    (goid,) = [e.goid for e in events if e.is_go("NotExist", "Runnable") and e.transition_stack and e.transition_stack[-1].func == "late"]
    own = [e for e in events if e.goid == goid and e.new]
    times, reason = {"sync": 0, "cond": 0}, None
    for e, after in zip(own, own[1:]):
        if e.new == "Waiting":
            reason = "cond" if "Cond" in e.reason else "sync" if e.old == "Running" else reason  # or it goes on
            times[reason] += after.time - e.time
        assert e.new != "Runnable" or after.time - e.time < 0.1 * ns, (e, after)
    assert 0.9e9 <= times["cond"] <= 1.1e9, times
    assert times["sync"] == pytest.approx(ns - 1e9, abs=0.1e9), times
