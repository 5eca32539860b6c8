"""OpenMP threads that wait for known times (test/apps/openmp.c), with gcc's library and with LLVM's."""

import collections
import os
import re
import shutil

import pytest

from lib import ROOT, gotools, proc, reports, truth
from test_why import why

SOURCE = ROOT / "test/apps/openmp.c"
TOOL = ROOT / "test/apps/openmp_tool.c"
COMPILERS = ["gcc", "clang"]
FLAGS = ["-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-fopenmp", "-O1", "-g"]

# What stands in the trace for what the program did.
LEAVES = {
    "gcc": {
        "barrier": "GOMP_barrier", "end": "GOMP_parallel", "lock": "omp_set_lock", "nest_lock": "omp_set_nest_lock",
        "critical": "GOMP_critical_start", "named": "GOMP_critical_name_start", "taskwait": "GOMP_taskwait", "ordered": "GOMP_ordered_start",
    },
    "clang": {
        "barrier": "omp barrier", "end": "omp parallel", "lock": "omp lock", "nest_lock": "omp lock",
        "critical": "omp critical", "named": "omp critical", "taskwait": "omp taskwait", "ordered": "omp ordered",
    },
}  # fmt: skip
LOCKS = {"lock", "nest_lock", "critical", "named"}


def compile_with(compiler, output, *sources):
    return proc.run([compiler, *FLAGS, "-o", output, *sources])


@pytest.fixture(scope="module", params=COMPILERS)
def built(request, tmp_path_factory):
    """(compiler, program)"""
    program = tmp_path_factory.mktemp("openmp") / "openmp"
    result = compile_with(request.param, program, SOURCE) if shutil.which(request.param) else None
    if request.param == "clang" and not (result and result.returncode == 0) and not os.environ.get("ALL_NEEDS"):
        pytest.skip("clang with OpenMP is not here; ./scripts/deps all installs it")
    result.ok()
    return request.param, program


Row = collections.namedtuple("Row", "what line waiter waker ns arranged")


def rows(result):
    lines = [line.split() for line in result.stdout.splitlines()]
    return [Row(f[0], *map(int, f[1:])) for f in lines if len(f) == 6]


class Waits:
    """Kernel thread → its waits, in order, as (leaf, lines of the program on the stack, begin, end, waker)."""

    def __init__(self, events):
        g_of, self.of_g, begun = truth.goroutines(events), collections.defaultdict(list), {}
        self.end = max(e.time for e in events)
        for e in events:
            if e.is_go("Running", "Waiting"):
                begun[e.goid] = (e.stack[0].func, [f.line for f in e.stack if f.file.endswith(SOURCE.name)], e.time)
            elif e.is_go("Waiting", "Runnable") and e.goid in begun:
                self.of_g[e.goid].append((*begun.pop(e.goid), e.time, e.m))
        for g, wait in begun.items():
            self.of_g[g].append((*wait, self.end, None))
        self.g_of = g_of

    def of(self, tid):
        return self.of_g[self.g_of[tid]]


def fits(row, wait, leaf, compiler):
    name, lines, begin, end, waker = wait
    # LLVM tells that a lock is free when it is: who waited may have it already.
    wakers = {row.waker, row.waiter} if compiler == "clang" and row.what in LOCKS else {row.waker}
    return (
        name == leaf
        and (not row.line or row.line in lines)
        and 0.95 * row.arranged <= end - begin <= 1.05 * row.ns
        and (not row.waker or waker in wakers)
    )


def check_waits(compiler, result):
    expected, waits = rows(result), Waits(gotools.parse(result.trace))
    assert len(expected) >= 6, str(result)
    for row in expected:
        if row.what == "task":
            continue
        its = waits.of(row.waiter)
        found = [wait for wait in its if fits(row, wait, LEAVES[compiler][row.what], compiler)]
        assert found, f"{row}: not among {its}"
        its.remove(found[0])
    return expected, waits


@pytest.mark.measured
def test_waits(built, traced):
    """Each with its time, its line and who ended it; a task is none."""
    compiler, program = built
    result = traced([program]).ok()
    expected, waits = check_waits(compiler, result)
    assert {row.what for row in expected} == {*LEAVES[compiler], "task"}
    task = next(row for row in expected if row.what == "task")
    its = waits.of(task.waiter)
    between = max(after[2] - before[3] for before, after in zip(its, its[1:]))
    assert between >= 0.95 * task.arranged, f"{task}: {its}"


