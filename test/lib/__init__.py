"""Shared helpers of the tests: `proc` runs programs, `gotools` runs the Go tools, `pprof` decodes profiles."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "libgotrace.so"
PROGRAMS = ROOT / "build/test/prog"
UNIT_TESTS = ROOT / "build/test/unit"
HOSTILE = ROOT / "build/test/hostile"
