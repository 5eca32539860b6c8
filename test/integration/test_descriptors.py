"""The program's file descriptors are its own."""

import pytest

from lib import PROGRAMS, SINGLE, gotools, proc


def test_closed_and_used_again(traced):
    bare = proc.run([PROGRAMS / "closes"]).ok()
    result = traced([PROGRAMS / "closes"]).ok()
    assert result.stdout == bare.stdout == "8 abcdefgh 5 hello\n"
    gotools.check_all(result.trace)


@pytest.mark.parametrize("way", ["signal", "thread"])
def test_told_of_a_message(traced, way):
    """The kernel takes a close of a queue's copy in our thread's table for the end of mq_notify."""
    program = SINGLE / "descriptors/queue"
    assert proc.run([program, way]).ok().stdout == "told\n"
    result = traced([program, way, "await"]).ok()
    assert result.stdout == "told\n"
    gotools.check_all(result.trace)
