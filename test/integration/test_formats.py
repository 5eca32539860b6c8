"""Every format that GOTRACE_FORMAT offers, read by every Go on this machine whose tool knows it."""

import collections
import json
import os
import time

import pytest

from lib import PROGRAMS, ROOT, UNIT_TESTS, gotools, proc
from lib.seeds import seeded

FUZZ = ROOT / "build/test/fuzz/schedules"
SCHEDULES = int(os.environ.get("FUZZ_SCHEDULES", "30"))  # of each format; the claim in test/README.md is 10,000
FIRST = int(os.environ.get("FUZZ_FIRST", "1"))  # seed
KILLS = int(os.environ.get("KILL_RUNS", "2"))
BATCH = 200  # traces on disk at a time
SLEEPS = {"usleep", "nanosleep", "clock_nanosleep"}


def record(traced, format, *argv, **env):
    return traced([PROGRAMS / argv[0], *argv[1:]], env={"GOTRACE_FORMAT": format} | env).ok()


def header(trace):
    with open(trace, "rb") as file:
        return file.read(16).rstrip(b"\0").decode()


@pytest.mark.measured
@pytest.mark.parametrize("format", gotools.some("go1.5", "go1.22", "go1.26"))
def test_waits(traced, format):
    """Blocked time by call, of the program that knows it, in each tool's own synchronization profile."""
    result = record(traced, format, "truth")
    assert header(result.trace) == f"go {format[2:]} trace"
    sums = collections.defaultdict(lambda: (0, 0))
    for hook, _, _, ns, arranged in map(str.split, result.stdout.splitlines()):
        sums[hook] = sums[hook][0] + int(arranged), sums[hook][1] + int(ns)
    for go in gotools.readers_of(format, every=True).values():
        gotools.check(result.trace, go=go)
        leaves = gotools.pprof(result.trace, "sync", go=go).leaf_ns()
        for hook, (least, most) in sums.items():
            if hook not in SLEEPS:
                assert 0.95 * least <= leaves[hook] <= 1.05 * most, f"{go}: {hook}: {leaves[hook]}, {least} to {most}"


@pytest.mark.measured
@pytest.mark.parametrize("format", gotools.some("go1.22", "go1.26"))
def test_calls(traced, format):
    """System calls and the network: the time between two calls must not count."""
    result = record(traced, format, "rounds")
    truth = {hook: (int(arranged), int(ns)) for hook, ns, arranged in map(str.split, result.stdout.splitlines())}
    for go in gotools.readers_of(format, every=True).values():
        for hook, kind in (("read", "syscall"), ("recv", "net")):
            least, most = truth[hook]
            ns = gotools.pprof(result.trace, kind, go=go).leaf_ns()[hook]
            assert 0.95 * least <= ns <= 1.05 * most, f"{go}: {hook}: {ns}, {least} to {most}"


@pytest.mark.measured
@pytest.mark.limit(600)
@pytest.mark.long
def test_calls_of_go_itself(tmp_path):
    """What the tools make of Go's own traces: mutexes are right, calls only from Go 1.26 on (`encoder/format/README.md`).

    Go up to 1.21 writes a call as one only if its P was taken away meanwhile, and the tools of Go 1.22 to 1.25 add what
    was computed after it. `test_calls` demands the truth of our traces in all of them.
    """
    for writer, go in gotools.versions().items():
        trace = tmp_path / f"1.{writer}.trace"
        calls, locks = map(int, proc.run([gotools.program(go, "itself"), trace]).ok().stdout.split())
        for reader, tool in gotools.versions().items():
            if reader < writer:
                continue
            ns = gotools.pprof(trace, "sync", go=tool).cumulative_ns()["sync.(*Mutex).Lock"]
            assert 0.95 * locks <= ns <= 1.05 * locks, f"1.{writer} read by 1.{reader}: {ns}, {locks}"
            ns = gotools.pprof(trace, "syscall", go=tool).cumulative_ns()["syscall.read"]
            print(f"written by 1.{writer}, read by 1.{reader}: {ns / calls:.0%} of {calls} ns in calls")
            if reader < 26 and writer >= 22:
                assert ns > 1.05 * calls
            elif writer >= 22:
                assert 0.95 * calls <= ns <= 1.05 * calls


