"""`gotrace why` of servers that have little to do: the answer is what requests waited for, not that the loop waited for requests."""

import pytest

from lib import SINGLE
from test_why import page, why

pytestmark = pytest.mark.measured

WORK_NS = 20_000_000  # as in serves.c


@pytest.mark.parametrize("mode, pool", [("drains", "worker"), ("born", "serve_one"), ("quiet", "worker"), ("busy", "worker")])
def test_what_requests_wait_for(traced, mode, pool):
    """All requests are in the path, and nothing of the loop's waits is."""
    result = traced([SINGLE / "why/serves", mode]).ok()
    report = why(result.trace)
    assert report["read_as"] == "server", report["answer"]
    rows = report["path"]["rows"]
    work = sum(row["ns"] for row in rows if row["function"] == "commit_order" and row["what"] == "usleep" and row["kind"] == "sleep")
    least = int(result.stdout) * WORK_NS
    # A sleep is never shorter. Where requests wait for a lock, its holder's sleep is each one's wait.
    assert least <= work < (least * 1.3 if mode != "busy" else report["path"]["ns"]), (work, least, rows)
    assert not [row for row in rows if row["what"] in ("epoll_wait", "poll", "pselect") and row["kind"] != "sched"], rows
    assert pool in {loop["thread"].split("(")[-1].strip(")") for loop in report["loops"]}, report["loops"]
    assert "Limited by" not in page(result.trace).split("\n\n")[1]


@pytest.mark.parametrize("mode", ["polls", "blocks", "several", "reuses", "hands", "local", "hears"])
def test_what_requests_in_datagrams_wait_for(traced, mode):
    """No connection shows that the program is a server, but its bound socket does: others can send to that socket first."""
    result = traced([SINGLE / "why/datagrams", mode]).ok()
    report = why(result.trace)
    assert report["read_as"] == "server", report["answer"]
    rows = report["path"]["rows"]
    work = sum(row["ns"] for row in rows if row["function"] == "commit_order" and row["kind"] == "sleep")
    least = int(result.stdout) * WORK_NS
    assert least <= work < least * 1.3, (work, least, rows)  # as above
    assert not [row for row in rows if row["what"] in ("poll", "recvfrom", "recvmmsg") and row["kind"] != "sched"], rows
    assert not {"false_idle", "serialised_pool"} & {finding["finding"] for finding in report["findings"]}, report["findings"]


def test_idle_workers_of_a_reader_that_waits_for_input(traced):
    """Also a program read as batch has no false idle here: the sender of the input sets the pace, not the thread that hands it on."""
    report = why(traced([SINGLE / "why/datagrams", "hands"]).ok().trace, "--as=batch")
    assert "false_idle" not in {finding["finding"] for finding in report["findings"]}, report["findings"]


def test_more_pieces_of_work_than_are_followed(traced):
    """None of them is the whole rest of the run: a worker that got 110,000 jobs had no long one."""
    report = why(traced([SINGLE / "why/serves", "often"]).ok().trace, "--as=server")
    assert report["pieces"] == 100_000, report["answer"]


@pytest.mark.parametrize("mode, function", [("asks", "ask"), ("tests", "commit_order"), ("dials", "dial"), ("reports", "ask"), ("copies", "commit_order"), ("talks", "talk_to_child"), ("listens", "talk_to_child")])
def test_what_sends_datagrams_first_ends_by_itself(traced, mode, function):
    """None of these is a server: a client that lets the kernel choose its address, a thread that asks or feeds another one, or a socket that nobody uses."""
    # Each datagram is written: what computes between two that are is named by the second.
    report = why(traced([SINGLE / "why/datagrams", mode], env={"GOTRACE_SYSCALL_MIN": "0"}).ok().trace)
    assert report["read_as"] == "batch", report["answer"]
    assert report["path"]["rows"][0]["function"] == function, report["path"]["rows"]


@pytest.mark.parametrize("mode, functions", [("fetches", {"fetch"}), ("asks", {"ask", "serve"}), ("knocks", {"knock"}), ("metered", {"work_and_sleep"})])
def test_what_accepts_may_end_by_itself(traced, mode, functions):
    """A program whose own work ends it is no server, though it accepts connections: the answer is what main's end waited for."""
    report = why(traced([SINGLE / "why/visited", mode]).ok().trace)
    assert report["read_as"] == "batch", report["answer"]
    assert report["path"]["rows"][0]["function"] in functions, report["path"]["rows"]
