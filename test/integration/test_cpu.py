"""GOTRACE_CPU_HZ: where threads use the CPU, and that the program does not notice."""

import collections
import errno
import json
import os
import urllib.request

import pytest

from lib import HOSTILE, PROGRAMS, ROOT, gotools, proc
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
    return first in ("_start", "clone3", "__clone3", "clone", "thread_start") or first.startswith("ld-linux")


def truth(result):
    """(thread, function) → nanoseconds of CPU time."""
    rows = [line.split("\t") for line in result.stdout.splitlines()]
    return {(int(tid), function): int(ns) for function, tid, ns in rows}


@pytest.mark.measured
@pytest.mark.parametrize("hz", [25, 100, 1000])
def test_shares(sampled, hz):
    """As many samples as CPU time says, of each function in each thread; none of a thread that sleeps."""
    result = sampled([PROGRAMS / "cpu", 1], env={"GOTRACE_CPU_HZ": hz}, **LONG).ok()
    assert "nothing lost" in result.stderr
    expected = truth(result)
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
        assert 0.95 * total - 2 <= sum(both.values()) + count[thread, "burner"] <= 1.05 * total + 2, both
        alike = max(1, hz / 100)  # the kernel looks at its ticks, of which there are 100 a second or more
        assert abs(both["one_quarter"] - total / 4) <= 4 * (total * alike * 3 / 16) ** 0.5 + 2, both
    assert not [m for m, where in count if (m, "sleeper") in expected and where != "thread"]
    # the kernel gives what fell due since its last tick at once
    assert sum(n for (_, where), n in count.items() if where == "thread") <= 0.02 * len(found) + max(1, hz / 100)


@pytest.mark.measured
def test_exact_leaf(sampled):
    """The interrupted instruction itself, not the one before: all lines are those of the loops."""
    result = sampled([PROGRAMS / "cpu", 1], env={"GOTRACE_CPU_HZ": 1000}, **LONG).ok()
    leaves = [e.stack[0] for e in samples(result.trace)]
    source = (ROOT / "test/prog/cpu.c").read_text().splitlines()
    lines = collections.Counter(source[f.line - 1].strip() for f in leaves if f.file.endswith("cpu.c"))
    loops = sum(n for line, n in lines.items() if line.startswith(("x = ", "for (int i")))
    assert loops > 0.95 * sum(lines.values()) > 500, lines


@pytest.mark.measured
@pytest.mark.parametrize("format", FORMATS)
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
    text = """
#include <stdlib.h>
#include <string.h>
#include <time.h>
static volatile int sink;
__attribute__((noinline)) static int leaf(int n) { char room[64]; memset(room, n, sizeof room); return room[n & 63]; }
__attribute__((noinline)) static int deep(int n) { return n ? deep(n - 1) + leaf(n) : abs(sink); }
__attribute__((noinline)) static void other(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    free(malloc((size_t)(t.tv_nsec & 255)));
    sink += (int)strlen(getenv("PATH"));
}
int main(void) {
    for (int i = 0; i < 300000; i++) { sink += deep(10); other(); }
    return 0;
}
"""
    program = proc.compile(text, tmp_path / "anywhere", *flags)
    result = traced([program], env={"GOTRACE_CPU_HZ": 10000}, **LONG).ok()
    stacks = [e.stack for e in samples(result.trace)]
    cut = [[f.func for f in s] for s in stacks if not whole(s)]
    assert len(stacks) > 100
    assert len(cut) <= 0.01 * len(stacks), f"{len(cut)} of {len(stacks)}: {cut[:5]}"


@pytest.mark.measured
def test_one_thread_that_only_computes(traced, tmp_path):
    """Nobody comes by to take its samples, and it gets no second thread for that."""
    text = """
#include <dirent.h>
#include <stdio.h>
#include <time.h>
static volatile long sink;
__attribute__((noinline)) static void deep(int n) {
    if (n) deep(n - 1); else for (int i = 0; i < 1000000; i++) sink += i;
    sink++;
}
int main(void) {
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    while (clock() < CLOCKS_PER_SEC) deep(90);
    clock_gettime(CLOCK_MONOTONIC, &end);
    int threads = 0;
    for (DIR *d = opendir("/proc/self/task"); readdir(d);) threads++;
    long wall = (end.tv_sec - begin.tv_sec) * 1000000 + (end.tv_nsec - begin.tv_nsec) / 1000;
    printf("%d %ld %ld\\n", threads - 2, clock(), wall);
    return 0;
}
"""
    program = proc.compile(text, tmp_path / "computes")
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
def test_realtime_signals(sampled, args):
    """A program may block, await and handle all of them, and change users in all threads, as if there were no sampler."""
    program = [PROGRAMS / "rtsigs", *args]
    bare = proc.run(program, **LONG).ok().stdout
    assert "in order 31 of 31\n" in bare and "groups 50, wrong 0\n" in bare, bare
    for hz in (100, 1000):
        result = sampled(program, env={"GOTRACE_CPU_HZ": hz}, **LONG)
        assert (result.returncode, result.stdout) == (0, bare), result
        burners = [e for e in samples(result.trace) if any(f.func == "burn" for f in e.stack)]
        assert len(burners) > 0.3 * hz  # those before there are threads, in handlers, and in each thread
        for where in ("waits", "on_signal", "follow"):
            assert any(f.func == where for e in burners for f in e.stack), where


