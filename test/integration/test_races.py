"""The stress test of encoder and registry under ThreadSanitizer."""

from lib import ROOT, proc


def test_no_data_race():
    result = proc.run([ROOT / "build/tsan/stress", "5000"], env={"TSAN_OPTIONS": "exitcode=66"}, timeout=55).ok()
    assert "WARNING: ThreadSanitizer" not in result.stdout + result.stderr