@pytest.mark.measured
def test_workers_are_idle(built, traced):
    """Between regions, which are 30 ms apart; and nobody else is."""
    compiler, program = built
    result = traced([program, "loop"]).ok()
    expected, waits = check_waits(compiler, result)
    workers = {row.waiter for row in expected} - {min(row.waiter for row in expected)}
    for tid in workers:
        idle = [end - begin for leaf, _, begin, end, _ in waits.of(tid) if leaf == "omp idle"]
        assert len([ns for ns in idle if ns >= 0.95 * 30e6]) == 3, idle
    report = reports.report(result.trace, "top")
    assert [place["what"] for place in report["idle"]["places"]] == ["omp idle"], report
    assert not [row for row in report["waits"] if row["place"] == "omp idle"], report  # until it has a CPU, it is in the region
    delays, of_loop = ({row["place"]: row["count"] for row in reports.report(result.trace, "top", "--kind=sched", *focus)["waits"]} for focus in ([], ["--focus=^loop"]))
    assert of_loop == {place: count for place, count in delays.items() if " <- loop" in place}, delays
    assert not [row for row in why(result.trace)["path"]["rows"] if row["what"] == "omp idle" and row["kind"] == "sched"]
    first = report["waits"][0]["place"]
    assert re.fullmatch(LEAVES[compiler]["end"] + r" <- loop\S* \(openmp\.c:\d+\)", first), report


def test_regions_are_named(built, traced):
    result = traced([built[1], "loop"]).ok()
    begins = [e for e in gotools.parse(result.trace) if e.kind == "RegionBegin"]
    assert [e.fields["Type"] for e in begins] == ["omp parallel"] * 3
    assert {e.stack[0].func for e in begins} == {"loop"} if built[0] == "gcc" else all("loop" in [f.func for f in e.stack] for e in begins)


@pytest.mark.measured
def test_regions_in_which_nothing_happens(built, traced):
    """They are there; their workers wait for the next one, and nobody for anything else."""
    result = traced([built[1], "empty"]).ok()
    events = gotools.parse(result.trace)
    waits = Waits(events)
    assert [e.fields["Type"] for e in events if e.kind == "RegionBegin"] == ["omp parallel"] * 4
    workers = [its for g, its in waits.of_g.items() if any(leaf == "omp idle" for leaf, *_ in its)]
    assert len(workers) == 2
    for its in workers:
        assert len([1 for leaf, _, begin, end, _ in its if leaf == "omp idle" and end - begin >= 0.95 * 30e6]) == 4, its
    others = [wait for its in waits.of_g.values() for wait in its if wait[0] != "omp idle"]
    assert sum(end - begin for _, _, begin, end, _ in others) < 30e6, others


@pytest.mark.parametrize("env", [{}, {"OMP_WAIT_POLICY": "active"}, {"OMP_WAIT_POLICY": "passive"}, {"GOTRACE_START": "manual"}], ids=str)
@pytest.mark.long
@pytest.mark.alone
def test_nothing_changes(built, traced, env):
    """What is computed, also in children, with threads made before and after."""
    env = {"OMP_CANCELLATION": "true", **env}
    bare = proc.run([built[1], "forks"], env=env).ok()
    assert traced([built[1], "forks"], env=env, timeout=50).ok().stdout == bare.stdout
    assert "child 4" in bare.stdout


@pytest.mark.measured
def test_library_that_is_loaded_later(traced, tmp_path):
    """With its own OpenMP library, which nobody else can see."""
    plugin = tmp_path / "plugin.so"
    compile_with("gcc", plugin, "-shared", "-fPIC", SOURCE).ok()
    code = "import ctypes; lib = ctypes.CDLL(%r); lib.main(2, (ctypes.c_char_p * 2)(b'plugin', b'barrier'))" % str(plugin)
    check_waits("gcc", traced(["/usr/bin/python3", "-c", code]).ok())


@pytest.mark.long
def test_tools_of_others(built, traced, tmp_path):
    """In the program, or named in the environment: they are asked, as without us."""
    compiler, program = built
    if compiler != "clang":
        pytest.skip("gcc's library has no tools")
    library, own = tmp_path / "tool.so", tmp_path / "own"
    compile_with(compiler, library, "-shared", "-fPIC", TOOL).ok()
    compile_with(compiler, own, "-Wl,--export-dynamic", SOURCE, TOOL).ok()
    for argv, env in [([own, "forks"], {}), ([program, "forks"], {"OMP_TOOL_LIBRARIES": str(library)})]:
        bare = proc.run(argv, env=env).ok()
        assert "tool is asked" in bare.stdout
        assert traced(argv, env=env).ok().stdout == bare.stdout