def test_small_signal_stack_from_before(traced, tmp_path):
    """A constructor that runs before ours sets one: no sample is taken on it."""
    library = """
    #define _GNU_SOURCE
    #include <signal.h>
    #include <string.h>
    static struct { char below[4096], stack[2048]; } memory;
    __attribute__((constructor)) static void set(void)
    {
        memset(&memory, 0x5a, sizeof memory);
        sigaltstack(&(stack_t){.ss_sp = memory.stack, .ss_size = sizeof memory.stack}, NULL);
    }
    int untouched(void)
    {
        for (unsigned long i = 0; i < sizeof memory; i++)
            if (((char *)&memory)[i] != 0x5a)
                return 0;
        return 1;
    }"""
    program = """
    #include <pthread.h>
    #include <time.h>
    int untouched(void);
    static void *nothing(void *arg) { return arg; }
    int main(void)
    {
        pthread_t thread;
        pthread_create(&thread, NULL, nothing, NULL);
        while (clock() < CLOCKS_PER_SEC / 2)
            ;
        return !untouched();
    }"""
    proc.compile(library, tmp_path / "libstack.so", "-shared", "-fPIC")
    proc.compile(program, tmp_path / "p", tmp_path / "libstack.so", "-Wl,--no-as-needed")
    traced([tmp_path / "p"], env={"GOTRACE_CPU_HZ": "1000"}).ok()


@pytest.mark.measured
def test_signal_stacks_set_often(traced, tmp_path):
    """Neither a stack that is large enough, set more often than samples are due, nor one that is refused ends them."""
    text = """
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static char room[65536];
static volatile long sink;
int main(int argc, char **argv) {
    stack_t stack = {.ss_sp = room, .ss_size = atoi(argv[1])};
    int refused = 0, left = atoi(argv[2]);
    while (clock() < CLOCKS_PER_SEC / 2) {
        if (left-- > 0)
            refused = sigaltstack(&stack, NULL) != 0;
        for (int i = 0; i < 10000; i++) sink += i;
    }
    printf("%d %ld\\n", refused, clock());
    return argc - 3;
}
"""
    program = proc.compile(text, tmp_path / "often")
    for size, times, refusal in (65536, 1 << 30, 0), (16, 1, 1):
        result = traced([program, size, times], env={"GOTRACE_CPU_HZ": 100}, **LONG).ok()
        refused, microseconds = map(int, result.stdout.split())
        assert refused == refusal
        assert len(samples(result.trace)) >= 0.8 * microseconds / 10000


def test_signal_stacks_that_cannot_be_read(traced, tmp_path):
    """They are the kernel's to refuse, and errno is otherwise left alone."""
    text = """
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
static char room[65536];
int main(void) {
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t good = {.ss_sp = room, .ss_size = sizeof room};
    char *end = pages + 4096;
    const void *stacks[] = {(void *)8, end, end - sizeof good + 8, end - 8, (void *)-8, &good};
    munmap(end, 4096);
    for (unsigned i = 0; i < sizeof stacks / sizeof *stacks; i++) {
        errno = 0;
        int r = sigaltstack(stacks[i], NULL);
        printf("%d %d\\n", r, errno);
    }
    while (clock() < CLOCKS_PER_SEC / 2)
        ;
    return 0;
}
"""
    program = proc.compile(text, tmp_path / "unreadable")
    bare = proc.run([program]).ok().stdout
    assert bare == 5 * f"-1 {errno.EFAULT}\n" + "0 0\n"
    result = traced([program], env={"GOTRACE_CPU_HZ": 100}).ok()
    assert result.stdout == bare
    assert len(samples(result.trace)) > 30


