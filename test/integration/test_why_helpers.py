"""`gotrace why` of programs with helpers that only wait for the end, and of parents of processes: the path is in the work."""

import pytest

from lib import SINGLE, SOURCES, proc
from lib.reports import GOTRACE
from test_why import why

pytestmark = [pytest.mark.measured, pytest.mark.urgent]
HELPERS = {  # how main ends the helper: the function in which the helper waits
    "eventfd": "poll_event",
    "late": "poll_late",
    "epoll": "epoll_event",
    "pipe": "read_end",
    "timed": "log_lines",
    "flag": "wait_for_flag",
    "post": "wait_for_post",
    "kill": "pause_for_ever",
    "cancel": "sleep_for_ever",
    "cancelled_read": "read_end",
    "cancelled_wait": "wait_for_flag",
    "sigwait": "dispatch",
    "exit": "wait_for_flag",
    "exit_sigwait": "dispatch",
    "exit_read": "read_end",
    "child": "read_end",
    "signalled": "read_end",
    "orphan": "read_end",
}


def family(tmp_path, *argv, options=()):
    trace = tmp_path / "t.out"
    proc.run([GOTRACE, "record", "-f", *options, "-o", trace, "--", *argv], timeout=60).ok()
    return why(trace)


def spent(report, function, kind=None):
    """For how many ms the path was there."""
    return sum(row["ns"] for row in report["path"]["rows"] if row["function"] == function and kind in (None, row["kind"])) / 1e6


@pytest.mark.parametrize("way, waits_in", HELPERS.items())
def test_a_helper_that_waits_for_the_end(tmp_path, way, waits_in):
    """The path is in the ten sleeps of the worker. In the helper, it is no longer than from when main told it to end."""
    report = family(tmp_path, SINGLE / "why/helpers", way, options=["-s", "all"] if way == "late" else [])
    (row,) = [row for row in report["path"]["rows"] if row["function"] == "work_item" and row["kind"] == "sleep"]
    assert row["count"] == 10 and row["ns"] >= 100e6 and spent(report, waits_in) < 40, report["path"]["rows"]


@pytest.mark.parametrize("how, waits_in", [("signal", "until_signal"), ("output", "until_output_ends")])
def test_processes_one_after_the_other(tmp_path, how, waits_in):
    """No call names the process that ended the wait, nor the one that started a process by posix_spawn: the path is in the work of all three."""
    report = family(tmp_path, SINGLE / "why/spawns", how)
    (row,) = [row for row in report["path"]["rows"] if row["function"] == "work" and row["kind"] == "sleep"]
    unknown = [row for row in report["path"]["rows"] if row["function"] == waits_in and "last event" not in row["name"]]
    assert row["count"] == 3 and row["ns"] >= 150e6 and sum(row["ns"] for row in unknown) < 20e6, report["path"]["rows"]


@pytest.mark.limit(120)
@pytest.mark.parametrize("calls", ["all", "blocking"])
@pytest.mark.parametrize("method", ["forkserver", "spawn", "fork"])
def test_a_pool_of_processes(tmp_path, method, calls):
    """The fork server and the tracker of resources outlive the program, and only wait for its end. The path goes to a worker, for its four pieces."""
    report = family(tmp_path, "/usr/bin/python3", SOURCES / "why/eight.py", method, options=["-s", calls])
    works = spent(report, "work", "sleep")
    others = [row for row in report["path"]["rows"] if row["what"] in ("epoll_wait", "poll", "read") and "last event" not in row["name"]]
    assert report["read_as"] == "batch" and works >= 90 and sum(row["ns"] for row in others) / 1e6 < works, report["path"]["rows"]
