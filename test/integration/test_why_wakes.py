"""Wake-ups in vain: the programs count them, and wake threads in rounds, so that the scheduler does not decide how many there are."""

import re

import pytest

from lib import SINGLE, SOURCES, gotools, proc
from test_why import why

WAKES = SINGLE / "why/wakes"


def herds(trace):
    """By the place of the wait: how many wake-ups, and the percentage after which the thread waited again."""
    texts = [f["text"] for f in why(trace)["findings"] if f["finding"] == "thundering_herd"]
    told = (re.search(r" in pthread_cond_wait <- (\w+)\b.* woken at a time.*After (\d+) % of (\d+) wake-ups", text, re.DOTALL) for text in texts)
    return {match[1]: (int(match[3]), int(match[2])) for match in told}


def counts(stdout):
    return [tuple(map(int, line.split())) for line in stdout.splitlines()]


def agree(told, wakes, vain):
    """To 5 points: the trace may miss the waker of a wait."""
    assert abs(told[0] - wakes) <= 0.05 * wakes and abs(told[1] - 100 * vain / wakes) <= 5, (told, wakes, vain)


@pytest.mark.parametrize("loaded", [[], ["loaded"]])
@pytest.mark.parametrize("sched", ["off", "on"])
@pytest.mark.parametrize("how, workers, items, part", [("broadcast", 4, 1, 75), ("broadcast", 8, 1, 87), ("broadcast", 8, 3, 62)])
def test_share_of_wakeups_in_vain(traced, how, workers, items, part, sched, loaded):
    result = traced([WAKES, how, workers, items, *loaded], env={"GOTRACE_SCHED": sched}, timeout=60).ok()
    (wakes, vain), _ = counts(result.stdout)
    assert abs(100 * vain / wakes - part) < 3, (wakes, vain)
    agree(herds(result.trace)["take_even"], wakes, vain)


def test_two_kinds_of_waiters(traced):
    """A broadcast for one of the kinds wakes both: `why` counts the herd at each place."""
    result = traced([WAKES, "kinds", 8, 1], env={"GOTRACE_SCHED": "on"}).ok()
    even, odd = counts(result.stdout)
    told = herds(result.trace)
    agree(told["take_even"], *even)
    agree(told["take_odd"], *odd)


@pytest.mark.parametrize("how, workers, items", [("broadcast", 2, 1), ("broadcast", 8, 8), ("signal", 8, 4), ("semaphore", 8, 8), ("mutex", 4, 0), ("epoll", 4, 1), ("exclusive", 4, 1)])
@pytest.mark.parametrize("sched", ["off", "on"])
def test_no_herd(traced, how, workers, items, sched):
    """Threads that take an item each, and are quick, wait again as soon as those that find none."""
    result = traced([WAKES, how, workers, items], env={"GOTRACE_SCHED": sched}, timeout=60).ok()
    assert not herds(result.trace), result.stdout


@pytest.mark.parametrize("items", [3, 8])
def test_predicate_of_cxx(traced, tmp_path, items):
    program = proc.compile(SOURCES / "why/wakes.cc", tmp_path / "wakes", "-std=c++11", compiler="g++")
    result = traced([program, items], timeout=60).ok()
    ((wakes, vain),) = counts(result.stdout)
    assert (vain > 0) == (items < 8)
    if items < 8:
        agree(herds(result.trace)["work"], wakes, vain)
    else:
        assert not herds(result.trace)


def test_condition_of_python(traced):
    """Each waiter has a lock of its own there, so that `why` cannot know what the waiter finds, and names no herd."""
    result = traced(["/usr/bin/python3", SOURCES / "why/wakes.py"], timeout=60).ok()
    assert counts(result.stdout) == [(800, 600)]
    assert not herds(result.trace)


@pytest.mark.parametrize("format", gotools.some())
@pytest.mark.parametrize("items", [1, 8])
def test_waits_again_with_the_mutex_kept(traced, items, format):
    """The log of a wait says that its thread waits again, after each wake-up in vain and after no other one."""
    result = traced([WAKES, "broadcast", 8, items], env={"GOTRACE_FORMAT": format}, timeout=60).ok()
    (_, vain), _ = counts(result.stdout)
    events = gotools.parse(result.trace)
    again = sum(e.kind == "Log" and e.fields.get("Category") == "waits again for" for e in events)
    assert vain <= again <= vain + 8, (again, vain)  # the program does not count after its last round