@pytest.mark.parametrize("format", ["go1.5", "go1.7", "go1.21", "go1.22", "go1.25", "go1.26"])
def test_names(traced, format):
    """Functions, files and lines; for Go 1.5 through the line table beside the trace."""
    result = record(traced, format, "truth")
    for go in gotools.readers_of(format, every=True).values():
        stacks = [names for names, _, _ in gotools.pprof(result.trace, "sync", go=go).samples]
        assert any(names[0] == "pthread_mutex_lock" and "lock_waiter" in names for names in stacks), stacks
    if format == "go1.5":
        elf = f"{result.trace}.elf"
        lines = proc.run([gotools.find("1.19"), "tool", "addr2line", elf], stdin="0x10000000020\n0x10000000030\n").ok().stdout
        assert "truth.c:" in lines or "libc" in lines, lines


@pytest.mark.chance
@pytest.mark.limit(600)
@pytest.mark.parametrize("format", gotools.some("go1.5", of=[f for f in gotools.FORMATS if gotools.FORMATS[f][0] < 22]))
def test_killed(tmp_path, format):
    """The file of a process killed at any moment is whole pages, and a trace for every reader and its web pages."""
    chance, traces = seeded(moments=True), [tmp_path / f"{run}.out" for run in range(KILLS)]
    for run, trace in enumerate(traces):
        child = proc.spawn([PROGRAMS / "forever"], env=proc.traced_env(trace, {"GOTRACE_FORMAT": format}))
        proc.until(lambda: trace.exists() and trace.stat().st_size, child=child, pause=0.001)
        time.sleep(chance.uniform(0, 1.5 if run else 0.1))  # the first one is killed early: pages are made of the smallest, and a trace grows by 50 MB a second
        proc.kill_group(child)
        assert trace.stat().st_size % 4096 == 0
    for go in gotools.readers_of(format, every=True).values():
        result = proc.run([gotools.read_all(go), *traces], timeout=120).ok()
        assert not result.stdout, result.stdout[:2000]
        shown = gotools.pages(min(traces, key=lambda trace: trace.stat().st_size), go=go)
        timelines = [json.loads(text) for page, text in shown.items() if page.startswith("/jsontrace")]
        assert timelines and all(timeline["traceEvents"] for timeline in timelines), shown.keys()


@pytest.mark.parametrize("format", ["go1.5", "go1.10", "go1.21"])
def test_still_blocked(traced, format):
    """Calls and waits that the end of the trace interrupts are in it, and have no end."""
    result = record(traced, format, "unended")
    argv = [gotools.find("1.21"), "tool", "trace", "-d", *gotools.program_of(result.trace), result.trace]
    lines = proc.run(argv).ok().stdout.splitlines()
    assert [line.split()[1] for line in lines if " g=2 " in line][-1] == "GoBlockSync", lines
    assert [line.split()[1] for line in lines if " g=3 " in line][-1] == "GoSysBlock", lines


@pytest.mark.parametrize("format", gotools.some("go1.5", "go1.22", "go1.26"))
@pytest.mark.parametrize("restart", [[], ["restart"]], ids=["generations", "recordings"])
def test_stress(tmp_path, format, restart):
    """Real threads that block, wake each other and come and go, in thousands of generations; or of recordings."""
    trace = tmp_path / "t.out"
    proc.run([UNIT_TESTS / "stress", 500, format, trace, *restart], timeout=60).ok()
    for go in gotools.readers_of(format, every=True).values():
        result = proc.run([gotools.read_all(go), trace], timeout=120).ok()
        assert not result.stdout, result.stdout[:2000]


@pytest.mark.chance
@pytest.mark.limit(3600)
@pytest.mark.parametrize("format", gotools.FORMATS)
def test_schedules(tmp_path, format):
    """Random valid schedules, through the real encoder, into the real readers: not one may be refused."""
    readers = [gotools.read_all(go) for go in gotools.readers_of(format, every=True).values()]
    for first in range(FIRST, FIRST + SCHEDULES, BATCH):
        count = min(BATCH, FIRST + SCHEDULES - first)
        proc.run([FUZZ, format, first, count, tmp_path], timeout=600).ok()
        traces = sorted(tmp_path.glob("*.trace"))
        assert len(traces) == count
        for reader in readers:
            result = proc.run([reader, *traces], timeout=600).ok()
            assert not result.stdout, f"{reader}:\n{result.stdout[:2000]}\nrepeat: {FUZZ} {format} {first} {count} ."
        for file in tmp_path.iterdir():
            file.unlink()
