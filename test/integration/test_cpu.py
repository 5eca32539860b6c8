"""GOTRACE_CPU_HZ: where threads use the CPU, and that the program does not notice."""

import collections
import errno
import json
import os
import re
import signal
import urllib.request

import pytest

from lib import HOSTILE, PROGRAMS, ROOT, SINGLE, SOURCES, gotools, proc
from lib.reports import without_cancellation

pytestmark = pytest.mark.limit(400)  # programs that need so much CPU time, on a busy machine
LONG = {"timeout": 180}
FORMATS = [f for f in gotools.FORMATS if int(f.split(".")[1]) >= 19]


def samples(trace, go=None):
    return [e for e in gotools.parse(trace, go=go) if e.kind == "StackSample"]


@pytest.fixture
def by_kernel():
    if not proc.may_sample_kernel():
        pytest.skip("the kernel does not let this user sample")


@pytest.fixture(params=["kernel", "signals"])
def sampled(request, traced):
    """As `traced`, and who samples threads when there are several."""
    if request.param == "kernel" and not proc.may_sample_kernel():
        pytest.skip("the kernel does not let this user sample")
    before = [] if request.param == "kernel" else [PROGRAMS / "without_perf"]
    return lambda argv, **options: traced([*before, *argv], **options)


def whole(stack):
    """Back to where the thread began, in the program or, before main, in the dynamic linker."""
    first = stack[-1].func
    return first in ("_start", "clone3", "__clone3", "__GI___clone3", "clone", "thread_start") or first.startswith("ld-linux")


def truth(result):
    """(thread, function) → nanoseconds of CPU time."""
    rows = [line.split("\t") for line in result.stdout.splitlines()]
    return {(int(tid), function): int(ns) for function, tid, ns in rows}


def lost_of(result):
    """How many samples the exit line says are lost: while the library's thread has no CPU the kernel may have no room for them."""
    told = re.search(r" s, (\d+) CPU samples lost; ", result.stderr)
    assert told or "nothing lost" in result.stderr, result
    return int(told[1]) if told else 0


@pytest.mark.measured
@pytest.mark.parametrize("hz", [25, 100, 1000])
def test_shares(sampled, hz):
    """As many samples as CPU time says, of each function in each thread; none of a thread that sleeps."""
    result = sampled([PROGRAMS / "cpu", 1], env={"GOTRACE_CPU_HZ": hz}, **LONG).ok()
    lost, expected = lost_of(result), truth(result)
    count = collections.Counter()
    found = samples(result.trace)
    for e in found:
        names = [f.func for f in e.stack]
        assert whole(e.stack), names
        # "thread": as it begins or ends, or makes another
        count[e.m, next((n for n in names if n in ("three_quarters", "one_quarter", "burner")), "thread")] += 1
        if names[0] in ("three_quarters", "one_quarter"):
            assert names[1:7] == ["descend"] * 6 and names[7] == "burner", names
    for thread in {m for m, f in expected if f == "three_quarters"}:
        both = {f: count[thread, f] for f in ("three_quarters", "one_quarter")}
        total = sum(expected[thread, f] for f in both) / 1e9 * hz
        # between the functions the thread reads the clock
        assert 0.95 * total - 2 - lost <= sum(both.values()) + count[thread, "burner"] <= 1.05 * total + 2, (both, lost)
        alike = max(1, hz / 100)  # the kernel looks at its ticks, 100 a second or more
        assert abs(both["one_quarter"] - total / 4) <= 4 * (total * alike * 3 / 16) ** 0.5 + 2 + lost, (both, lost)
    assert not [m for m, where in count if (m, "sleeper") in expected and where != "thread"]
    # the kernel gives what fell due since its last tick at once
    assert sum(n for (_, where), n in count.items() if where == "thread") <= 0.02 * len(found) + max(1, hz / 100)


