"""`gotrace why` of threads that have a CPU mostly in the kernel: single/why/in_kernel.c says how long in what."""

import re

import pytest

from lib import SINGLE
from lib.reports import report
from test_why import check, page, why

pytestmark = pytest.mark.measured


def in_kernel(traced, mode, **env):
    """The trace, and what the thread knows: CPU time, the part in its calls, and system time in ms; page faults; calls."""
    result = traced([SINGLE / "why/in_kernel", mode], env=env, timeout=100).ok()
    return (result.trace, *map(int, result.stdout.split()))


def ran(report):
    """How long the path ran, by function."""
    ns = {}
    for row in report["path"]["rows"]:
        if row["kind"] == "running":
            ns[row["function"]] = ns.get(row["function"], 0) + row["ns"]
    return ns


@pytest.mark.parametrize("hz", ["100", "1000"])
def test_samples_in_short_calls(traced, hz):
    """A call that is too short to be recorded has the samples that were taken in it, and its caller."""
    trace, used, calls, *_ = in_kernel(traced, "calls", GOTRACE_CPU_HZ=hz)
    report = why(trace)
    check(report)
    ns = ran(report)
    part = ns.get("pwrite", ns.get("pwrite64", 0)) / sum(ns.values())
    assert 0.55 * calls / used < part <= 1.1 * calls / used, (ns, calls, used)
    assert re.search(r" runs +pwrite(64)? <- store \(in_kernel.c:\d+\)", page(trace))


def test_samples_in_the_programs_own_code(traced):
    """They are as before."""
    ns = ran(why(in_kernel(traced, "none", GOTRACE_CPU_HZ="500")[0]))
    assert max(ns, key=ns.get) == "compute", ns


@pytest.mark.limit(300)
def test_forks_of_a_large_process(traced):
    """They are calls, as long as the thread had a CPU in them, or longer."""
    trace, _, calls, *_, times = in_kernel(traced, "forks")
    report = why(trace)
    check(report)
    (row,) = [row for row in report["path"]["rows"] if row.get("what") == "fork"]
    assert row["function"] == "run_child" and 0.8 * times <= row["count"] <= times, row
    assert row["ns"] >= 0.7e6 * calls, (row, calls)


@pytest.mark.limit(300)
@pytest.mark.parametrize("mode", ["calls", "pages", "none"])
def test_system_time(traced, mode):
    """Without samples the account tells of the time that no recorded call explains, and how many page faults there were."""
    trace, used, _, system, faults, _ = in_kernel(traced, mode)
    said = re.search(r"The kernel has at least (\d+) % of the CPU time of live,\s+outside\s+recorded\s+calls:([^.]*)\.", page(trace))
    in_json = why(trace).get("kernel_time", "")
    assert bool(said) == bool(in_json) and in_json in " ".join(page(trace).split())
    if mode == "none":
        assert not said and system < used / 2
    elif said or mode == "pages":  # calls may have had no CPU: how long they ran is then not known
        assert 50 <= int(said[1]) <= 100 * system / used + 2, (said, system, used)
        counted = re.search(r"(\d+)\s+page\s+faults", said[2])
        assert bool(counted) == (mode == "pages") and (not counted or abs(int(counted[1]) - faults) <= 50)


@pytest.mark.parametrize("mode", ["room", "full"])
def test_calls_that_do_not_wait(traced, mode):
    """Writes to a pipe with room are CPU time, and no waits that `gotrace top` shows; writes that block are. All CPU time counts as running."""
    result = traced([SINGLE / "why/room", mode]).ok()
    lived, cpu = map(int, result.stdout.split())
    top, asked = report(result.trace, "top"), report(result.trace, "top", "--kind=syscall")
    writes = [[row for row in rows["waits"] if row["what"] == "write"] for rows in (top, asked)]
    assert sum(row["count"] for row in writes[1]) >= 1900, asked
    if mode == "room":
        assert not writes[0] and top["in_kernel"]["count"] >= 1900 and top["total_ns"] < lived / 4, top
    else:
        assert writes[0] == writes[1] and writes[0][0]["total_ns"] > lived / 2 and not top["in_kernel"]["count"], top
    running = why(result.trace)["parallelism"]["running"]["average"]
    assert abs(running - cpu / lived) < 0.1 * cpu / lived, (running, cpu, lived)


def test_one_thread_more_than_cpus(traced):
    """A thread more in a pool that has all CPUs gains no more than the CPU time leaves."""
    for _ in range(10):  # it is tried only if other processes leave the program its CPUs
        result = traced([SINGLE / "why/all_cpus"]).ok()
        cpu, cpus = map(int, result.stdout.split())
        page = why(result.trace)
        for gain in [change["gain"] for change in page["what_if"] if change["change"] == "more"]:
            then = (1 - gain) * page["replay"]["unchanged_ns"]
            assert then >= 0.95 * cpu / cpus, (gain, then, cpu, cpus)
