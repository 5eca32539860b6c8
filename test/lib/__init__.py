"""Shared helpers of the tests: `proc` runs programs, `gotools` runs the Go tools, `pprof` decodes profiles."""

import collections
import os
import pathlib
import sysconfig

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("GOTRACE_TEST_BUILD", "build")  # or build/debug: test_debug.py
AARCH64 = BUILD.name == "aarch64"  # runs by qemu: test_aarch64.py
LIBRARY = ROOT / "libgotrace.so" if BUILD == ROOT / "build" else BUILD / "libgotrace.so"
BUILT = BUILD if AARCH64 else ROOT / "build"  # what is not the library
PROGRAMS = BUILT / "test/prog"
SINGLE = BUILT / "test/single"  # programs of one test file each
SOURCES = ROOT / "test/source"  # what tests compile or run themselves
UNIT_TESTS = BUILD / "test/unit"
HOSTILE = BUILT / "test/hostile"
# Of programs in build/asan: a status that no command has by itself, whichever sanitizer it is that finds something.
SANITIZER = {"ASAN_OPTIONS": "detect_leaks=0:exitcode=66", "UBSAN_OPTIONS": "print_stacktrace=1:exitcode=66"}
ALL = os.environ.get("ALL_NEEDS")  # `scripts/test --all` has installed everything: nothing may be missing
LIBRARIES = pathlib.Path("/usr/lib") / ("aarch64-linux-gnu" if AARCH64 else sysconfig.get_config_var("MULTIARCH") or "")
LIBC = int(os.confstr("CS_GNU_LIBC_VERSION").split(".")[1])  # 2.N
FUTEX = 202 if os.uname().machine == "x86_64" else 98  # the number of futex(2)

if not hasattr(collections.Counter, "total"):  # Python 3.9
    collections.Counter.total = lambda counter: sum(counter.values())