@pytest.mark.measured
@pytest.mark.long
def test_exact_leaf(sampled):
    """The interrupted instruction itself, not the one before: all lines are those of the loops."""
    result = sampled([PROGRAMS / "cpu", 1], env={"GOTRACE_CPU_HZ": 1000}, **LONG).ok()
    leaves = [e.stack[0] for e in samples(result.trace)]
    source = (ROOT / "test/prog/cpu.c").read_text().splitlines()
    lines = collections.Counter(source[f.line - 1].strip() for f in leaves if f.file.endswith("cpu.c"))
    loops = sum(n for line, n in lines.items() if line.startswith(("x = ", "for (int i")))
    assert loops > 0.95 * sum(lines.values()) > 500, lines


@pytest.mark.measured
@pytest.mark.parametrize("format", gotools.some(of=FORMATS))
@pytest.mark.long
def test_formats(traced, format):
    """On the timeline of every viewer, on the thread's row."""
    result = traced([PROGRAMS / "cpu", 0.5], env={"GOTRACE_CPU_HZ": 100, "GOTRACE_FORMAT": format}, **LONG).ok()
    total = sum(truth(result).values()) / 1e9 * 100
    for go in gotools.readers_of(format).values():
        gotools.check(result.trace, go=go)
        with gotools.viewer(result.trace, go=go) as url:
            with urllib.request.urlopen(url + "/jsontrace?view=proc", timeout=30) as answer:
                shown = [e for e in json.load(answer)["traceEvents"] if e["name"] == "CPU profile sample"]
        assert 0.9 * total - 3 <= len(shown) <= 1.1 * total + 3, f"{go}: {len(shown)} of {total}"
        assert len({e["tid"] for e in shown}) == 3 and all(e["sf"] for e in shown), go


@pytest.mark.parametrize("format", ["go1.5", "go1.11"])
def test_older_formats_have_none(traced, format):
    result = traced([PROGRAMS / "cpu", 0.1], env={"GOTRACE_CPU_HZ": 100, "GOTRACE_FORMAT": format}).ok()
    assert "go1.19 or later" in result.stderr
    gotools.check(result.trace, go=gotools.find("1.21"))


FLAGS = [["-O2", "-fomit-frame-pointer"], ["-O3", "-fomit-frame-pointer", "-flto"], ["-O2", "-no-pie"], ["-O0"]]


@pytest.mark.measured
@pytest.mark.parametrize("flags", FLAGS)
def test_stacks_from_anywhere(traced, tmp_path, flags):
    """Prologues, epilogues, calls through the PLT, libc, vDSO: each stack goes back to the beginning."""
    program = proc.compile(SOURCES / "cpu/anywhere.c", tmp_path / "anywhere", *flags)
    result = traced([program], env={"GOTRACE_CPU_HZ": 10000}, **LONG).ok()
    stacks = [e.stack for e in samples(result.trace)]
    cut = [[f.func for f in s] for s in stacks if not whole(s)]
    assert len(stacks) > 100
    assert len(cut) <= 0.01 * len(stacks), f"{len(cut)} of {len(stacks)}: {cut[:5]}"


@pytest.mark.measured
def test_one_thread_that_only_computes(traced):
    """Nobody comes by to take its samples, and it gets no second thread for that."""
    program = SINGLE / "cpu/computes"
    result = traced([program], env={"GOTRACE_CPU_HZ": 1000}, **LONG).ok()
    threads, microseconds, wall = map(int, result.stdout.split())
    assert threads == 1 and "nothing lost" in result.stderr
    found = samples(result.trace)
    # Timers count what a hypervisor takes away, clocks do not.
    assert 0.95 * microseconds / 1000 < len(found) < 1.05 * wall / 1000, f"{len(found)} in {microseconds} us of {wall}"
    assert all(whole(e.stack) for e in found)
    # the rest: between the rounds, before main and after it; a tick of the kernel's, 4 samples, counts for much
    assert sum(len(e.stack) > 90 for e in found) > 0.95 * len(found)


