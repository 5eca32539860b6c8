"""`gotrace why` of tokens in a pipe that serve as a lock or as slots: single/why/jobserver.c."""

import json
import re

import pytest

from lib import SINGLE, proc
from test_why import GOTRACE, findings, page, why

pytestmark = pytest.mark.measured

JOBSERVER = SINGLE / "why/jobserver"


def record(tmp_path, *args):
    """A trace of all its processes with all of their calls: only that tells which pipe a call is for."""
    trace = tmp_path / "t.out"
    proc.run([GOTRACE, "-f", "-s", "all", "-o", trace, "--", JOBSERVER, *args]).ok()
    return trace


@pytest.mark.parametrize("workers", [[], ["processes"]], ids=["threads", "processes"])
def test_one_token_is_a_lock(tmp_path, workers):
    """The worker that read it is the holder, up to its write: what it does meanwhile keeps the others waiting."""
    trace = record(tmp_path, "one", *workers)
    its = findings(trace)
    text = next((its[name]["text"] for name in ("lock_held_across_io", "convoy") if name in its), "")
    assert re.search(r"token, taken in take_token,", text) and "usleep <- compile_file" in text and re.search(r"\b3 threads (waited|queue) for ", text), page(trace)
    report = why(trace)
    gains = [change["gain"] for change in report["what_if"] if change["change"] == "free_lock" and change["lock"] == "token"]
    assert len(gains) == 1 and 0.1 <= gains[0] <= 0.9, report["what_if"]
    assert report["inferred_wakers"] <= 10, report["inferred_wakers"]


@pytest.mark.parametrize("workers", [[], ["processes"]], ids=["threads", "processes"])
def test_tokens_are_slots(tmp_path, workers):
    """As many as were written at first. Waits for them are no waits for input."""
    report = why(record(tmp_path, "two", *workers))
    slots = [change for change in report["what_if"] if change["change"] == "slot"]
    assert [(change["slots"], change["lock"]) for change in slots] == [(2, "tokens")], report["what_if"]
    assert 0.02 <= slots[0]["gain"] <= 0.6, slots
    assert not any("take_token" in json.dumps(loop) for loop in report["loops"]), report["loops"]
