"""Stacks of calls into the kernel, found late and by other threads, are those of the calls (test/hostile/chains.c)."""

import os

import pytest

from lib import HOSTILE, gotools, proc

DEPARTURES = ["siglongjmp", "setcontext", "SYS_exit"]
CALLS = ["read", "poll", "select", "epoll_wait", "recv", "write", "ppoll", "sigtimedwait"]
RUNS = int(os.environ.get("CHAIN_RUNS", "2"))
RECORDER = {"GOTRACE_RING": "1M", "GOTRACE_QUIET": "1"}


def is_right(stack):
    """Do the functions, from the call outward, belong together?"""
    call, caller, *chain = [frame.func for frame in stack]
    ends = [i for i, name in enumerate(chain) if name.startswith("routine_")]
    if caller != f"call_{call}" or not ends or not ends[0]:
        return False
    if not all(name.startswith("digit_") for name in chain[: ends[0]]):
        return False
    inner, *digits, routine = [int(name[-1]) for name in chain[: ends[0] + 1]]
    return inner == (sum(digits) + CALLS.index(call) + routine) % 8


def stacks_of_calls(trace):
    for e in gotools.parse(trace):
        for stack in (e.stack, e.transition_stack):
            if stack and stack[0].func in CALLS:
                yield stack


def check(tmp_path, how, changes, threads, returncode=0, runs=RUNS, **env):
    seen = 0
    for _ in range(runs):
        result = proc.traced([HOSTILE / "chains", how, changes, threads], tmp_path / "t.out", env=env)
        assert result.returncode == returncode, result
        for stack in stacks_of_calls(result.trace):
            seen += 1
            assert len(stack) > 2 and is_right(stack), stack
        result.trace.unlink()
    assert seen > 100 * runs


@pytest.mark.limit(120)
@pytest.mark.parametrize("how", ["exit", "brief"])
def test_at_the_end(tmp_path, how):
    """Of the process, which keeps nobody in his call; some threads end, and their stacks are gone."""
    check(tmp_path, how, changes=2, threads=80)


@pytest.mark.limit(120)
@pytest.mark.long
def test_in_a_crash(tmp_path):
    check(tmp_path, "crash", changes=2, threads=100, returncode=-11, **RECORDER)


@pytest.mark.limit(120)
@pytest.mark.parametrize("how", ["exit", "brief", "signals", "altstack"])
def test_many_generations(tmp_path, how):
    check(tmp_path, how, changes=80, threads=16, runs=1)


@pytest.mark.limit(120)
@pytest.mark.parametrize("format", gotools.some("go1.22", of=[f for f, (_, last) in gotools.FORMATS.items() if not last]))
def test_formats(tmp_path, format):
    check(tmp_path, "brief", changes=40, threads=16, runs=1, GOTRACE_FORMAT=format)


@pytest.mark.parametrize("way", DEPARTURES)
def test_left_by_signal_handlers(tmp_path, way):
    """What the thread did next does not show in the stack of the call; nor is a stack read that is gone."""
    for _ in range(RUNS):
        result = proc.traced([HOSTILE / "departures", way], tmp_path / "t.out").ok()
        stacks = [[frame.func for frame in s] for e in gotools.parse(result.trace) for s in (e.stack, e.transition_stack)]
        calls = [s for s in stacks if s[:1] == ["ppoll"]]
        assert len(calls) > 100
        for functions in calls:
            way_down = set(functions[2 : functions.index("run")])
            assert functions[1] == "leaf" and way_down in ({"down"}, {"up"}), functions


def test_forks_in_signal_handlers(tmp_path):
    """The child, which goes back to the call and has a trace of its own, does not write what is the parent's."""
    for _ in range(RUNS):
        proc.traced([HOSTILE / "departures", "fork"], tmp_path / "t.out").ok()
        traces = sorted(tmp_path.glob("t.out*"))
        assert len(traces) > 20
        assert proc.run([gotools.read_all(gotools.find()), *traces]).ok().stdout == ""
        for trace in traces:
            trace.unlink()