def interrupted(result):
    rows = [line.split("\t") for line in result.stdout.splitlines()]
    assert all(int(count) > 50 for _, count, _ in rows), rows
    return {call: int(n) for call, _, n in rows if int(n)}


@pytest.mark.measured
@pytest.mark.long
def test_nothing_is_interrupted(sampled):
    """Calls that never restart, and long writes: the sampler ends none of them, as another signal would."""
    assert len(interrupted(proc.run([PROGRAMS / "eintr", 1, "noise"]).ok())) > 5
    assert not interrupted(proc.run([PROGRAMS / "eintr", 1]).ok())
    result = sampled([PROGRAMS / "eintr", 2], env={"GOTRACE_CPU_HZ": 10000, "GOTRACE_SYSCALLS": "none"}).ok()
    assert not interrupted(result)
    found = samples(result.trace)
    assert len(found) > 5000
    # also those threads are sampled that block all signals
    assert any("do_sigtimedwait" in (f.func for f in e.stack) for e in found)


@pytest.mark.measured
@pytest.mark.long
def test_signals_of_the_program(sampled, tmp_path):
    """Every signal does for the program what it did, and so does its own profiling timer."""
    program = [PROGRAMS / "sigs"]
    bare = proc.run(program, **LONG).ok().stdout
    assert "profiled: as often" in bare and "waited for User defined" in bare
    for hz in (100, 1000):
        result = sampled(program, env={"GOTRACE_CPU_HZ": hz}, **LONG).ok()
        assert result.stdout == bare
    for trace in tmp_path.glob("t.out*"):
        gotools.check(trace)


@pytest.mark.measured
@pytest.mark.parametrize("args", [[], ["threads"]])
@pytest.mark.long
def test_realtime_signals(sampled, args):
    """A program may block, await and handle all of them, and change users in all threads, as if there were no sampler."""
    program = [PROGRAMS / "rtsigs", *args]
    bare = proc.run(program, **LONG).ok().stdout
    assert "in order 31 of 31\n" in bare and "groups 50, wrong 0\n" in bare, bare
    for hz in (100, 1000):
        result = sampled(program, env={"GOTRACE_CPU_HZ": hz}, **LONG)
        assert (result.returncode, result.stdout) == (0, bare), result
        burners = [e for e in samples(result.trace) if any(f.func == "compute_ns" for f in e.stack)]
        assert len(burners) > 0.3 * hz  # those before there are threads, in handlers, and in each thread
        for where in ("waits", "on_signal", "follow"):
            assert any(f.func == where for e in burners for f in e.stack), where


def test_small_signal_stack_from_before(traced, tmp_path):
    """A constructor that runs before ours sets one: no sample is taken on it."""
    proc.compile(SOURCES / "cpu/stack.c", tmp_path / "libstack.so", "-shared", "-fPIC")
    proc.compile(SOURCES / "cpu/small_stack.c", tmp_path / "p", tmp_path / "libstack.so", "-Wl,--no-as-needed")
    traced([tmp_path / "p"], env={"GOTRACE_CPU_HZ": "1000"}).ok()


@pytest.mark.measured
def test_signal_stacks_set_often(traced):
    """Neither a stack that is large enough, set more often than samples are due, nor one that is refused ends them."""
    program = SINGLE / "cpu/often"
    for size, times, refusal in (65536, 1 << 30, 0), (16, 1, 1):
        result = traced([program, size, times], env={"GOTRACE_CPU_HZ": 100}, **LONG).ok()
        refused, microseconds = map(int, result.stdout.split())
        assert refused == refusal
        assert len(samples(result.trace)) >= 0.8 * microseconds / 10000


@pytest.mark.measured
def test_signal_stacks_that_cannot_be_read(traced):
    """They are the kernel's to refuse, and errno is otherwise left alone."""
    program = SINGLE / "cpu/unreadable"
    bare = proc.run([program]).ok().stdout
    assert bare == 5 * f"-1 {errno.EFAULT}\n" + "0 0\n"
    result = traced([program], env={"GOTRACE_CPU_HZ": 100}).ok()
    assert result.stdout == bare
    assert len(samples(result.trace)) > 30


