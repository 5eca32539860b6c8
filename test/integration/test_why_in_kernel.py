"""`gotrace why` of threads that have a CPU mostly in the kernel: single/why/in_kernel.c says how long in what."""

import re

import pytest

from lib import SINGLE
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
