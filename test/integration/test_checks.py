"""lib/truth.py itself: a right trace passes, and every wrong one fails. No program is run."""

import dataclasses

import pytest

from lib import truth
from lib.gotools import Event, Frame
from lib.pprof import Profile

MS = 1_000_000
MAIN, WAITER = 100, 101  # kernel threads; their goroutines are 1 and 2
LOCK = truth.Truth("mtx_lock", WAITER, MAIN, 26 * MS, 25 * MS, "sync", 0)
COND = truth.Truth("cnd_wait", WAITER, MAIN, 26 * MS, 25 * MS, "cond", 0)
READ = truth.Truth("read", WAITER, 0, 26 * MS, 25 * MS, "syscall", 0)
POLL = truth.Truth("poll", WAITER, 0, 26 * MS, 25 * MS, "network", 0)


def change(time, m, old, new, leaf="", reason="", goid=2):
    stack = [Frame(leaf, "libc.c", 1, 4096)] if leaf else []
    return Event("StateTransition", time, m, m, goid, {"Reason": reason}, goid=goid, old=old, new=new, stack=stack)


def trace(leaf="mtx_lock", state="Waiting", reason="sync", ns=25 * MS, waker=MAIN, times=1):
    events = [change(0, MAIN, "Runnable", "Running", goid=1), change(0, WAITER, "Runnable", "Running")]
    for start in range(MS, MS + times * 100 * MS, 100 * MS):
        events.append(change(start, WAITER, "Running", state, leaf, reason))
        events.append(change(start + MS, WAITER, state, state, leaf))  # a new generation
        if state == "Waiting":
            events.append(change(start + ns, waker, state, "Runnable", "unlock"))
            events.append(change(start + ns, WAITER, "Runnable", "Running"))
        else:
            events.append(change(start + ns, waker, state, "Running"))
    return events


CALL = {"leaf": "read", "state": "Syscall", "reason": "", "waker": WAITER}
RIGHT = [
    (LOCK, {}),
    (LOCK, {"ns": 12 * MS, "times": 2}),  # one spurious wake-up: two parts
    (COND, {"leaf": "cnd_wait", "reason": "sync.(*Cond).Wait"}),
    (READ, CALL),
    (READ, CALL | {"leaf": "__read_chk"}),
    (POLL, {"leaf": "poll", "reason": "network", "waker": WAITER}),
]
WRONG = [
    (LOCK, {"times": 0}),
    (LOCK, {"ns": 23 * MS}),
    (LOCK, {"ns": 28 * MS}),
    (LOCK, {"leaf": "pthread_mutex_lock"}),
    (LOCK, {"waker": WAITER}),
    (LOCK, {"reason": "network"}),
    (LOCK, {"state": "Syscall"}),
    (COND, {"leaf": "cnd_wait", "reason": "sync"}),
    (READ, CALL | {"times": 2}),
    (READ, CALL | {"ns": 12 * MS, "times": 2}),
    (READ, CALL | {"leaf": "recv"}),
    (READ, CALL | {"state": "Waiting", "reason": "network"}),
    (POLL, {"leaf": "poll", "reason": "network", "waker": MAIN}),
    (POLL, {"leaf": "poll", "reason": "select", "waker": WAITER}),
]


@pytest.mark.parametrize("expected, made", RIGHT)
def test_right(expected, made):
    truth.check([expected], trace(**made))


@pytest.mark.parametrize("expected, made", WRONG)
def test_wrong(expected, made):
    with pytest.raises(AssertionError):
        truth.check([expected], trace(**made))


def test_call_without_end():
    with pytest.raises(AssertionError, match="has no end"):
        truth.check([READ], trace(**CALL)[:-1])


def test_thread_not_there():
    with pytest.raises(AssertionError, match="not in the trace"):
        truth.check([dataclasses.replace(LOCK, waiter=7)], trace())


@pytest.mark.parametrize("ns, right", [(23, False), (24, True), (27, True), (28, False), (0, False)])
def test_profile(ns, right):
    profile = Profile([(["__read_chk", "f"], 1, ns * MS), (["other"], 1, 99 * MS)])
    try:
        truth.check_profile([READ, LOCK], profile, {"syscall"})
        assert right
    except AssertionError:
        assert not right


def test_names():
    names = {
        "read": "read", "__read_chk": "read", "__pread64_chk": "pread", "pread64": "pread", "preadv64v2": "preadv2",
        "__open64_2": "open", "openat64": "openat", "__getdelim": "getline", "epoll_pwait2": "epoll_pwait2",
        "accept4": "accept4", "wait4": "wait4", "preadv2": "preadv2", "lockf64": "lockf",
    }  # fmt: skip
    assert {leaf: truth.name(leaf) for leaf in names} == names