def test_timers_end_with_threads(traced):
    """A process has one timer a thread, at any time."""
    program = SINGLE / "cpu/timers"
    assert proc.run([program]).ok().stdout == "0\n"
    assert traced([program], env={"GOTRACE_CPU_HZ": 100}).ok().stdout == "1\n"
    assert traced([program]).ok().stdout == "0\n"


CASES = [("signals", c) for c in ("storm", "storm-restart", "altstack", "jumps", "interrupts", "cancels")]
CASES += [("forks", c) for c in ("fork", "daemon", "exec-thread")]


@pytest.mark.parametrize("program, case", CASES)
def test_hostile(sampled, program, case):
    """Beside a storm of signals of the program's own, on other stacks, in jumps; forking and executing."""
    bare = proc.run([HOSTILE / program, case], **LONG)
    result = sampled([HOSTILE / program, case], env={"GOTRACE_CPU_HZ": 10000}, **LONG)
    assert (result.returncode, result.stdout) == (bare.returncode, bare.stdout), result
    gotools.check_all(result.trace)


@pytest.mark.parametrize("value", ["-1", "10001", "often"])
def test_bad_value(traced, value):
    result = traced([PROGRAMS / "sleeps"], env={"GOTRACE_CPU_HZ": value}).ok()
    assert f"GOTRACE_CPU_HZ={value} is not a number up to 10000" in result.stderr


# --- by the kernel, without a signal


def stolen_ms():
    """What the machine below has given to others: samples go on meanwhile, a thread's own clock does not."""
    with open("/proc/stat") as file:
        return int(file.readline().split()[8]) * 1000 / os.sysconf("SC_CLK_TCK")


@pytest.mark.measured
@pytest.mark.needs("strace")
@pytest.mark.long
def test_without_a_signal(by_kernel, tmp_path):
    """Only those before our thread has met a thread; what follows is not bound to the kernel's ticks."""
    stolen = -stolen_ms()
    argv = ["strace", "-f", "-qq", "-e", "trace=none", "-e", "signal=all", "-o", tmp_path / "log"]
    env = proc.traced_env(tmp_path / "t.out", {"GOTRACE_CPU_HZ": "1000"})
    result = proc.run([*argv, *[f"-E{n}={v}" for n, v in env.items()], PROGRAMS / "cpu", 1], timeout=180).ok()
    assert len((tmp_path / "log").read_text().splitlines()) < 100
    stolen += stolen_ms()
    expected = sum(truth(result).values()) / 1e6
    found = samples(tmp_path / "t.out")
    assert 0.97 * expected - 10 < len(found) < 1.03 * expected + stolen + 10, (len(found), expected, stolen)
    assert len({(e.m, e.time) for e in found}) > 0.95 * len(found)


@pytest.mark.measured
@pytest.mark.long
def test_time_in_the_kernel(sampled):
    """A thread that spends its time in a system call is seen in that."""
    program = SINGLE / "cpu/zeros"
    result = sampled([program], env={"GOTRACE_CPU_HZ": "250"}, **LONG).ok()
    expected = float(result.stdout) * 250
    found = [without_cancellation(f.func for f in e.stack) for e in samples(result.trace)]
    reads = [names for names in found if "read" in names[0] and "reads" in names[1:]]
    seen = len(reads) + lost_of(result)
    assert len(reads) > 0.6 * expected and 0.9 * expected - 3 < seen < 1.1 * expected + 3, (seen, expected, collections.Counter(map(str, found)))


@pytest.mark.measured
def test_deep_stacks(sampled, tmp_path):
    """Deeper than what the kernel copies: those that our thread finds cut when it first looks are the last."""
    program = proc.compile(SOURCES / "cpu/deep.c", tmp_path / "deep", "-O0")
    result = sampled([program], env={"GOTRACE_CPU_HZ": "250"}, **LONG).ok()
    expected = float(result.stdout) * 250
    stacks = [e.stack for e in samples(result.trace) if any(f.func == "burn" for f in e.stack)]
    assert len(stacks) > 0.6 * expected and 0.9 * expected - 6 < len(stacks) + lost_of(result) < 1.1 * expected + 6
    assert sum(not whole(s) for s in stacks) <= 3 * 8


