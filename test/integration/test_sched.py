"""GOTRACE_SCHED=on (encoder/sched.h): when threads have a CPU, against what the kernel counts (test/prog/account.c)."""

import collections
import os
import pathlib
import platform
import re
import shutil
import subprocess
import tempfile
import time

import pytest

from lib import LIBRARY, PROGRAMS, ROOT, gotools, proc
from lib.reports import waits

ACCOUNT = PROGRAMS / "account"
GOTRACE = ROOT / "build/gotrace"
ON = {"GOTRACE_SCHED": "on"}
REFUSED = "does not let this user watch threads"
formats = pytest.mark.parametrize("format", gotools.FORMATS)


@pytest.fixture(scope="module", autouse=True)
def allowed(tmp_path_factory):
    """Where the kernel refuses, which test_refused shows by a filter, there is nothing to see."""
    trace = tmp_path_factory.mktemp("allowed") / "t.out"
    if REFUSED in proc.traced([PROGRAMS / "threads", "2"], trace, env=ON).stderr:
        pytest.skip("perf_event_open(2) is not allowed here")


class Running:
    """The program, traced, until its standard input ends."""

    def __init__(self, kinds, trace, **env):
        pipe = subprocess.PIPE
        env = proc.traced_env(trace, ON | env)
        self.child = proc.spawn([ACCOUNT, *kinds], env=env, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=trace.parent)
        assert self.child.stdout.readline() == "ready\n", self.child.stderr.read()
        self.pid = self.child.pid

    def used(self):
        tasks = pathlib.Path(f"/proc/{self.pid}/task").iterdir()
        return {int(t.name): [int(n) for n in (t / "schedstat").read_text().split()[:2]] for t in tasks}

    def end(self):
        """thread → (kind, ns on CPUs, ns in run queues)"""
        out, err = self.child.communicate(timeout=30)
        assert self.child.returncode == 0, err
        proc.kill_group(self.child)
        self.stderr = err
        words = [line.split() for line in out.splitlines()]
        return {int(w[0]): (w[1], int(w[2]), int(w[3])) for w in words}


@pytest.mark.measured
@pytest.mark.parametrize("format", ["go1.23", "go1.26"])
def test_events_are_true(tmp_path, format):
    """A thread runs when it has a CPU: to 2 % of the time, of which its first 20 ms are not watched."""
    program = Running(["spin=3", "pinned=1", "sleep=1", "hidden=1"], tmp_path / "t.out", GOTRACE_FORMAT=format)
    time.sleep(2)
    used = program.end()
    seen = gotools.states(tmp_path / "t.out")
    for tid, (kind, cpu, queue) in used.items():
        times = seen[tid]
        whole = sum(times.values()) - times.get("NotExist", 0)
        runs, waits = times.get("Running", 0) / whole, times.get("Waiting", 0) / whole
        assert abs(runs - cpu / whole) < 0.025, (kind, times, cpu, queue)
        if kind in ("spin", "pinned"):
            assert waits < 0.02 and times["Runnable"] / whole > 1 - cpu / whole - 0.04, (kind, times, cpu, queue)
        if kind == "hidden":
            # The kernel does not say when it was woken: from there to its CPU it waits.
            assert times["Runnable"] <= queue + 0.03 * whole, (kind, times, cpu, queue)
            assert waits > 1 - (cpu + queue) / whole - 0.03, (kind, times, cpu, queue)


@pytest.mark.measured
@pytest.mark.skipif(os.cpu_count() < 2, reason="threads move from one CPU to another")
@pytest.mark.parametrize("format", ["go1.22", "go1.26"])
def test_procs_are_cpus(tmp_path, format):
    """A thread that goes to a CPU and says so is on the P of that number; asleep it has none."""
    source = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>
