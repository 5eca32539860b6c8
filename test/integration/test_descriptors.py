"""The program's file descriptors are its own."""

import pytest

from lib import PROGRAMS, gotools, proc

pytestmark = pytest.mark.beside


def test_closed_and_used_again(traced):
    bare = proc.run([PROGRAMS / "closes"]).ok()
    result = traced([PROGRAMS / "closes"]).ok()
    assert result.stdout == bare.stdout == "8 abcdefgh 5 hello\n"
    gotools.check_all(result.trace)
