"""Waking thousands of threads at once costs what it costs bare, and so much for each: it is linear in their number."""

import pytest

from lib import PROGRAMS, gotools, proc

pytestmark = pytest.mark.measured

HERD = PROGRAMS / "herd"
WAYS = ["barrier", "broadcast", "posts", "futex"]
FEW, MANY, ROUNDS = 500, 4000, 5


def cpu_seconds(run, way, threads):
    """Of a run; the least of two, since what else the machine does adds to it."""
    return min(float(run([HERD, way, threads, ROUNDS], timeout=50).ok().stdout.split()[0]) for _ in range(2))


@pytest.mark.limit(300)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.long
def test_linear(traced, way):
    """What the library adds for eight times the threads: eight times as much, not sixty-four times."""
    added = [cpu_seconds(traced, way, n) - cpu_seconds(proc.run, way, n) for n in (FEW, MANY)]
    assert added[1] < 2 * MANY / FEW * max(added[0], 0.05), added


@pytest.mark.parametrize("way", WAYS)
def test_all_are_woken(traced, way):
    """Each thread's wait is in the trace in each round, and ended by another thread."""
    result = traced([HERD, way, 100, ROUNDS]).ok()
    events = gotools.parse(result.trace)
    born = [e.goid for e in events if e.is_go("NotExist", "Runnable")]
    woken = {g: 0 for g in born}
    for e in events:
        if e.is_go("Waiting", "Runnable") and e.goid in woken and e.g != e.goid:
            woken[e.goid] += 1
    # who comes last at the barrier does not wait, and a futex whose word has changed is not waited for
    assert sum(woken.values()) >= 100 * ROUNDS * 0.8


@pytest.mark.parametrize("way", [WAYS[0], *(pytest.param(way, marks=pytest.mark.long) for way in WAYS[1:])])
def test_no_more_waits_than_the_kernel_counts(traced, way):
    """A trace does not say of a thread that is on its way to a mutex that it went to sleep there again and again."""
    result = traced([HERD, way, 1000, 10], timeout=50).ok()
    waits = sum(e.is_go("Running", "Waiting") for e in gotools.parse(result.trace))
    slept = int(result.stdout.split()[1])
    assert waits <= slept * 1.1, f"{waits} waits in the trace, {slept} by the kernel's count"
