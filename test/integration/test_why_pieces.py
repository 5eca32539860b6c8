"""`gotrace why` of threads that hand over very small pieces of work: single/why/pieces.c."""

import re

import pytest

from lib import SINGLE
from test_why import findings, page

pytestmark = pytest.mark.measured


def compute_ns(text):
    number, unit = re.search(r"compute ([\d.]+)(ns|us|ms) from one hand-over to the next\.", text).groups()
    return float(number) * {"ns": 1, "us": 1e3, "ms": 1e6}[unit]


def test_small_pieces(traced):
    """Each number is handed over by a condition variable. What is computed between cannot be more than the program's CPU time."""
    result = traced([SINGLE / "why/pieces"]).ok()
    text = findings(result.trace).get("small_pieces", {"text": ""})["text"]
    said = re.match(r"Small pieces: threads hand over to each other (\d+) times on the critical path, and", text)
    assert said and int(said[1]) >= 1000, page(result.trace)
    assert int(said[1]) * compute_ns(text) <= 1.1 * int(result.stdout), (text, result.stdout)
    assert re.search(r"\n  woken from pthread_(cond_wait|mutex_lock) <- (put|take) \(pieces.c:\d+\).*\.\n  Larger pieces, as several items at a time, need fewer hand-overs\.", text), text


def test_large_pieces(traced):
    trace = traced([SINGLE / "why/pieces", "batch"]).ok().trace
    assert "small_pieces" not in findings(trace), page(trace)
