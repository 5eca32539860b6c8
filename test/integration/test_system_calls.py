"""preload/life/seccomp.c lists the system calls that the tracer may make. Here it is watched making them, in all its modes:
libc's functions make others from one version to the next."""

import functools
import os
import re

import pytest

from lib import LIBRARY, PROGRAMS, ROOT, proc

pytestmark = pytest.mark.limit(300)

WAYS = ["threads", "first", "alone", "crash"]
OPTIONS = {
    "file": {},
    "ring": {"GOTRACE_RING": "1M"},
    "samples": {"GOTRACE_CPU_HZ": "1000", "GOTRACE_SYSCALLS": "all"},
    "v1": {"GOTRACE_FORMAT": "go1.5"},
    "sched": {"GOTRACE_SCHED": "on"},
    "late": {"GOTRACE_START": "manual", "GOTRACE_SIGNAL": "SIGUSR2"},
    "small": {"GOTRACE_MAX_SIZE": "64K"},
}
# What each thread does that libc makes, the program's own no less.
THREAD = {"clone3", "set_robust_list", "rseq", "exit"}
RARE = {
    "getcwd": "a module with a relative path",
    "lseek": "the program has closed our descriptor",
    "nanosleep": "a FIFO without a reader",
    "sched_getaffinity": "sysconf of glibc 2.34",
    "sched_setscheduler": "a real-time program",
}


@functools.cache
def numbers():
    text = proc.run(["gcc", "-E", "-dM", "-include", "sys/syscall.h", "-x", "c", "/dev/null"]).ok().stdout
    return {int(number): name for name, number in re.findall(r"^#define __NR_(\w+) (\d+)$", text, re.M)}


def listed(*tables):
    """Of those that this libc makes."""
    libc, found = int(os.confstr("CS_GNU_LIBC_VERSION").split(".")[1]), set()
    for table in tables:
        rows = re.search(rf"struct need {table}\[\] = {{(.*?)\n}};", (ROOT / "preload/life/seccomp.c").read_text(), re.S)[1]
        found |= {name for until, name in re.findall(r"{(?:UNTIL\((\d+), )?SYS_(\w+)", rows) if not until or libc < int(until)}
    assert found
    return found


@functools.cache
def calls(way, options, directory):
    """Of the program's threads and of the tracer's own; bare without options."""
    tracing = {"SPY_PRELOAD": LIBRARY, "GOTRACE_OUTPUT": directory / "t.out"} | OPTIONS.get(options, {})
    argv = [PROGRAMS / "spy", PROGRAMS / "needs", way, directory]
    result = proc.run(argv, env=tracing if options else {}, timeout=60)
    if result.returncode == 77:
        pytest.skip("nothing may be traced here")
    assert result.returncode == (128 + 11 if way == "crash" else 0), result
    made = {"program": set(), "tracer": set()}
    for who, number in re.findall(r"^(\w+) (\d+)$", result.stdout, re.M):
        made[who].add(numbers()[int(number)])
    return made["program"], made["tracer"]


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("calls")


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("way", WAYS)
def test_what_is_made_is_listed(directory, way, options):
    bare, none = calls(way, None, directory)
    program, tracer = calls(way, options, directory)
    threads = listed("threads_need", "handlers_need", "urgent_need", "usage_need", "channels_need", "file_locks_need")
    both = threads | listed("drain_needs", "watch_need")
    assert bare and not none and (tracer or way == "alone")
    assert not tracer - both - THREAD
    assert not program - bare - (threads if way in ("threads", "crash") else both | THREAD)


def test_what_is_listed_is_made(directory):
    seen = set().union(*(made for way in WAYS for options in OPTIONS for made in calls(way, options, directory)))
    assert listed("threads_need", "handlers_need", "drain_needs") - seen <= set(RARE)