static void burn(long ns)
{
    struct timespec from, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((now.tv_sec - from.tv_sec) * 1000000000L + now.tv_nsec - from.tv_nsec < ns);
}
static void *move(void *arg)
{
    cpu_set_t all, one;
    int cpus[CPU_SETSIZE], n = 0;
    sched_getaffinity(0, sizeof all, &all);
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &all))
            cpus[n++] = i;
    burn(50000000);
    for (int i = 0; i < 60; i++) {
        char name[16];
        int cpu = cpus[(i + (arg != 0)) % n];
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        sched_setaffinity(0, sizeof one, &one);
        snprintf(name, sizeof name, "cpu %d", cpu);
        pthread_setname_np(pthread_self(), name);
        burn(5000000);
        if (i % 3 == 0)
            nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    return arg;
}
int main(void)
{
    pthread_t t[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&t[i], NULL, move, i % 2 ? t : NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    return 0;
}
"""
    program = proc.compile(source, tmp_path / "prog")
    result = proc.traced([program], tmp_path / "t.out", env=ON | {"GOTRACE_FORMAT": format}).ok()
    events = gotools.parse(result.trace)
    said = [(e.p, int(e.fields["Label"].split()[1])) for e in events if e.kind == "Label" and "cpu" in e.fields["Label"]]
    assert len(said) >= 180
    # But where a generation begins, which is not at one time for all threads.
    assert sum(p != cpu for p, cpu in said) <= 3, said
    sleeps, left, owner = [], {}, {e.goid: e.m for e in events if e.is_go("Runnable", "Running")}
    for e in events:
        if e.is_go("Running", "Waiting") and e.reason == "sleep":
            left[e.goid] = False
        if e.procid is not None and (e.old, e.new) == ("Running", "Idle"):
            left.update({g: True for g in left if owner.get(g) == e.m})
        if e.is_go("Waiting", "Runnable") and e.goid in left:
            sleeps.append(left.pop(e.goid))
    assert len(sleeps) == 60 and all(sleeps)  # asleep it has none


@pytest.mark.measured
@formats
def test_every_format(tmp_path, format):
    """All readers take it, and what is not seen by a hook is told."""
    program = Running(["spin=3", "sleep=1", "hidden=1", "fault=1", "brood=1"], tmp_path / "t.out", GOTRACE_FORMAT=format)
    time.sleep(1.2)
    used = program.end()
    for go in gotools.readers_of(format).values():
        gotools.check(tmp_path / "t.out", go=go)
    unseen = sum(ns for ns, _, _ in waits(tmp_path / "t.out", "unseen"))
    hidden = sum(1.2e9 - cpu - queue for kind, cpu, queue in used.values() if kind == "hidden")
    assert unseen > 0.8 * hidden
    assert sum(ns for ns, _, _ in waits(tmp_path / "t.out", "sched")) > 0.5e9
    if int(format[4:]) < 22:
        return  # where the ends of pages are events, too
    told = re.search(r"([\d]+) events in .*, nothing lost", program.stderr)[1]
    listed = re.search(r"events +(\d+),", proc.run([GOTRACE, "info", tmp_path / "t.out"]).ok().stdout)[1]
    assert abs(int(told) - int(listed)) <= 60, (told, listed)


@pytest.mark.measured
@pytest.mark.parametrize("format", ["go1.5", "go1.21", "go1.23", "go1.26"])
def test_flight_recorder(tmp_path, format):
    program = Running(["spin=3", "hidden=1", "brood=1"], tmp_path / "t.out", GOTRACE_RING="2s", GOTRACE_FORMAT=format)
    for n in range(3):
        time.sleep(1.1)
        proc.run([GOTRACE, "snapshot", program.pid, tmp_path / f"{n}.out"]).ok()
    program.end()
    for trace in [*(tmp_path / f"{n}.out" for n in range(3)), tmp_path / "t.out"]:
        for go in gotools.readers_of(format).values():
            gotools.check(trace, go=go)
        assert sum(ns for ns, _, _ in waits(trace, "unseen")) > 0.3e9, trace


@pytest.mark.measured
def test_recordings_in_a_running_program(tmp_path):
    program = Running(["spin=3", "hidden=1"], tmp_path / "%n.out", GOTRACE_START="manual")
    for n in 1, 2, 3:
        proc.run([GOTRACE, "start", program.pid]).ok()
        before = program.used()
        time.sleep(1)
        after = program.used()
        proc.run([GOTRACE, "stop", program.pid]).ok()
        gotools.check(tmp_path / f"{n}.out")
        for tid, times in gotools.states(tmp_path / f"{n}.out").items():
            used = after[tid][0] - before[tid][0]
            assert abs(times.get("Running", 0) - used) < 0.06e9, (tid, times, used)
    program.end()


@pytest.mark.measured
def test_threads_that_begin_and_end(tmp_path):
    """Storms of threads that nobody has time to watch, beside some that are, in a family of processes."""
    source = r"""
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>
static void *brief(void *arg) { return arg; }
static void *longer(void *arg) { for (int i = 0; i < 3000; i++) sched_yield(); usleep(40000); return arg; }
static void *storm(void *arg)
{
    for (int i = 0; i < 1500; i++) {
        pthread_t t;
        pthread_create(&t, 0, i % 50 ? brief : longer, 0);
        pthread_join(t, 0);
    }
    return arg;
}
int main(void)
{
    pid_t child = 0;
    for (int round = 0; round < 2; round++) {
        pthread_t t[4];
        for (int i = 0; i < 4; i++)
            pthread_create(&t[i], 0, storm, 0);
        for (int i = 0; i < 4; i++)
            pthread_join(t[i], 0);
        if (!round)
            child = fork();
    }
    return child ? waitpid(child, 0, 0) != child : 0;
}
"""
    program = proc.compile(source, tmp_path / "prog")
    for format in "go1.11", "go1.22", "go1.23":
        for old in tmp_path.glob("*.out"):
            old.unlink()
        result = proc.traced([program], tmp_path / "%p.out", env=ON | {"GOTRACE_FORMAT": format, "GOTRACE_QUIET": "0"}, timeout=60).ok()
        traces = list(tmp_path.glob("*.out"))
        # Where our thread gets no CPU for as long as a ring lasts, that is said; nothing else may be.
        said = [re.search(r"nothing lost|\d+ gaps in when threads had a CPU", line) for line in result.stderr.splitlines()]
        assert len(traces) == len(said) == 2 and all(said) and result.stderr.count(" lost") == result.stderr.count("nothing lost"), result
        for trace in traces:
            gotools.check(trace)


LATE = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>
enum { NS = 4000000, ROUNDS = 40 };
static volatile int over, word;
static sem_t sem;
static int epoll;
static long now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}
static struct timespec time_of(long ns)
{
    return (struct timespec){ns / 1000000000, ns % 1000000000};
}
static long preemptions(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nivcsw;
}
static void *burn(void *arg)
{
    while (!over)
        ;
    return arg;
}
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static void *hold(void *arg)
{
    pthread_mutex_lock(&mutex);
    pthread_rwlock_wrlock(&lock);
    return arg;
}
static void of_usleep(void) { usleep(NS / 1000); }
static void of_nanosleep(void) { struct timespec t = time_of(NS); nanosleep(&t, NULL); }
static void of_clock_nanosleep(void)
{
    struct timespec t = time_of(now(CLOCK_MONOTONIC) + NS);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}
static void of_poll(void) { poll(NULL, 0, NS / 1000000); }
static void of_epoll_wait(void) { struct epoll_event e; epoll_wait(epoll, &e, 1, NS / 1000000); }
static void of_sem_timedwait(void)
{
    struct timespec t = time_of(now(CLOCK_REALTIME) + NS);
    sem_timedwait(&sem, &t);
}
static void of_pthread_mutex_clocklock(void)
{
    struct timespec t = time_of(now(CLOCK_MONOTONIC) + NS);
    pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &t);
}
static void of_mtx_timedlock(void)
{
    struct timespec t = time_of(now(CLOCK_REALTIME) + NS);
    mtx_timedlock((mtx_t *)&mutex, &t);
}
static void of_pthread_rwlock_timedrdlock(void)
{
    struct timespec t = time_of(now(CLOCK_REALTIME) + NS);
    pthread_rwlock_timedrdlock(&lock, &t);
}
static void of_select(void) { select(0, NULL, NULL, NULL, &(struct timeval){.tv_usec = NS / 1000}); }
static void of_futex(void)
{
    struct timespec t = time_of(NS);
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &t, NULL, 0);
}
int main(void)
{
    static const struct { const char *name; void (*wait)(void); } waits[] = {
        {"usleep", of_usleep}, {"nanosleep", of_nanosleep}, {"clock_nanosleep", of_clock_nanosleep},
        {"poll", of_poll}, {"epoll_wait", of_epoll_wait}, {"select", of_select},
        {"sem_timedwait", of_sem_timedwait}, {"pthread_mutex_clocklock", of_pthread_mutex_clocklock},
        {"mtx_timedlock", of_mtx_timedlock}, {"pthread_rwlock_timedrdlock", of_pthread_rwlock_timedrdlock},
        {"futex", of_futex}};
    enum { N = sizeof waits / sizeof *waits };
    pthread_t t[3], holder;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    sem_init(&sem, 0, 0);
    epoll = epoll_create1(0);
    pthread_create(&holder, NULL, hold, NULL);
    pthread_join(holder, NULL); /* which then hold for ever */
    for (int i = 0; i < 3; i++)
        pthread_create(&t[i], NULL, burn, NULL);
    /*
     * The kernel looks whose turn it is where it tells of CPU time. What that takes is the former
     * kind's: of that is the last stack that is known.
     */
    long late[N] = {0}, slept[N] = {0}, since[N + 1], used[N + 1], before = preemptions();
    for (unsigned w = 0; w < N; w++) {
        used[w] = now(CLOCK_THREAD_CPUTIME_ID);
        since[w] = now(CLOCK_MONOTONIC);
        for (int i = 0; i < ROUNDS; i++) {
            long from = now(CLOCK_MONOTONIC);
            waits[w].wait();
            long took = now(CLOCK_MONOTONIC) - from - NS;
            late[w] += took > 0 ? took : 0;
            /* Else it may have waited for a CPU while its time went by already. */
            slept[w] += before == preemptions() ? NS : 0;
            volatile long spent = 0;
            while (spent++ < 3000000) /* so that its next turn is not at once */
                ;
            before = preemptions();
        }
    }
    used[N] = now(CLOCK_THREAD_CPUTIME_ID);
    since[N] = now(CLOCK_MONOTONIC);
    for (unsigned w = 0; w < N; w++)
        printf("%s %ld %ld\n", waits[w].name, late[w], since[w + 1] - since[w] - (used[w + 1] - used[w]) - slept[w]);
    over = 1;
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    return 0;
}
"""


@pytest.mark.measured
@pytest.mark.parametrize("sched", ["off", "on"])
@pytest.mark.parametrize("format", ["go1.11", "go1.23", "go1.26"])
def test_late_wakeups(tmp_path, format, sched):
    """A sleep or timeout ends when its time is over; from there its thread stands in a run queue."""
    program = proc.compile(LATE, tmp_path / "prog")
    env = {"GOTRACE_SCHED": sched, "GOTRACE_FORMAT": format}
    result = proc.traced([program], tmp_path / "t.out", env=env, timeout=60).ok()
    late = {line.split()[0]: int(line.split()[1]) for line in result.stdout.splitlines()}
    queue = {line.split()[0]: int(line.split()[2]) for line in result.stdout.splitlines()}
    assert sum(late.values()) > 0.1e9, late  # else there is nothing to see
    for kind in "sleep", "network", "sync":
        for ns, count, what in waits(tmp_path / "t.out", kind):
            name = what.split(" ")[0]
            if name in late:
                # A few lose the CPU before they sleep.
                assert count >= 40 and 40 * 4e6 * 0.95 < ns < 40 * 4e6 + late[name] * 0.15, (what, ns, count, late[name], sched)
    told = collections.Counter()
    for ns, _, what in waits(tmp_path / "t.out", "sched"):
        told[what.split(" ")[0]] += ns
    for name, ns in late.items():
        # The kernel may be late by 50 us of its own will, which are the sleep's.
        # With switches seen it also has lost the CPU between two sleeps: the last stack that is known is that.
        assert ns * 0.85 < told[name] < (ns if sched == "off" else queue[name]) * 1.02, (name, ns, queue[name], told[name], sched)


@pytest.mark.measured
def test_timeouts_that_tell_nothing(tmp_path):
    """Of a clock of CPU time; or in memory that is gone when the wait is over; or none at all."""
    source = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static struct timespec *gone;
static volatile int over;
static void *unmap(void *arg) { usleep(30000); munmap(gone, 4096); return arg; }
static void *spin(void *arg) { while (!over); return arg; } // the clock that is slept by goes on while somebody runs
static struct timespec *page(void)
{
    pthread_t t;
    gone = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *gone = (struct timespec){0, 60000000};
    pthread_create(&t, NULL, unmap, NULL);
    pthread_detach(t);
    return gone;
}
int main(void)
{
    static int word;
    pthread_t t;
    if (nanosleep(page(), NULL) || ppoll(NULL, 0, page(), NULL))
        return 1;
    if (syscall(SYS_futex, &word, FUTEX_WAIT, 0, page(), NULL, 0) != -1 || errno != ETIMEDOUT)
        return 2;
    if (nanosleep((void *)8, NULL) != -1 || errno != EFAULT || nanosleep(NULL, NULL) != -1 || errno != EFAULT)
        return 3;
    pthread_create(&t, NULL, spin, NULL);
    for (int i = 0; i < 5; i++)
        clock_nanosleep(CLOCK_PROCESS_CPUTIME_ID, 0, &(struct timespec){0, 300000}, NULL);
    over = 1;
    pthread_join(t, NULL);
    return 0;
}
"""
    program = proc.compile(source, tmp_path / "prog")
    proc.run([program]).ok()
    for env in {}, ON:
        trace = proc.traced([program], tmp_path / "t.out", env=env).ok().trace
        assert not [row for row in waits(trace, "sched") if "clock_nanosleep" in row[2] and row[0] > 2e6]


CONVOY = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile int over;
static void burn(long ns)
{
    struct timespec from, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((now.tv_sec - from.tv_sec) * 1000000000L + now.tv_nsec - from.tv_nsec < ns);
}
static void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
}
static long queued(void)
{
    char text[100] = "", path[64];
    snprintf(path, sizeof path, "/proc/self/task/%ld/schedstat", syscall(SYS_gettid));
    int fd = open(path, O_RDONLY);
    if (fd < 0 || read(fd, text, sizeof text - 1) < 0)
        exit(1);
    close(fd);
    long cpu, queue;
    sscanf(text, "%ld %ld", &cpu, &queue);
    return queue;
}
static void *hog(void *arg)
{
    pin(0);
    pthread_setname_np(pthread_self(), "hog");
    while (!over)
        ;
    return arg;
}
static void *holder(void *arg)
{
    long sum = 0;
    pin(0);
    pthread_setname_np(pthread_self(), "holder");
    usleep(50000);
    for (int i = 0; i < 30; i++) {
        pthread_mutex_lock(&mutex);
        long before = queued();
        burn(6000000);
        sum += queued() - before;
        pthread_mutex_unlock(&mutex);
        usleep(3000);
    }
    over = 1;
    printf("%ld\n", sum);
    return arg;
}
static void *waiter(void *arg)
{
    pin(1);
    pthread_setname_np(pthread_self(), "waiter");
    while (!over) {
        usleep(200);
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    return arg;
}
int main(void)
{
    pthread_t t[4];
    void *(*const run[])(void *) = {hog, hog, holder, waiter};
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, run[i], NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    return 0;
}
"""


@pytest.mark.measured
@pytest.mark.skipif(not {0, 1} <= os.sched_getaffinity(0), reason="threads are bound to CPUs 0 and 1")
@pytest.mark.parametrize("format", ["go1.5", "go1.21", "go1.23", "go1.26"])
def test_holder_without_a_cpu(tmp_path, format):
    """Who waits for a lock waits for the CPU that its holder lost to others; they are named."""
    program = proc.compile(CONVOY, tmp_path / "prog")
    result = proc.traced([program], tmp_path / "t.out", env=ON | {"GOTRACE_FORMAT": format}).ok()
    queued = int(result.stdout)
    text = proc.run([GOTRACE, "top", "--preempted", tmp_path / "t.out"]).ok().stdout
    ((lost, unit),) = re.findall(r"^ *([\d.]+)(m?s) .* sync +pthread_mutex_lock <- waiter.* ended by pthread_mutex_unlock <- holder", text, re.M)
    assert abs(float(lost) * {"s": 1e9, "ms": 1e6}[unit] - queued) < 0.1 * queued + 5e6, (queued, text)
    text = proc.run([GOTRACE, "top", "--kind=sched", tmp_path / "t.out"]).ok().stdout
    rows = re.findall(r"^ *[\d.]+m?s +([\d.]+)% +(\d+)  (.*)$", text.split("Meanwhile")[1], re.M)
    share = collections.Counter()
    for percent, cpu, who in rows:
        share[cpu, re.search(r"hog|holder|waiter|others|main", who)[0]] += float(percent)
    assert share["0", "hog"] > 55 and share["0", "holder"] > 20, text
    refused = proc.run([GOTRACE, "top", "--preempted", proc.traced([program], tmp_path / "no.out").ok().trace])
    assert refused.returncode == 1 and "GOTRACE_SCHED=on" in refused.stderr


@pytest.mark.measured
def test_end_in_a_storm(tmp_path):
    """Recording ends while threads end: they have no CPU then, or are not there."""
    source = r"""
#include <pthread.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile int over;
static void *brief(void *arg)
{
    usleep(300);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    return arg;
}
static void *create(void *arg)
{
    while (!over) {
        pthread_t t;
        if (pthread_create(&t, NULL, brief, NULL) == 0)
            pthread_detach(t);
        usleep(50);
    }
    return arg;
}
static void *work(void *arg)
{
    while (!over) {
        pthread_mutex_lock(&mutex);
        for (volatile int i = 0; i < 20000; i++)
            ;
        pthread_mutex_unlock(&mutex);
        usleep(100);
    }
    return arg;
}
int main(void)
{
    pthread_t t[8];
    for (int i = 0; i < 8; i++)
        pthread_create(&t[i], NULL, i < 2 ? create : work, NULL);
    usleep(500000);
    over = 1;
    for (int i = 0; i < 8; i++)
        pthread_join(t[i], NULL);
    usleep(20000);
    return 0;
}
"""
    program = proc.compile(source, tmp_path / "prog")
    for n, format in enumerate(["go1.23", "go1.26", "go1.11"] * 3):
        env = ON | {"GOTRACE_FORMAT": format, "GOTRACE_DURATION": "300ms"}
        gotools.check(proc.traced([program], tmp_path / f"{n}.out", env=env).ok().trace)


@pytest.mark.measured
@pytest.mark.parametrize("pairs, format", [(1, "go1.23"), (3, "go1.23"), (3, "go1.11")])
def test_many_switches(tmp_path, pairs, format):
    """Threads that wake each other as fast as they can: no record is missing, also while a generation is written."""
    source = r"""
#include <stdio.h>
#include <sys/resource.h>
#include <pthread.h>
#include <unistd.h>
#include <stdlib.h>
#define PAIRS 3
static struct pair { int there[2], back[2]; } pair[PAIRS];
static void *answer(void *arg)
{
    struct pair *p = arg;
    char c;
    while (read(p->there[0], &c, 1) == 1 && write(p->back[1], &c, 1) == 1)
        ;
    return arg;
}
static void *ask(void *arg)
{
    struct pair *p = arg;
    char c = 0;
    usleep(50000);
    for (int i = 0; i < 100000; i++)
        if (write(p->there[1], &c, 1) != 1 || read(p->back[0], &c, 1) != 1)
            abort();
    close(p->there[1]);
    return arg;
}
int main(int argc, char **argv)
{
    pthread_t t[2 * PAIRS];
    struct rusage used;
    int n = atoi(argv[1]);
    for (int i = 0; i < n; i++) {
        if (pipe(pair[i].there) != 0 || pipe(pair[i].back) != 0)
            return 1;
        pthread_create(&t[2 * i], 0, ask, &pair[i]);
        pthread_create(&t[2 * i + 1], 0, answer, &pair[i]);
    }
    for (int i = 0; i < 2 * n; i++)
        pthread_join(t[i], 0);
    getrusage(RUSAGE_SELF, &used);
    printf("%ld\n", used.ru_nvcsw);
    return 0;
}
"""
    program = proc.compile(source, tmp_path / "prog")
    env = ON | {"GOTRACE_SYSCALLS": "none", "GOTRACE_FORMAT": format}  # so that all of it is unseen
    result = proc.traced([program, str(pairs)], tmp_path / "t.out", env=env, timeout=60).ok()
    assert "nothing lost" in result.stderr
    count = sum(count for _, count, _ in waits(result.trace, "unseen"))
    assert count > 0.97 * int(result.stdout) - 1000, (count, result.stdout)


UNSEEN = r"""
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
static long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000 + t.tv_nsec;
}
/* Without libc, so that no hook sees it. */
static void nap(long ns)
{
    struct timespec t = {0, ns};
    long r;
    __asm__ volatile("syscall" : "=a"(r) : "0"((long)SYS_nanosleep), "D"(&t), "S"(0L) : "rcx", "r11", "memory");
}
#define PLACE(name)                                                       \
    __attribute__((noinline)) static long name(long ns)                   \
    {                                                                     \
        long begin = now();                                               \
        nap(ns);                                                          \
        return now() - begin;                                             \
    }
PLACE(before)
PLACE(long_one)
PLACE(short_one)
static void *work(void *arg)
{
    long all[2] = {0}, end = now() + 1000000000;
    while (now() < end)
        before(5000000);
    for (int i = 0; i < 300; i++) {
        all[0] += long_one(3000000);
        all[1] += short_one(1000000);
    }
    printf("%ld %ld\n", all[0], all[1]);
    return arg;
}
int main(void)
{
    pthread_t t;
    pthread_create(&t, 0, work, 0);
    pthread_join(t, 0);
    return 0;
}
"""


@pytest.mark.measured
@pytest.mark.skipif(platform.machine() != "x86_64", reason="a system call in its assembly")
@pytest.mark.parametrize("format", ["go1.11", "go1.22", "go1.26"])
def test_where_nobody_saw_it_wait(tmp_path, format):
    """The kernel copies its stack, once it is known to do so."""
    if not proc.may_sample_kernel():
        pytest.skip("the kernel does not let this user sample")
    program = proc.compile(UNSEEN, tmp_path / "prog", "-g")
    env = ON | {"GOTRACE_FORMAT": format}
    result = proc.traced([program], tmp_path / "t.out", env=env).ok()
    gotools.check(result.trace)
    rows = waits(result.trace, "unseen")
    for name, ns in zip(["long_one", "short_one"], map(int, result.stdout.split())):
        (found,) = [(ns, count) for ns, count, what in rows if name in what]
        assert found[1] == pytest.approx(300, abs=3) and 0.95 * ns < found[0] <= 1.01 * ns, (name, ns, rows)


@pytest.mark.measured
@pytest.mark.skipif(platform.machine() != "x86_64", reason="a system call in its assembly")
@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
@pytest.mark.needs("setpriv")
def test_where_that_is_not_told(tmp_path):
    """To a user who may not sample the kernel: the waits are there, at the place that was known before."""
    if pathlib.Path("/proc/sys/kernel/perf_event_paranoid").read_text() != "2\n":
        pytest.skip("another user may do more, or nothing")
    program = proc.compile(UNSEEN, tmp_path / "prog", "-g")
    directory = pathlib.Path(tempfile.mkdtemp())
    try:
        shutil.copy(program, directory), shutil.copy(LIBRARY, directory)
        shutil.chown(directory, 65534, 65534), directory.chmod(0o755)
        argv = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", f"LD_PRELOAD={directory / LIBRARY.name}"]
        env = {name: value for name, value in proc.traced_env(directory / "t.out", ON).items() if name != "LD_PRELOAD"}
        result = proc.run([*argv, directory / program.name], env=env).ok()
        assert "nothing lost" in result.stderr and REFUSED not in result.stderr, result.stderr
        ((ns, count, what),) = [row for row in waits(directory / "t.out", "unseen") if row[1] > 100]
        assert "work" in what and 0.9 * 600 < count and 0.8 * sum(map(int, result.stdout.split())) < ns
    finally:
        shutil.rmtree(directory)


@pytest.mark.measured
def test_two_thousand_threads(tmp_path):
    """Their rings are of a page each; all are watched, and nothing is missing: where so many files may be open."""
    source = r"""
    #include <pthread.h>
    #include <stdlib.h>
    #include <unistd.h>
    static void *nap(void *arg)
    {
        for (int i = 0; i < 20; i++)
            usleep(100000);
        return arg;
    }
    int main(void)
    {
        static pthread_t t[2000];
        pthread_attr_t attr;
        pthread_attr_init(&attr);
        pthread_attr_setstacksize(&attr, 65536);
        for (int i = 0; i < 2000; i++)
            if (pthread_create(&t[i], &attr, nap, NULL))
                abort();
        for (int i = 0; i < 2000; i++)
            pthread_join(t[i], NULL);
        return 0;
    }
    """
    program = proc.compile(source, tmp_path / "prog")
    result = proc.traced(["prlimit", "--nofile=4096:", program], tmp_path / "t.out", env=ON, timeout=60).ok()
    assert "nothing lost" in result.stderr
    gotools.check(result.trace)
    sleeps = [t["Waiting"] for t in gotools.states(result.trace).values() if "Waiting" in t]
    assert len(sleeps) >= 2000 and sorted(sleeps)[100] > 0.9 * 2e9


def has(header):
    return proc.run(["gcc", "-fsyntax-only", "-include", header, "-x", "c", "/dev/null"]).returncode == 0


@pytest.mark.measured
@pytest.mark.parametrize("format", ["go1.11", "go1.23"])
@pytest.mark.skipif(not has("liburing.h"), reason="liburing is not here; ./scripts/deps all installs it")
def test_io_uring(tmp_path, format):
    """Waits of which liburing's calls tell, and work that the kernel does in threads of its own."""
    source = r"""
    #include <liburing.h>
    #include <pthread.h>
    #include <unistd.h>
    static int ends[2];
    static void *writer(void *arg)
    {
        for (int i = 0; i < 20; i++) {
            usleep(50000);
            if (write(ends[1], "x", 1) != 1)
                _exit(9);
        }
        return arg;
    }
    static void *waiter(void *arg)
    {
        struct io_uring ring;
        struct io_uring_cqe *done;
        char byte;
        if (io_uring_queue_init(8, &ring, 0))
            _exit(77);
        for (int i = 0; i < 20; i++) {
            io_uring_prep_read(io_uring_get_sqe(&ring), ends[0], &byte, 1, 0);
            io_uring_submit(&ring);
            if (io_uring_wait_cqe(&ring, &done) || done->res != 1)
                _exit(9);
            io_uring_cqe_seen(&ring, done);
        }
        return arg;
    }
    int main(void)
    {
        pthread_t t[2];
        if (pipe(ends))
            return 9;
        pthread_create(&t[0], NULL, waiter, NULL);
        pthread_create(&t[1], NULL, writer, NULL);
        pthread_join(t[0], NULL);
        pthread_join(t[1], NULL);
        return 0;
    }
    """
    program = proc.compile(source, tmp_path / "prog", "-luring")
    result = proc.traced([program], tmp_path / "t.out", env=ON | {"GOTRACE_FORMAT": format})
    if result.returncode == 77:
        pytest.skip("no io_uring here")
    ours = [wait for wait in waits(result.ok().trace, "network") if "_get_cqe" in wait[2] or "_wait_cqe" in wait[2]]
    ((ns, count, what),) = ours
    assert 0.9e9 < ns < 1.1e9 and 19 <= count <= 20 and "waiter" in what, ours


def test_refused(tmp_path):
    """One line says what is missing; the trace is as without."""
    env = proc.traced_env(tmp_path / "t.out", ON)
    result = proc.run([PROGRAMS / "without_perf", PROGRAMS / "threads", "4"], env=env)
    if result.returncode == 77:
        pytest.skip("no filters here")
    result.ok()
    assert result.stderr.count(REFUSED) == 1 and "perf_event_paranoid" in result.stderr
    gotools.check(tmp_path / "t.out")


@pytest.mark.needs("strace")
def test_off(tmp_path):
    """Nothing is watched that was not asked for."""
    result = proc.run(["strace", "-f", "-qq", "-e", "trace=perf_event_open", "-o", tmp_path / "log",
                       *[f"-E{n}={v}" for n, v in proc.traced_env(tmp_path / "t.out").items()], PROGRAMS / "threads", "4"])
    result.ok()
    assert not (tmp_path / "log").read_text()
