"""The program's file descriptors are its own."""

from lib import PROGRAMS, gotools, proc


def test_closed_and_used_again(traced):
    bare = proc.run([PROGRAMS / "closes"]).ok()
    result = traced([PROGRAMS / "closes"]).ok()
    assert result.stdout == bare.stdout == "8 abcdefgh 5 hello\n"
    gotools.check_all(result.trace)
