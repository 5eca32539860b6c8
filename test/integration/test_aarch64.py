"""Tests that are run again on aarch64, by qemu's emulation of its programs (qemu-user) on a machine of another kind.

What tests compile, cross compilers do; the tools that read traces are this machine's. Tests that trace programs of this
system are skipped. GOTRACE_TEST_BUILD=build/aarch64 does the same for any test by hand.
"""

import os
import sys

import pytest

from lib import ROOT, proc

pytestmark = [
    pytest.mark.skipif(not os.environ.get("GOTRACE_AARCH64"), reason="second runs on aarch64, with qemu-user-static: GOTRACE_AARCH64=1"),
]
AGAIN = {  # file: which of its tests, as pytest's -k says; all others are of no architecture, or ask of qemu what it has not
    "unit": "not damage"  # not done within a minute
    " and not symbolize_modules"  # nor within three
    " and not symbolize_guest",  # no fork there came in the middle of a call
    "integration/test_truth.py": "",
    "integration/test_waits.py": "",
    "integration/test_unwind.py": "test_c or test_cxx or deep or ours_in_the_middle or ran_over or bound",
    "integration/test_calls.py": "not profile_totals and not no_wait",  # calls that take long there where nothing waits
    "integration/test_cpu.py": "test_shares and kernel-100 or test_exact_leaf and kernel or stacks_from_anywhere",
    "integration/test_heap.py": "(curve or storm or every_function or operators) and glibc",
    "integration/test_annotations.py": "stack or scopes or built_in_any_way or loaded_later",
    "integration/test_hostile.py": "errno or stack_above or all_keys or jumps_out and exit",
}


@pytest.mark.alone
@pytest.mark.limit(400)
@pytest.mark.parametrize("file", AGAIN)
def test_again(file):
    argv = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", ROOT / "test" / file]
    env = {"GOTRACE_TEST_BUILD": "build/aarch64", "PYTEST_XDIST_WORKER": ""}
    result = proc.run([*argv, *(["-k", AGAIN[file]] if AGAIN[file] else [])], env=env, timeout=390)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-2000:]
