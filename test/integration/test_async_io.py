"""Waits for asynchronous I/O that a library makes, against the program's own clock (test/apps/async_io.c)."""

import re

import pytest

from lib import ROOT, proc, reports

SOURCE = ROOT / "test/apps/async_io.c"


@pytest.mark.measured
def test_waits_of_libraries(traced, tmp_path):
    program = tmp_path / "async_io"
    result = proc.run(["gcc", "-D_GNU_SOURCE", "-O1", "-g", "-o", program, SOURCE, "-luring", "-laio"])
    if result.returncode:
        pytest.skip("libaio and liburing are not here; ./scripts/deps all installs them")
    result = traced([program]).ok()
    expected = re.findall(r"^(\w+) -?\d+ (\d+)$", result.stdout, re.M)
    waits = reports.waits(result.trace, "network")
    for name, ns in expected:  # where a sandbox forbids one, the program says so
        its = [(took, count) for took, count, what in waits if re.fullmatch(rf"{name} <- by_(aio|uring) \(async_io\.c:\d+\)", what)]
        assert len(its) == 1 and its[0][1] == 1 and 0.9 * 30e6 <= its[0][0] <= 1.05 * int(ns), f"{name} {ns}: {waits}"
    assert len(expected) + 3 * ("no io_uring" in result.stdout) + ("no libaio" in result.stdout) == 4, result
