"""Hot paths do not get longer unnoticed: their instructions, against those kept in test/bench/instructions.md."""

import platform
import sys

import pytest

from lib import ROOT, proc

sys.path.append(str(ROOT / "test/bench"))
import instructions  # noqa: E402


BRIEF = {("lock", "C", 5), ("look", "C", 5), ("yield", "C", 20)}
CASES = [pytest.param(*case, marks=[] if case in BRIEF else pytest.mark.long) for case in instructions.CASES]


@pytest.mark.measured
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the table is x86-64's")
@pytest.mark.parametrize("op, frames, depth", CASES)
def test_hot_path_is_not_longer(op, frames, depth):
    kept = instructions.kept()[op, frames, depth]
    compiler = proc.run(["gcc", "-dumpversion"]).ok().stdout.strip()
    most = 1.1 if compiler == "12" else 1.2  # the table's is 12
    for mode, added in instructions.added(op, frames, depth)[1].items():
        assert added <= kept[mode] * most + 5, (
            f"{op} at depth {depth} of {frames}, {mode}: {added:.0f} instructions added, {kept[mode]} in {instructions.TABLE}"
        )