@pytest.mark.measured
@pytest.mark.long
def test_more_threads_than_rings(sampled):
    """Memory for copies of stacks is bounded: the others' are by signals."""
    program = SINGLE / "cpu/seventy"
    result = sampled([program], env={"GOTRACE_CPU_HZ": "1000"}, **LONG).ok()
    expected = float(result.stdout) * 1000
    found = [e for e in samples(result.trace) if any(f.func == "burn" for f in e.stack)]
    assert "nothing lost" in result.stderr
    assert 0.9 * expected < len(found) < 1.1 * expected, (len(found), expected)


@pytest.mark.measured
def test_code_that_comes_and_goes(sampled, tmp_path):
    """Stacks are walked while libraries are unloaded, and those of their code before that."""
    proc.compile(SOURCES / "cpu/work.c", tmp_path / "libwork.so", "-shared", "-fPIC")
    program = SINGLE / "cpu/loads"
    result = sampled([program, tmp_path / "libwork.so"], env={"GOTRACE_CPU_HZ": "1000"}, **LONG).ok()
    found = [e.stack for e in samples(result.trace)]
    work = [s for s in found if any(f.func == "work" for f in s)]
    assert 0.9 * 800 - 10 < len(work) < 1.1 * 800 + 10
    assert sum(not whole(s) for s in found) < 0.01 * len(found) + 2


@pytest.mark.measured
def test_where_a_cpu_is_a_p(by_kernel, traced):
    """With GOTRACE_SCHED samples are on the CPU that the thread was on, whoever takes them."""
    program = SINGLE / "cpu/pinned"
    result = traced([program], env={"GOTRACE_CPU_HZ": "250", "GOTRACE_SCHED": "on"}, **LONG)
    if result.returncode == 77:
        pytest.skip("there is one CPU")
    threads = collections.defaultdict(collections.Counter)
    for e in samples(result.ok().trace):
        if any(f.func == "burn" for f in e.stack):
            threads[e.m][e.p] += 1
    assert len(threads) == 2
    most = [of.most_common(1)[0] for of in threads.values()]
    assert {p for p, _ in most} == {0, 1} and all(n > 0.95 * sum(of.values()) for (_, n), of in zip(most, threads.values()))


@pytest.mark.measured
@pytest.mark.long
def test_recordings_and_children(sampled, tmp_path):
    """From one recording to the next, and in a child, threads go on being sampled."""
    program = SINGLE / "cpu/rounds"
    env = {"GOTRACE_CPU_HZ": "250", "GOTRACE_SIGNAL": "SIGUSR2", "GOTRACE_OUTPUT": tmp_path / "%p.out"}
    sampled([program], env=env, **LONG).ok()
    count = {}
    for trace in tmp_path.glob("*.out*"):
        gotools.check(trace)
        found = [e for e in samples(trace) if any(f.func == "burn" for f in e.stack)]
        count[trace.name] = collections.Counter(e.m for e in found)
    # recorded: the first 0.2 s of the main thread, and of the third round; the second; the child's two threads
    assert len(count) == 3, count
    # Who ends a recording has used 0.2 s by then; the other one of that round what it got.
    assert all(max(of.values()) > 35 for of in count.values()), count


@pytest.mark.measured
def test_stack_of_a_signal(by_kernel, traced):
    """A handler on a stack of its own, above the thread's: what it interrupted is in no copy. (By signals it is that
    alone: none of ours is taken there.)"""
    program = SINGLE / "cpu/above"
    result = traced([program], env={"GOTRACE_CPU_HZ": "250"}, **LONG).ok()
    found = [[f.func for f in e.stack] for e in samples(result.trace)]
    handler = [names for names in found if "handler" in names]
    assert 110 < len(found) < 140 and 90 < len(handler) < 110 and all(names.index("handler") <= 4 for names in handler)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGSEGV"])
