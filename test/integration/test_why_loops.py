"""`gotrace why` of servers: how long each piece of work took, and why some took long."""

import re

import pytest

from lib import PROGRAMS, SINGLE, SOURCES, proc
from test_why import GOTRACE, check, findings, page, why

LATE_NS, LATE_TIMES = 50_000_000, 3  # as in served.c
pytestmark = [pytest.mark.measured, pytest.mark.urgent]


def served(traced, mode, **env):
    """The trace of a server, and what its client saw: requests, their median in ns, and how many were late."""
    result = traced([PROGRAMS / "served", mode], env=env).ok()
    requests, median, late = map(int, result.stdout.split())
    return result.trace, requests, median, late


def loop_of(report):
    (loop,) = [loop for loop in report["loops"] if loop["thread"] == "main"]
    return loop


@pytest.mark.limit(120)
@pytest.mark.parametrize(
    "mode, says",
    [
        ("sleeps", r"in clock_nanosleep <- take_ms \(served.c:\d+\)"),
        ("locks", r"refresher kept it waiting, in clock_nanosleep <- take_ms \(served.c:\d+\)(?: < load_cache \(served.c:\d+\))?, holding cache_lock"),
        ("computes", r"on the CPU in serve \(served.c:\d+(-\d+)?\)"),
    ],
)
def test_a_blocked_loop(traced, mode, says):
    """The client saw late answers: the page says first how often, for how long and in what the loop was blocked."""
    trace, requests, median, late = served(traced, mode)
    report = why(trace)
    loop = loop_of(report)
    assert report["read_as"] == "server" and loop["rest"]["what"] == "epoll_wait"
    assert requests * 0.9 <= loop["pieces"] <= requests + 10
    assert loop["p50_ns"] <= median  # the client waits for all of the piece, and for the network
    assert loop["blocked"][0]["count"] == LATE_TIMES <= late and loop["blocked"][0]["shortest_ns"] >= LATE_NS, loop["blocked"]
    first = page(trace, "--wide").split("\n\n")[1]
    assert re.match(rf"\* The event loop of main was blocked 3 times, for [\d.]+ms to [\d.]+ms \(median [\d.]+us\):\n  {says}", first), first
    assert report["findings"][0]["finding"] == "blocked_loop"
    assert report["findings"][0]["at_ns"] == loop["blocked"][0]["longest_at_ns"]


@pytest.mark.limit(120)
def test_a_worker_that_is_held_up(traced):
    """The loop that hands requests to a pool is not blocked, but one worker is."""
    trace, requests, _, late = served(traced, "pooled")
    pool, *_ = [loop for loop in why(trace)["loops"] if loop["thread"] == "worker"]
    assert pool["threads"] == 3 and pool["pieces"] >= requests * 0.9 and pool["rest"]["what"] == "pthread_cond_wait"
    assert pool["blocked"][0]["count"] == late == LATE_TIMES and pool["blocked"][0]["shortest_ns"] >= LATE_NS
    says = r"\* Of the workers 3 x worker, one was held up 3 times, for [\d.]+ms to [\d.]+ms \(median [\d.]+us\):\n  in clock_nanosleep <- take_ms "
    assert re.match(says, page(trace, "--wide").split("\n\n")[1])


def test_a_loop_that_is_not_blocked(traced):
    trace, requests, *_ = served(traced, "even")
    report = why(trace)
    assert loop_of(report)["pieces"] >= requests * 0.9
    assert report["read_as"] == "server" and all(c["longest_ns"] < LATE_NS for loop in report["loops"] for c in loop["blocked"])


def test_the_function_of_a_blocked_loop(traced):
    """CPU samples name it."""
    trace, *_ = served(traced, "computes", GOTRACE_CPU_HZ="1000")
    (blocked, *_) = loop_of(why(trace))["blocked"]
    assert blocked["on_cpu_in"] == "sort_rows", blocked
    assert re.search(r"blocked 3 times.*\n  on the CPU in sort_rows <- handle\.\n", page(trace, "--wide"))


def test_waits_for_input_are_no_cause(traced):
    """Neither in a server nor where its end is asked about is anything faster if input comes sooner."""
    trace, *_ = served(traced, "sleeps")
    for options in [], ["--as=batch"]:
        report = why(trace, *options)
        assert report["read_as"] == ("batch" if options else "server")
        assert all("epoll_wait" not in change["name"] for change in report["what_if"]), report["what_if"]
    check(report)
    assert report["what_if"][0]["section"]["function"] == "take_ms", report["what_if"]