def test_timers_end_with_threads(traced, tmp_path):
    """A process has one timer a thread, at any time."""
    text = """
#include <pthread.h>
#include <stdio.h>
#include <string.h>
static void *nothing(void *p) { return p; }
static int timers(void) {
    char line[256]; int n = 0;
    FILE *f = fopen("/proc/self/timers", "r");
    while (fgets(line, sizeof line, f)) n += strncmp(line, "ID:", 3) == 0;
    fclose(f);
    return n;
}
int main(void) {
    pthread_t t;
    for (int i = 0; i < 500; i++) { pthread_create(&t, NULL, nothing, NULL); pthread_join(t, NULL); }
    printf("%d\\n", timers());
    return 0;
}
"""
    program = proc.compile(text, tmp_path / "timers")
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


BURNERS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static double cpu(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
static void spin(double seconds) {
    for (double end = cpu() + seconds; cpu() < end;)
        for (volatile int i = 0; i < 10000; i++)
            ;
}
static void *sum(double seconds) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static double all;
    pthread_mutex_lock(&mutex);
    all += cpu() - seconds;
    pthread_mutex_unlock(&mutex);
    return &all;
}
static void *burn(void *seconds) { double before = cpu(); spin(*(double *)seconds); return sum(before); }
static double threads(int n, void *(*what)(void *), double seconds) {
    pthread_t t[n];
    void *all = NULL;
    for (int i = 0; i < n; i++) pthread_create(&t[i], NULL, what, &seconds);
    for (int i = 0; i < n; i++) pthread_join(t[i], &all);
    return *(double *)all;
}
"""


def burners(tmp_path, main, *flags):
    return proc.compile(BURNERS + main, tmp_path / "burners", *flags)


@pytest.mark.measured
def test_time_in_the_kernel(sampled, tmp_path):
    """A thread that spends its time in a system call is seen in that."""
    program = burners(tmp_path, r"""
    static void *reads(void *seconds) {
        static char room[1 << 20];
        int fd = open("/dev/zero", O_RDONLY);
        double before = cpu();
        while (cpu() - before < *(double *)seconds)
            if (read(fd, room, sizeof room) != sizeof room) abort();
        return sum(before);
    }
    int main(void) { printf("%f\n", threads(2, reads, 0.5)); return 0; }""")
    result = sampled([program], env={"GOTRACE_CPU_HZ": "250"}, **LONG).ok()
    expected = float(result.stdout) * 250
    found = [without_cancellation(f.func for f in e.stack) for e in samples(result.trace)]
    reads = [names for names in found if "read" in names[0] and "reads" in names[1:]]
    assert 0.9 * expected - 3 < len(reads) < 1.1 * expected + 3, (len(reads), expected, collections.Counter(map(str, found)))


@pytest.mark.measured
def test_deep_stacks(sampled, tmp_path):
    """Deeper than what the kernel copies: those that our thread finds cut when it first looks are the last."""
    program = burners(tmp_path, r"""
    static void *deep(void *seconds) {
        volatile char room[2048];
        static __thread int depth;
        void *all;
        memset((char *)room, depth, sizeof room);
        all = ++depth < 100 ? deep(seconds) : burn(seconds);
        return room[1] ? all : all;
    }
    int main(void) { printf("%f\n", threads(3, deep, 0.3)); return 0; }""", "-O0")
    result = sampled([program], env={"GOTRACE_CPU_HZ": "250"}, **LONG).ok()
    expected = float(result.stdout) * 250
    stacks = [e.stack for e in samples(result.trace) if any(f.func == "burn" for f in e.stack)]
    assert 0.9 * expected - 6 < len(stacks) < 1.1 * expected + 6
    assert sum(not whole(s) for s in stacks) <= 3 * 8


@pytest.mark.measured
def test_more_threads_than_rings(sampled, tmp_path):
    """Memory for copies of stacks is bounded: the others' are by signals."""
    program = burners(tmp_path, 'int main(void) { printf("%f\\n", threads(70, burn, 0.08)); return 0; }')
    result = sampled([program], env={"GOTRACE_CPU_HZ": "1000"}, **LONG).ok()
    expected = float(result.stdout) * 1000
    found = [e for e in samples(result.trace) if any(f.func == "burn" for f in e.stack)]
    assert "nothing lost" in result.stderr
    assert 0.9 * expected < len(found) < 1.1 * expected, (len(found), expected)


