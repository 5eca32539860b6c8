"""Tests that are run again on the library of `make debug`, which ends the program where a rule of concurrency is broken.

unit/debug.c breaks each of those rules that need no interposition; the others are broken here.
"""

import os
import sys

import pytest

from lib import ROOT, SINGLE, SOURCES, proc

DEBUG = ROOT / "build/debug"
pytestmark = pytest.mark.skipif(not os.environ.get("ALL_NEEDS"), reason="second runs on the library of `make debug`: ./scripts/test --all")
AGAIN = {  # file: which of its tests, as pytest's -k says
    "unit": "",
    "integration/test_waits.py": "not percent and not minimum",
    "integration/test_lifecycle.py": "not fork_while",  # there the program's own code waits inside ours
    "integration/test_control.py": "not slowed",
    "integration/test_memory.py": "ring or v1",
    "integration/test_hostile.py": "(forks or jumps or cancels or handlers or stages or urgent) and not each_instruction",
    "apps/test_tools.py": "",
}


TIMED = {"unit", *(f"integration/test_{name}.py" for name in ("waits", "lifecycle", "control", "memory"))}  # some are measured


@pytest.mark.limit(400)
@pytest.mark.parametrize("file", [pytest.param(f, marks=pytest.mark.alone) if f in TIMED else f for f in AGAIN])
def test_again(file):
    argv = [sys.executable, "-m", "pytest", "-q", "-x", *([] if file in TIMED else ["--short"]), "-p", "no:cacheprovider", ROOT / "test" / file]
    env = {"GOTRACE_TEST_BUILD": "build/debug", "PYTEST_XDIST_WORKER": ""}
    result = proc.run([*argv, *(["-k", AGAIN[file]] if AGAIN[file] else [])], env=env, timeout=390)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-2000:]


@pytest.mark.parametrize("hook", ["block = malloc(1)", "usleep(1)"])
def test_our_code_calls_no_hook(tmp_path, hook):
    program = SINGLE / "debug/unloads"
    library = proc.compile(SOURCES / "debug/calls_a_hook.c", tmp_path / "next.so", f"-DHOOK={hook}", "-D_GNU_SOURCE", "-shared", "-fPIC")
    env = proc.traced_env(tmp_path / "t.out")
    proc.run([program], env=env | {"LD_PRELOAD": f"{env['LD_PRELOAD']} {library}"}).ok()
    result = proc.run([program], env=env | {"LD_PRELOAD": f"{DEBUG / 'libgotrace.so'} {library}"})
    assert "rule broken: our code calls no hook of ours" in result.stderr, result
    assert result.returncode == -5, result  # SIGTRAP
