"""The stress test of encoder and registry under ThreadSanitizer."""

import pytest

from lib import ROOT, proc


@pytest.mark.parametrize("restart", [[], ["restart"]], ids=["generations", "recordings"])
def test_no_data_race(tmp_path, restart):
    argv = [ROOT / "build/tsan/stress", 3000, "go1.23", tmp_path / "t.out", *restart]
    result = proc.run(argv, env={"TSAN_OPTIONS": "exitcode=66"}, timeout=55).ok()
    assert "WARNING: ThreadSanitizer" not in result.stdout + result.stderr