@pytest.mark.measured
def test_code_that_comes_and_goes(sampled, tmp_path):
    """Stacks are walked while libraries are unloaded, and those of their code before that."""
    work = "static void spin(double);\nvoid work(void) { spin(0.004); }\n"
    proc.compile(BURNERS + work, tmp_path / "libwork.so", "-shared", "-fPIC", "-w")
    program = burners(tmp_path, r"""
    static void *loads(void *name) {
        double before = cpu();
        for (int i = 0; i < 200; i++) {
            void *library = dlopen(LIBRARY, RTLD_NOW);
            ((void (*)(void))dlsym(library, "work"))();
            if (dlclose(library)) abort();
        }
        return sum(before);
    }
    int main(void) { printf("%f\n", threads(1, loads, 0)); return 0; }""", f'-DLIBRARY="{tmp_path}/libwork.so"')
    result = sampled([program], env={"GOTRACE_CPU_HZ": "1000"}, **LONG).ok()
    found = [e.stack for e in samples(result.trace)]
    work = [s for s in found if any(f.func == "work" for f in s)]
    assert 0.9 * 800 - 10 < len(work) < 1.1 * 800 + 10
    assert sum(not whole(s) for s in found) < 0.01 * len(found) + 2


@pytest.mark.measured
def test_where_a_cpu_is_a_p(by_kernel, traced, tmp_path):
    """With GOTRACE_SCHED samples are on the CPU that the thread was on, whoever takes them."""
    program = burners(tmp_path, r"""
    static void *pinned(void *seconds) {
        static _Atomic int next;
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(next++ % 2, &set);
        if (sched_setaffinity(0, sizeof set, &set)) exit(77);
        return burn(seconds);
    }
    int main(void) { threads(2, pinned, 0.3); return 0; }""")
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
def test_recordings_and_children(sampled, tmp_path):
    """From one recording to the next, and in a child, threads go on being sampled."""
    program = burners(tmp_path, r"""
    static void *both(void *seconds) { burn(seconds); raise(SIGUSR2); return burn(seconds); }
    int main(void) {
        for (int i = 0; i < 3; i++) {
            double seconds = 0.2;
            pthread_t other;
            pthread_create(&other, NULL, burn, &seconds);
            both(&seconds);
            pthread_join(other, NULL);
        }
        if (fork() == 0) { threads(2, burn, 0.2); exit(0); }
        wait(NULL);
        return 0;
    }""")
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


def test_stack_of_a_signal(by_kernel, traced, tmp_path):
    """A handler on a stack of its own, above the thread's: what it interrupted is in no copy. (By signals it is that
    alone: none of ours is taken there.)"""
    program = burners(tmp_path, r"""
    #include <sys/mman.h>
    static void *above;
    static void handler(int number) { (void)number; spin(0.4); }
    static void *raises(void *seconds) {
        stack_t stack = {.ss_sp = above, .ss_size = 65536};
        double before = cpu();
        if (sigaltstack(&stack, NULL)) abort();
        spin(*(double *)seconds);
        raise(SIGUSR1);
        return sum(before);
    }
    int main(void) {
        above = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mmap(NULL, 256 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        sigaction(SIGUSR1, &(struct sigaction){.sa_handler = handler, .sa_flags = SA_ONSTACK}, NULL);
        printf("%f\n", threads(1, raises, 0.1));
        return 0;
    }""")
    result = traced([program], env={"GOTRACE_CPU_HZ": "250"}, **LONG).ok()
    found = [[f.func for f in e.stack] for e in samples(result.trace)]
    handler = [names for names in found if "handler" in names]
    assert 110 < len(found) < 140 and 90 < len(handler) < 110 and all(names.index("handler") <= 4 for names in handler)


@pytest.mark.measured
def test_thread_that_begins_in_a_handler(sampled, tmp_path):
    """It is another goroutine then, and sampled once."""
    program = burners(tmp_path, r"""
    static void handler(int number) { (void)number; usleep(1000); spin(0.1); usleep(1000); }
    int main(void) {
        sigset_t set;
        pthread_attr_t attr;
        pthread_t thread;
        double seconds = 0.6;
        void *all;
        sigaction(SIGUSR1, &(struct sigaction){.sa_handler = handler}, NULL);
        sigemptyset(&set);
        pthread_attr_init(&attr);
        pthread_attr_setsigmask_np(&attr, &set);
        sigaddset(&set, SIGUSR1);
        sigprocmask(SIG_BLOCK, &set, NULL);
        kill(getpid(), SIGUSR1);
        pthread_create(&thread, &attr, burn, &seconds);
        pthread_join(thread, &all);
        return 0;
    }""")
    result = sampled([program], env={"GOTRACE_CPU_HZ": "250"}, **LONG).ok()
    found = [e for e in samples(result.trace) if any(f.func == "spin" for f in e.stack)]
    assert 0.9 * 0.7 * 250 - 3 < len(found) < 1.1 * 0.7 * 250 + 3


