"""`gotrace why` of threads that wait for locks inside libc: single/why/inside.c says how much of their lives they ran."""

import re

import pytest

from lib import SINGLE
from test_why import findings, page

pytestmark = pytest.mark.measured

LEAST_WAITS = {"malloc": 1000, "loader": 100, "file": 0}  # that threads went to sleep, which inside.c sees to


def inside(traced, mode, **env):
    """The trace, and for how long the threads lived and had a CPU, in ms, as they saw it."""
    result = traced([SINGLE / "why/inside", mode], env=env, timeout=100).ok()
    lived, used, waits = map(float, result.stdout.split())
    assert waits >= LEAST_WAITS[mode], (lived, used, waits)
    return result.trace, lived, used


@pytest.mark.limit(300)
@pytest.mark.parametrize("mode", ["malloc", "loader"])
def test_what_is_no_running(traced, mode):
    """No event tells such waits. They are no computing: the page has no more of that than the threads did."""
    trace, lived, used = inside(traced, mode)
    length, running = re.search(r": ([\d.]+)ms, \d threads, ([\d.]+) running on average", page(trace)).groups()
    assert float(length) * float(running) < 1.15 * used + 0.02 * lived, (length, running, used)


@pytest.mark.limit(300)
def test_the_lock_of_an_arena(traced):
    """Threads share one arena, and samples are in its lock; of what waits for another lock in libc nothing of the kind is said."""
    found = findings(inside(traced, "malloc", GOTRACE_CPU_HZ="2000")[0])
    assert "malloc_lock" in found, found
    says = r"malloc: [234] threads wait for the lock of an arena\. .* for [\d.]+ms,\n  and \d+ of \d+ CPU samples are in that lock, mostly called by use_malloc\."
    assert re.match(says, found["malloc_lock"]["text"]), found
    for mode in "loader", "file":
        assert "malloc_lock" not in findings(inside(traced, mode, GOTRACE_CPU_HZ="2000")[0])
