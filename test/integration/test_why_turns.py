"""`gotrace why` of an event loop that never sleeps: single/why/turns.c counts its turns."""

import pytest

from lib import SINGLE
from test_why import findings, page, why

pytestmark = pytest.mark.measured


@pytest.mark.parametrize("mode", ["without", "yields"])
def test_turns_without_work(traced, mode):
    """The loop finds room to write each time, and has nothing to write: what it does is no wait, and is told. Its calls are
    too short to be recorded, unless they all are. Where the loop loses the CPU, in the call or not, makes no difference."""
    result = traced([SINGLE / "why/turns", mode], env={"GOTRACE_SYSCALLS": "all"}).ok()
    turns, read = map(int, result.stdout.split())
    said = findings(result.trace).get("restless_loop", {"text": ""})["text"]
    assert turns > 1000 * read and said, (turns, read)
    assert "run_loop waits for" in said and "epoll_wait <- run_loop (turns.c:" in said and "waited in epoll_wait" not in page(result.trace)
    assert not any("epoll_wait" in change["name"] for change in why(result.trace)["what_if"])


@pytest.mark.parametrize("mode", ["rests", "with"])
def test_turns_with_work(traced, mode):
    """The loop sleeps until there is input, or has always some to work at."""
    result = traced([SINGLE / "why/turns", mode]).ok()
    turns, read = map(int, result.stdout.split())
    assert read > 10 and turns < 100 * read
    assert "restless_loop" not in findings(result.trace)
