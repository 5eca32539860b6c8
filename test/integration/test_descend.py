"""The stacks that test/bench measures on are as deep as they say, and what they say."""

import pytest

from lib import ROOT, gotools, proc

BENCH = ROOT / "build/test/bench"


def stack(traced, program, depth):
    """That of its yield."""
    trace = traced([program, "yield", str(depth), "1"], env=proc.EVERY_YIELD).ok().trace
    (yielded,) = [e.stack for e in gotools.parse(trace) if e.is_go("Running", "Runnable") and e.stack]
    return yielded


@pytest.mark.parametrize("program", ["micro", "micro-cxx", "micro-cxx-fp"])
def test_depth(traced, tmp_path, program):
    """Without debug information there are no inlined calls in a stack."""
    bare = tmp_path / program
    proc.run(["strip", "-o", bare, BENCH / program]).ok()
    shallow = len(stack(traced, bare, 1))
    assert [len(stack(traced, bare, depth)) - shallow for depth in (5, 20, 100)] == [4, 19, 99]


@pytest.mark.parametrize("program", ["micro-cxx", "micro-cxx-fp"])
def test_functions(traced, program):
    functions = [f.func for f in stack(traced, BENCH / program, 20)]
    for handler in ("Named", "Called", "Buffered", "Busy", "Sorted", "Flushed", "Guarded", "Released"):
        assert any(f"{handler}<2>::handle(" in f for f in functions), (handler, functions)
    for library in ("std::_Function_handler<", "std::__introsort_loop<", "std::ostream::flush()", "std::_Sp_counted_deleter<"):
        assert any(f.startswith(library) for f in functions), (library, functions)
    assert functions[0] == "sched_yield" and "descend" in functions and "main" in functions