def test_read_as(traced):
    """What is no server can be read as one, where threads come back to wait for work; else it is said."""
    trace = traced([PROGRAMS / "whys", "idle"]).ok().trace
    assert why(trace)["read_as"] == "batch" and "false_idle" in findings(trace)
    report = why(trace, "--as=server")
    assert report["read_as"] == "server" and report["pieces"] and "false_idle" not in {f["finding"] for f in report["findings"]}
    error = proc.run([proc.ROOT / "build/gotrace", "why", "--as=x", trace])
    assert error.returncode == 2 and "--as=x: must be server or batch" in error.stderr


def slept_ms(text):
    """The time of `sign` in the first lines of the page."""
    number, unit = re.search(r" ([\d.]+)(m?)s, ", text.split("\n\n")[1]).groups()
    return float(number) * (1 if unit else 1000)


def test_a_loop_that_ends_by_itself_is_no_server(traced):
    """A call that blocks the loop is what limits the run, though the loop waits for input, too, and never longer than usual.

    Nor is the loop called free where the run is read as a server's: all pieces of work are as long.
    """
    result = traced(["/usr/bin/python3", SOURCES / "whys/loops.py"]).ok()
    trace, slept = result.trace, float(result.stdout)
    text, served = page(trace), page(trace, "--as=server")
    assert why(trace)["read_as"] == "batch" and re.search(r"\n\nLimited by clock_nanosleep <- sign \(loops\.py:\d+\)", text), text
    assert why(trace, "--as=server")["findings"][0]["finding"] == "busy_loop"
    assert re.search(r"\n\n\* The event loop of main works \d+ % of the time \(.*\),\s+\d+ % of that in\s+clock_nanosleep <- sign ", served), served
    assert "No event loop" not in served
    assert all(0.9 * 300 <= ms <= slept for ms in (slept_ms(text), slept_ms(served))), (slept, text, served)


def test_tasks_that_wait_for_each_other(traced):
    """What tasks of one loop wait for is in no event: 64 look-ups of 15 ms, two at a time. The page says so, whatever else could be a little shorter."""
    report = why(traced(["/usr/bin/python3", SOURCES / "why/semaphore.py"]).ok().trace)
    told = re.match(r"Limited by epoll_wait <- .*\n  ([\d.]+)ms, .*\n  A timer, input or another process ends these waits: no event tells which\.\n$", report["answer"])
    assert not any("epoll_wait" in change["name"] for change in report["what_if"]), report["what_if"]
    assert told and 0.95 * 32 * 15 < float(told[1]) < 1.3 * 32 * 15, report["answer"]


@pytest.mark.limit(120)
def test_timers_side_by_side(tmp_path):
    """Sessions of one event loop rest 3 ms each while another process's loop is blocked for 4 ms by each of them: half of that call is half of its time, though a replay that lets the timers follow each other saves less."""
    trace = tmp_path / "t.out"
    proc.run([GOTRACE, "-f", "-s", "all", "-o", trace, "--", "/usr/bin/python3", SOURCES / "whys/pools.py", "visited"]).ok()
    report = why(trace)
    row = next((row for row in report["path"]["rows"] if "render_page" in row["name"] and row["kind"] == "sleep"), None)
    gains = [change["gain"] for change in report["what_if"] if "render_page" in change["name"]]
    half = row["ns"] / report["path"]["ns"] / 2 if row else 0
    assert half > 0.2 and gains and abs(gains[0] - half) <= 0.05, (half, gains)


@pytest.mark.parametrize("mode", ["own", "timeout", "quiet", "shared"])
def test_uneven_accepts(traced, mode):
    """The page tells what the program counts; nothing where no connection waits for the worker, or all workers accept as many. Few timeouts count as connections."""
    result = traced([SINGLE / "why/accepts", mode]).ok()
    accepted = [int(n) for n in result.stdout.split()]
    found = findings(result.trace)
    if mode not in ("own", "timeout"):
        assert "uneven_accepts" not in found, found
        return
    assert accepted == [60, 0, 0, 0]
    text = " ".join(found["uneven_accepts"]["text"].split())
    its, every, busy, late = re.fullmatch(
        r"Uneven accepts: work, one of 4 workers, accepted (\d+) of (\d+) recorded connections and was busy for (\d+) % of the time, "
        r"the others for \d % on average. (\d+) of them waited while this worker served another connection. "
        r"No event tells whether the workers accept for the same address.", text
    ).groups()
    assert int(its) == 60 and int(every) <= (60 if mode == "own" else 80), text
    assert int(busy) >= 70 and int(late) <= 59, text
    assert page(result.trace).splitlines()[2].startswith("* Uneven accepts: ")