@pytest.mark.measured
@pytest.mark.parametrize("sched", ["off", "on"])
def test_long_unloading(sampled, tmp_path, sched):
    """While a library's destructor takes its time samples have no callers, but none is missing."""
    nested = """
    #include <dlfcn.h>
    #include <unistd.h>
    __attribute__((destructor)) static void end(void) { dlclose(dlopen("libm.so.6", RTLD_NOW)); usleep(700000); }
    """
    proc.compile(nested, tmp_path / "libslow.so", "-shared", "-fPIC")
    program = burners(tmp_path, r"""
    #include HEADER
    int main(void) {
        pthread_t thread;
        double seconds = 1;
        pthread_create(&thread, NULL, burn, &seconds);
        gotrace_snapshot(NULL); /* what our thread has to load for names waits for the loader, as anybody */
        dlclose(dlopen(LIBRARY, RTLD_NOW));
        pthread_join(thread, NULL);
        return 0;
    }""", f'-DLIBRARY="{tmp_path}/libslow.so"', f'-DHEADER="{ROOT}/preload/gotrace.h"')
    result = sampled([program], env={"GOTRACE_CPU_HZ": "250", "GOTRACE_SCHED": sched}, **LONG).ok()
    assert "nothing lost" in result.stderr
    seen = collections.Counter(e.stack[0].func for e in samples(result.trace))
    assert 225 < seen.total() < 280 and seen["spin"] > 0.8 * seen.total(), seen


@pytest.mark.measured
def test_memory_of_rings(by_kernel, traced, tmp_path):
    """Threads whose stacks are deeper than what is copied give theirs back."""
    program = burners(tmp_path, r"""
    static pthread_barrier_t done, end;
    static void *deep(void *depth) {
        volatile char room[2048];
        memset((char *)room, 1, sizeof room);
        if ((long)depth < 40) { deep((void *)((long)depth + 1)); return room[1] ? depth : NULL; }
        spin(0.06);
        pthread_barrier_wait(&done);
        pthread_barrier_wait(&end);
        return depth;
    }
    int main(void) {
        long total = 0, kb;
        char line[512];
        pthread_barrier_init(&done, NULL, 2);
        pthread_barrier_init(&end, NULL, 41);
        for (int i = 0; i < 40; i++) {
            pthread_t thread;
            pthread_create(&thread, NULL, deep, NULL);
            pthread_barrier_wait(&done);
        }
        usleep(100000);
        FILE *maps = fopen("/proc/self/smaps", "r");
        for (int ring = 0; fgets(line, sizeof line, maps);) {
            ring |= strstr(line, "perf_event") != NULL;
            if (ring && sscanf(line, "Size: %ld", &kb) == 1) { total += kb; ring = 0; }
        }
        printf("%ld\n", total);
        pthread_barrier_wait(&end);
        return 0;
    }""", "-O0")
    result = traced([program], env={"GOTRACE_CPU_HZ": "250"}, **LONG).ok()
    assert 0 < int(result.stdout) < 4096


SPINS = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; exit 5"
STARTS = {
    "system": f"import os; print(os.WEXITSTATUS(os.system({SPINS!r})))",
    "popen": f"import ctypes; libc = ctypes.CDLL(None); libc.popen.restype = ctypes.c_void_p; "
    f"print(libc.pclose(ctypes.c_void_p(libc.popen({SPINS.encode()!r}, b'r'))) >> 8)",
    "posix_spawn": f"import os; print(os.waitpid(os.posix_spawnp('sh', ['sh', '-c', {SPINS!r}], os.environ), 0)[1] >> 8)",
}


@pytest.mark.parametrize("how", STARTS)
def test_what_is_started_by_posix_spawn_is_sampled(tmp_path, how):
    """It finds libc's signal ignored, which is no handler with a way back."""
    env = {"GOTRACE_CPU_HZ": "1000", "GOTRACE_CHILDREN": "all"}
    result = proc.traced(["/usr/bin/python3", "-c", STARTS[how]], tmp_path / "t.out", env=env, **LONG).ok()
    assert result.stdout == "5\n"
    assert any(samples(trace) for trace in tmp_path.glob("t.out.*"))