def test_end_by_a_signal_beside_a_signal_stack(traced, name):
    """Samples that are due while what is recorded is completed do not overwrite what the program is to end by."""
    # Much to write then, which this thread does: it has no other.
    env = {"GOTRACE_CPU_HZ": 1000, "GOTRACE_SYSCALLS": "all", "GOTRACE_SYSCALL_MIN": 0, "GOTRACE_RING": "30s,64M"}
    result = traced([SINGLE / "cpu/ends", int(getattr(signal, name))], env=env, **LONG)
    assert result.returncode == -getattr(signal, name), result.stderr
    gotools.check(result.trace)


@pytest.mark.measured
def test_thread_that_begins_in_a_handler(sampled):
    """It is another goroutine then, and sampled once."""
    program = SINGLE / "cpu/handler"
    result = sampled([program], env={"GOTRACE_CPU_HZ": "250"}, **LONG).ok()
    found = [e for e in samples(result.trace) if any(f.func == "spin" for f in e.stack)]
    assert 0.9 * 0.7 * 250 - 3 < len(found) < 1.1 * 0.7 * 250 + 3


@pytest.mark.measured
@pytest.mark.parametrize("sched", ["off", "on"])
@pytest.mark.long
def test_long_unloading(sampled, tmp_path, sched):
    """While a library's destructor takes its time samples have no callers, but none is missing."""
    proc.compile(SOURCES / "cpu/nested.c", tmp_path / "libslow.so", "-shared", "-fPIC")
    program = SINGLE / "cpu/unloads"
    result = sampled([program, tmp_path / "libslow.so"], env={"GOTRACE_CPU_HZ": "250", "GOTRACE_SCHED": sched}, **LONG).ok()
    assert "nothing lost" in result.stderr
    seen = collections.Counter(e.stack[0].func for e in samples(result.trace))
    loop = sum(seen[f] for f in ("spin", "cpu", "clock_gettime"))  # it reads the clock in turn
    assert 225 < seen.total() < 280 and loop > 0.95 * seen.total() and seen["spin"] > seen.total() / 2, seen


@pytest.mark.measured
@pytest.mark.long
def test_memory_of_rings(by_kernel, traced, tmp_path):
    """Threads whose stacks are deeper than what is copied give theirs back."""
    program = proc.compile(SOURCES / "cpu/rings.c", tmp_path / "rings", "-O0")
    result = traced([program], env={"GOTRACE_CPU_HZ": "250"}, **LONG).ok()
    assert 0 < int(result.stdout) < 4096


SPINS = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; exit 5"
STARTS = {
    "system": f"import os; print(os.WEXITSTATUS(os.system({SPINS!r})))",
    "popen": f"import ctypes; libc = ctypes.CDLL(None); libc.popen.restype = ctypes.c_void_p; "
    f"print(libc.pclose(ctypes.c_void_p(libc.popen({SPINS.encode()!r}, b'r'))) >> 8)",
    "posix_spawn": f"import os; print(os.waitpid(os.posix_spawnp('sh', ['sh', '-c', {SPINS!r}], os.environ), 0)[1] >> 8)",
}


@pytest.mark.measured
@pytest.mark.parametrize("how", STARTS)
def test_what_is_started_by_posix_spawn_is_sampled(tmp_path, how):
    """It finds libc's signal ignored, which is no handler with a way back."""
    env = {"GOTRACE_CPU_HZ": "1000", "GOTRACE_CHILDREN": "all"}
    result = proc.traced(["/usr/bin/python3", "-c", STARTS[how]], tmp_path / "t.out", env=env, **LONG).ok()
    assert result.stdout == "5\n"
    assert any(samples(trace) for trace in tmp_path.glob("t.out.*"))
