"""Hot paths do not get longer unnoticed: their instructions, against those kept in test/bench/instructions.md."""

import platform
import shutil
import sys

import pytest

from lib import ROOT

sys.path.append(str(ROOT / "test/bench"))
import instructions  # noqa: E402


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the table is x86-64's")
@pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is not installed")
@pytest.mark.parametrize("op, depth", instructions.CASES)
def test_hot_path_is_not_longer(op, depth):
    _, added = instructions.added(op, depth)
    kept = instructions.kept()[op, depth]
    assert added <= kept * 1.1 + 5, f"{op} at depth {depth}: {added:.0f} instructions added, {kept} in {instructions.TABLE}"
