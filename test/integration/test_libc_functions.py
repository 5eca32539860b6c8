"""Every function of the installed glibc against lib/libc_functions.txt: hooked, or not for a reason; and what is hooked is seen.

LIBC_ROOTS=DIR:DIR… also reads the glibc in each of these directories: what `dpkg -x libc6_….deb DIR` unpacks.
"""

import ctypes
import fnmatch
import functools
import os
import pathlib
import re

import pytest

from lib import AARCH64, LIBC, LIBRARY, PROGRAMS, gotools, proc, truth

TABLE = pathlib.Path(__file__).parents[1] / "lib/libc_functions.txt"
PARTS = ["libc.so.6", "libpthread.so.0", "librt.so.1", "libresolv.so.2", "libanl.so.1", "libdl.so.2", "libutil.so.1"]
FUNCTION = {"T", "W", "i"}  # as nm says it
HOOKED = "hooked"


def functions(path):
    """The names of the functions that a library exports."""
    lines = proc.run(["nm", "-D", "--defined-only", "--format=posix", path]).ok().stdout.splitlines()
    return {line.split()[0].split("@")[0] for line in lines if line.split()[1] in FUNCTION}


def installed():
    """Where the glibc is that this process runs with."""
    ctypes.CDLL("libc.so.6")
    return pathlib.Path(re.search(r" (/\S*/libc[-.]\S*)$", pathlib.Path("/proc/self/maps").read_text(), re.M)[1]).parent


@functools.cache
def libc(where):
    """The functions of all parts of the glibc in this directory: at least libc.so.6."""
    return set().union(*(functions(where / part) for part in PARTS if part == PARTS[0] or (where / part).exists()))


def unpacked():
    return [path.parent for root in filter(None, os.environ.get("LIBC_ROOTS", "").split(":")) for path in pathlib.Path(root).rglob(PARTS[0])]


@functools.cache
def groups():
    """Group → its names and patterns, in the order of the table."""
    found = {}
    for line in TABLE.read_text().splitlines():
        if line.startswith(" "):
            list(found.values())[-1].extend(line.split())
        elif line and not line.startswith("#"):
            name, reason = line.split(": ", 1)
            assert reason and name not in found, line
            found[name] = []
    return found


def group_of(function):
    """The groups that have this function: those that name it, or else those with a pattern that fits."""
    named = [group for group, names in groups().items() if function in names]
    fitting = [group for group, names in groups().items() if any("*" in n and fnmatch.fnmatchcase(function, n) for n in names)]
    return named or fitting


@pytest.mark.parametrize("where", [installed(), *unpacked()], ids=str)
def test_every_function_is_in_one_group(where):
    assert len(libc(where)) > 2000, "not a glibc"
    unknown = {function: group_of(function) for function in libc(where) if len(group_of(function)) != 1}
    assert not unknown, f"{unknown}: in no group, or in several, of {TABLE}"


@pytest.mark.skipif(AARCH64, reason="the library is of another architecture than the installed libc")
@pytest.mark.parametrize("where", [installed(), *unpacked()], ids=str)
def test_hooked_is_what_the_library_exports(where):
    ours, hooked = functions(LIBRARY), set(groups()[HOOKED])
    assert not hooked - ours, f"said to be hooked, and is not: {hooked - ours}"
    assert not ours & libc(where) - hooked, f"hooked, and the table does not say so: {ours & libc(where) - hooked}"


@pytest.mark.skipif(AARCH64, reason="the library is of another architecture than the installed libc")
@pytest.mark.parametrize("where", [pytest.param(installed(), marks=pytest.mark.long), *unpacked()], ids=str)
def test_the_library_runs_with_it(where, tmp_path):
    """The program of all calls, by that glibc's own loader: what they return is the same as without the library."""
    if b"GLIBC_2.%d\0" % LIBC not in (where / PARTS[0]).read_bytes():
        pytest.skip("older than the glibc that the library was built with")
    (loader,) = where.glob("ld-linux-*.so.*")
    argv = [loader, "--library-path", f"{where}:{installed()}"]
    program = [PROGRAMS / "calls", *(row for row in truth.rows("calls", "timed", "counted", "quiet") if row != "getaddrinfo")]  # needs its NSS
    bare = truth.results(proc.run([*argv, *program]).ok())
    for calls in ("blocking", "all"):
        env = {"GOTRACE_OUTPUT": str(tmp_path / "t.out"), "GOTRACE_SYSCALLS": calls}
        traced = proc.run([*argv, "--preload", LIBRARY, *program], env=env).ok()
        assert (tmp_path / "t.out").stat().st_size > 1000, traced
        assert truth.results(traced) == bare


def test_a_function_that_is_in_no_group_is_noticed():
    assert group_of("wait_for_something") == []
    assert group_of("read") == [HOOKED] and group_of("strlen") == ["computes"]


@pytest.mark.measured
def test_hooked_functions_are_seen(traced):
    """All rows of calls.c in one run: each wait is in the trace, under a name of the first group, as long as the program's clock says."""
    result = traced([PROGRAMS / "calls"]).ok()
    expected = truth.truths(result)
    truth.check(expected, gotools.parse(result.trace))
    seen = {t.hook for t in expected}
    assert len(seen) > 80
    assert seen - {"io_getevents", "io_uring_enter"} <= set(groups()[HOOKED])  # those two are system calls that libc has no name for
