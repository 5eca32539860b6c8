"""`gotrace why` of programs that come to an end by themselves, though their threads wait for input nearly all the time."""

import re

import pytest

from lib import SINGLE, SOURCES, proc
from lib.reports import GOTRACE
from test_why import check, why

pytestmark = pytest.mark.measured


def spent_in(report, what, function):
    """For how many ms the path was there."""
    return sum(row["ns"] for row in report["path"]["rows"] if row["what"] == what and row["function"] == function) / 1e6


@pytest.mark.parametrize("mode, what, function, least", [("limits", "poll", "ask", 8 * 60), ("beside", "usleep", "shop", 48 * 5)])
def test_clients_that_are_done(traced, mode, what, function, least):
    """The program has a server within, and its threads wait for input: the path is in what they waited for, about as long as they did. At least it takes `least`."""
    result = traced([SINGLE / "why/finishes", mode]).ok()
    report = why(result.trace)
    check(report)
    assert report["read_as"] == "batch" and not report["pieces"]
    spent, waited = spent_in(report, what, function), float(result.stdout)
    assert 0.95 * least < spent < 1.3 * waited, (spent, waited)


def test_clients_that_do_not_get_through(traced):
    """The answer names where the clients are, also where the path is in the server, which waits to accept meanwhile."""
    answer = why(traced([SINGLE / "why/finishes", "backlog"]).ok().trace)["answer"]
    assert re.search(r"^Limited by (accept <- shop (.*\n)*  Meanwhile \d threads waited in\s+)?connect <- buy ", answer), answer


def test_workers_that_are_told_to_stop(traced):
    """Their client hangs up on all of them: a server, though it has ended, and main waited for its workers from the start."""
    assert why(traced([SINGLE / "why/finishes", "served"]).ok().trace)["read_as"] == "server"


def test_a_client_and_its_server(tmp_path):
    """Of both processes, what the client waited for limits the run."""
    trace = tmp_path / "orders.out"
    waited = float(proc.run([GOTRACE, "-f", "-s", "all", "-o", trace, "--", "/usr/bin/python3", SOURCES / "whys/orders.py"]).ok().stdout)
    report = why(trace)
    assert report["read_as"] == "batch"
    slept = spent_in(report, "clock_nanosleep", "<module>")
    assert 0.9 * 150 * 4 < slept < waited, (slept, waited)


@pytest.mark.parametrize(
    "argv, says",
    [
        (["finishes", "limits"], r"poll <- ask \(finishes.c:\d+\):\n.*\n  (?P<n>\d+) of them took 6[01]\.\d+ms each: a time limit ends them, or a peer that regular\.\n"),
        (["unsignalled"], r"pthread_cond_timedwait <- take_job \(unsignalled.c:\d+\):\n.*\n  (?P<n>\d+) of (?P<of>\d+) waits there timed out: no thread ended them\.\n"),
    ],
)
def test_waits_that_run_into_their_time_limit(traced, argv, says):
    """The answer counts them. On the path are those of one thread of `finishes` at a time; `unsignalled` counts its own."""
    result = traced([SINGLE / "why" / argv[0], *argv[1:]]).ok()
    answer = why(result.trace)["answer"]
    said = re.match("Limited by " + says, answer)
    assert said and (6 <= int(said["n"]) <= 9 if argv[1:] else (said["of"], said["n"]) == tuple(result.stdout.split())), (answer, result.stdout)
