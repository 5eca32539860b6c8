"""Traces of programs that hung and were stopped: what `top`, `info` and `why` say of threads that still wait."""

import json
import re
import signal

import pytest

from lib import ROOT, SINGLE, proc

GOTRACE = ROOT / "build/gotrace"
HANG, STANDS = SINGLE / "why/hang", SINGLE / "why/stands"


def report(command, trace, *options):
    return json.loads(proc.run([GOTRACE, command, "--json", *options, trace], timeout=60).ok().stdout)


@pytest.fixture(scope="module", params=["blocking", "all"])  # a read is a system call, or a wait for input
def hung(request, tmp_path_factory):
    """The trace of the hung program, and when it stood still, as it saw that itself, in ns after main began."""
    result = proc.traced([HANG], tmp_path_factory.mktemp("hung") / "t.out", env={"GOTRACE_SYSCALLS": request.param})
    assert result.returncode == -signal.SIGALRM, result
    return result.trace, int(result.stdout)


@pytest.mark.measured
@pytest.mark.long
def test_holder_is_not_idle_to_the_end(hung):
    """loader came back to its read again and again, but in the last one it holds what worker waits for."""
    trace, _ = hung
    waiting = {row["thread"]["routine"]: row for row in report("top", trace)["waiting"]}
    assert waiting["worker"]["holder"]["routine"] == "loader" and waiting["worker"]["lock"] == "table"
    assert waiting["loader"]["what"] == "read" and not waiting["loader"]["idle"]
    (loader,) = [row for row in report("info", trace)["by_thread"] if row["thread"]["routine"] == "loader"]
    assert loader["idle_ns"] < 0.1 * loader["lived_ns"]
    top = proc.run([GOTRACE, "top", trace]).ok().stdout
    assert "(idle)" not in top, top


@pytest.mark.measured
def test_path_ends_where_a_thread_lives(hung):
    """feeder was active last, and had ended long before the program was stopped: nothing is said of its time after that."""
    trace, stood = hung
    why = report("why", trace, "--as=batch")
    rows = {row["name"]: row["ns"] for row in why["path"]["rows"]}
    assert rows.get("(not recorded)", 0) < 0.1 * stood, rows


@pytest.mark.parametrize("argv, what", [(["sh", "-c", f"{HANG}; true"], "wait"), (["timeout", "20", str(HANG)], "sigsuspend")])
def test_process_that_waits_for_its_child(traced, argv, what):
    """The command that ran the program did nothing else: no advice is to do that faster."""
    result = traced(argv)
    assert int(result.stdout) > 0, result  # the program ran
    why = report("why", result.trace)
    assert why["path"]["rows"][0]["what"].startswith(what)
    assert why["answer"].startswith(("Limited by another process: main waited for the end of a child in", "Limited by the sender of a signal: main waited for a signal in"))
    assert "took half" not in why["answer"] and not [its for its in why["what_if"] if its.get("section", {}).get("what", "").startswith(what)]
    text = proc.run([GOTRACE, "why", result.trace]).ok().stdout
    (child,) = result.trace.parent.glob(f"{result.trace.name}.*")
    assert f"gotrace why {result.trace}.PID\n" in text and child.suffix[1:].isdigit(), text


@pytest.mark.measured
def test_program_that_stood_still(hung):
    """Since when, which threads waited for which, and the rest of the page is about the time before: no advice halves what never ended."""
    trace, stood = hung
    why = report("why", trace)
    still = why["stood_still"]
    assert abs(still["from_ns"] - stood) < 100e6 and 1.8e9 < still["ns"] < 3e9, (stood, still)
    assert [(row["thread"], row["what"], row["for"], row["held_by"]) for row in still["waiting"]] == [
        ("main", "pthread_join", "", "loader"),
        ("loader", "read", "", ""),
        ("worker", "pthread_mutex_lock", "table", "loader"),
    ]
    assert why["to_ns"] == why["replay"]["to_ns"] == still["from_ns"]
    assert sum(row["ns"] for row in why["path"]["rows"]) == still["from_ns"] - why["from_ns"]
    page = proc.run([GOTRACE, "why", trace]).ok().stdout
    assert page.count("\n") <= 45, page
    text = page.split("\n\n")
    first, *waiters = text[1].split("\n")[:4]
    assert re.fullmatch(r"Stood still from \S+ to its end, for 2\.\d+s, while 3 threads wait:", first), first
    assert re.fullmatch(r"  main waits in pthread_join <- main \(hang.c:\d+\) for loader", waiters[0])
    assert re.match(r"  loader waits in read <- refill \(hang.c:\d+\)", waiters[1]) and waiters[2] == "  worker waits for table, held by loader", waiters
    assert f"gotrace top {trace}; while it runs: gotrace stacks PID" in text[1].replace("\n  ", " ")


@pytest.mark.measured
def test_wait_that_did_not_end_is_never_halved(hung):
    trace, _ = hung
    for options in ["--thread=main"], ["--from=1s", "--thread=main"], ["--from=1s"]:
        why = report("why", trace, *options)
        assert "stood_still" in why and why["path"]["rows"][0]["what"] in ("pthread_join", "read"), options
        assert "it had not ended" in why["answer"] and "took half" not in why["answer"], why["answer"]
        assert all(change["gain"] < 0.1 for change in why["what_if"]), why["what_if"]  # what the machine's load took
        assert why["replay"]["unchanged"] == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("what", ["condition", "joined", "answer", "workers", "works", "accepts", "child", "timed", "deadlock"])
def test_only_what_hangs_stood_still(traced, what):
    """Not reported: servers and workers that rest, waits for a child or for a time. A deadlock has a finding of its own."""
    result = traced([STANDS, what])
    assert result.returncode == -signal.SIGALRM, result
    why = report("why", result.trace)
    assert ("stood_still" in why) == (what in ("condition", "joined", "answer")), why.get("stood_still")
    if what == "condition":
        assert [(row["thread"], row["for"], row["held_by"]) for row in why["stood_still"]["waiting"]] == [("main", "stopped", "")]
    assert (what == "deadlock") == ("deadlock" in [its["finding"] for its in why["findings"]])
