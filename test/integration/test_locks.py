"""Who holds a lock that others wait for: owners, hold times, signals in vain, deadlocks."""

import collections
import errno
import json
import re

import pytest

from lib import PROGRAMS, gotools, proc
from lib.reports import GOTRACE, ns_of
from lib.spans import check_readers

LOGS = [format for format in gotools.FORMATS if format not in ("go1.5", "go1.7", "go1.8", "go1.9", "go1.10")]


def logs(trace, *kinds):
    """(thread, kind, message) of the logs of these kinds, in their order."""
    return [
        (event.m, event.fields["Category"], event.fields["Message"])
        for event in gotools.parse(trace)
        if event.kind == "Log" and event.fields["Task"] == "0" and event.fields["Category"].startswith(kinds)
    ]


def check_holds(trace):
    """A lock has one holder at a time."""
    holds = collections.defaultdict(list)
    for event in gotools.parse(trace):
        if event.kind == "Log" and event.fields["Task"] == "0" and event.fields["Category"].startswith("held ") and event.fields["Category"] != "held by":
            lock = event.fields["Category"].removeprefix("held ").split(", taken in ")[0]
            ns = ns_of(re.match(r"[\d.]+\w+", event.fields["Message"].replace("µ", "u"))[0])
            holds[lock].append((event.time - ns, event.time))
    for lock, its in holds.items():
        its.sort()
        for (_, until), (since, _) in zip(its, its[1:]):
            assert since >= until - 50_000 - 0.02 * ns_of("20ms"), (lock, since, until)


def thread_of(trace):
    """Goroutine → thread."""
    return {event.g: event.m for event in gotools.parse(trace) if event.g and event.m}


@pytest.mark.measured
@pytest.mark.limit(180)
@pytest.mark.parametrize("sched", ["off", "on"])
@pytest.mark.parametrize("format", ["go1.11", "go1.23", "go1.26"])
def test_owners(tmp_path, format, sched):
    """Of each wait, on a machine that has no CPU to spare: who held that lock when it began."""
    rounds = 1000 if format == "go1.23" else 200
    env = {"GOTRACE_FORMAT": format, "GOTRACE_SCHED": sched, "GOTRACE_SYSCALLS": "none", "GOTRACE_HEAP": "off"}
    result = proc.traced([PROGRAMS / "locks", str(rounds)], tmp_path / "t.out", env=env, timeout=120).ok()
    assert "nothing lost" in result.stderr, result.stderr
    threads = thread_of(result.trace)
    told = collections.defaultdict(list)  # (waiter, lock) → who held it, each time
    for waiter, _, message in logs(result.trace, "held by"):
        g, name, lock = re.fullmatch(r"G(\d+) (\w+), (.+)", message).groups()
        assert name.startswith("player"), message
        told[waiter, lock].append(threads[int(g)])
    known = collections.defaultdict(list)
    for lock, holder, waiter, _ in map(str.split, result.stdout.splitlines()):
        known[int(waiter), lock].append(int(holder))
    assert sum(map(len, known.values())) == rounds
    # A waiter that had no CPU for as long as the lock was held has not waited.
    missed = 0
    for key, holders in known.items():
        rest = iter(holders)
        assert all(holder in rest for holder in told[key]), (key, holders, told[key])
        missed += len(holders) - len(told[key])
    assert missed < rounds / 10, missed


@pytest.mark.measured
@pytest.mark.parametrize("format", ["go1.11", "go1.23"])
def test_hold_times(tmp_path, format):
    """How long they were held: each within 5 %, from where, and in what."""
    env = {"GOTRACE_FORMAT": format, "GOTRACE_SYSCALLS": "none", "GOTRACE_HEAP": "off", "GOTRACE_HOLD_MIN": "100us"}
    result = proc.traced([PROGRAMS / "locks", "400"], tmp_path / "t.out", env=env, timeout=120).ok()
    told, known = collections.defaultdict(list), collections.defaultdict(list)
    for holder, kind, message in logs(result.trace, "held "):
        if held := re.fullmatch(r"held (.+), taken in (\w+)", kind):
            time, _, what = re.fullmatch(r"([\d.]+\w+)(, of it [\d.]+\w+ in (\w+))?", message.replace("µ", "u")).groups()
            assert held[2] in ("lock", "lock_twice", "try", "lock_timed", "lock_both", "wrlock", "rdlock", "lock_c11", "take_over", "try_write", "try_c11"), held
            if what:
                told[holder, held[1]].append(ns_of(time))
                assert what == "usleep", message
    for lock, holder, _, ns in map(str.split, result.stdout.splitlines()):
        known[int(holder), lock].append(int(ns))
    found = 0
    for key, times in known.items():
        rest = iter(times)  # the first of each was begun before anybody had waited
        for ns in told[key]:
            assert any(abs(truth - ns) < 0.05 * truth + 20_000 for truth in rest), (key, times, told[key])
            found += 1
    assert found > 200 and {"timed", "tried", "c11_tried"} <= {lock for _, lock in told}, (found, told)
    check_holds(result.trace)


@pytest.mark.measured
@pytest.mark.parametrize("format", ["go1.11", "go1.21", "go1.23", "go1.26"])
def test_holds_as_tasks(tmp_path, format):
    """What Go's viewers have spans and a histogram for: on the thread that had the lock, for as long as it had it."""
    env = {"GOTRACE_FORMAT": format, "GOTRACE_SYSCALLS": "none", "GOTRACE_HEAP": "off", "GOTRACE_HOLD_MIN": "100us"}
    result = proc.traced([PROGRAMS / "locks", "200"], tmp_path / "t.out", env=env, timeout=120).ok()
    spans = tmp_path / "spans.out"
    proc.run([GOTRACE, "convert", "--holds", result.trace, "-o", spans]).ok()
    check_readers(format, spans)
    told = [(holder, re.fullmatch("held (.+), taken in .*|held (.+)", kind), ns_of(message.replace("µ", "u").split(",")[0].split()[0]))
            for holder, kind, message in logs(result.trace, "held ") if kind != "held by"]  # fmt: skip
    query = "SELECT tid, tasks.name, tasks.ns FROM tasks JOIN threads ON threads.id = thread_id WHERE tasks.ended AND ender_id = thread_id"
    spans_of = collections.defaultdict(list)
    for tid, name, ns in (row.split(",") for row in proc.run([GOTRACE, "sql", "--csv", spans, query]).ok().stdout.splitlines()[1:]):
        spans_of[int(tid), name].append(int(ns))
    assert sum(map(len, spans_of.values())) == len(told) > 100
    wrong = [(tid, kind[1], ns) for tid, kind, ns in told  # kind[2]: it was held for that long or longer
             if kind[1] and not any(abs(span - ns) < 0.02 * ns + 6_000 for span in spans_of[tid, f"hold {kind[1]}"])]  # fmt: skip
    assert len(wrong) < len(told) / 20, wrong
    assert "hold plain" in gotools.pages(spans, go=max(gotools.readers_of(format).items())[1])["/usertasks"]


BRIEF = r"""
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t begun, ended;
static double asked;
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}
static void *waiter(void *arg)
{
    for (int i = 0; i < 20; i++) {
        pthread_barrier_wait(&begun);
        usleep(3000);
        asked = now();
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
        pthread_barrier_wait(&ended);
    }
    return arg;
}
int main(void)
{
    pthread_t t;
    pthread_barrier_init(&begun, NULL, 2);
    pthread_barrier_init(&ended, NULL, 2);
    pthread_create(&t, NULL, waiter, NULL);
    for (int i = 0; i < 20; i++) {
        for (int k = 0; k < 1003; k++) {
            pthread_mutex_lock(&lock);
            pthread_mutex_unlock(&lock);
        }
        pthread_mutex_lock(&lock);
        double since = now();
        pthread_barrier_wait(&begun);
        usleep(20000);
        double until = now();
        pthread_mutex_unlock(&lock);
        pthread_barrier_wait(&ended);
        printf("%.0f %.0f\n", until - since, until - asked);
    }
    pthread_join(t, NULL);
    return 0;
}
"""


@pytest.mark.measured
def test_long_holds_among_brief_ones(tmp_path):
    """Which are not looked at: it is known since when somebody waited, or a call lasted, and no longer."""
    program = proc.compile(BRIEF, tmp_path / "prog", "-O1")
    result = proc.traced([program], tmp_path / "t.out").ok()
    known = [tuple(map(int, line.split())) for line in result.stdout.splitlines()]
    pattern = r"([\d.]+\w+)( or longer)?(, of it .*)?"
    found = [(kind, re.fullmatch(pattern, message.replace("µ", "u"))) for _, kind, message in logs(result.trace, "held lock")]
    told = [hold for _, hold in found if ns_of(hold[1]) > 5e6]  # else a thread lost its CPU
    assert len(told) == len(known) == 20 and found[-1][0] == "held lock, taken in main", found
    assert any(hold[2] for hold in told), "each was looked at"
    for (truth, waited), hold in zip(known, told):
        ns = ns_of(hold[1])
        assert ns < 1.01 * truth + 20_000 and ns > 0.95 * (waited if hold[2] else truth) - 20_000, (truth, waited, hold)


LONG_WAIT = r"""
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t held;
__attribute__((noinline)) static void hold(void)
{
    pthread_mutex_lock(&lock);
    usleep(10000);
    pthread_mutex_unlock(&lock);
}
static void *waiter(void *arg)
{
    pthread_barrier_wait(&held);
    for (int i = 0; i < 6; i++)
        hold();
    return arg;
}
int main(void)
{
    pthread_t t;
    pthread_barrier_init(&held, NULL, 2);
    pthread_create(&t, NULL, waiter, NULL);
    pthread_mutex_lock(&lock);
    pthread_barrier_wait(&held);
    usleep(100000);
    pthread_mutex_unlock(&lock);
    return pthread_join(t, NULL);
}
"""


@pytest.mark.measured
def test_a_long_wait_keeps_a_lock_hot(tmp_path):
    """Holds of 10 ms by one who has waited for 100 ms are told, though nobody waits for them."""
    trace = proc.traced([proc.compile(LONG_WAIT, tmp_path / "prog")], tmp_path / "t.out").ok().trace
    told = [ns_of(message.split(",")[0]) for _, kind, message in logs(trace, "held lock, taken in hold")]
    assert len(told) == 6 and min(told) >= 9.9e6, told
    check_holds(trace)


NOT_RECOVERABLE = r"""
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static pthread_mutex_t m;
static void *leave(void *arg) { pthread_mutex_lock(&m); return arg; }
static void *again(void *arg) { printf("%d ", pthread_mutex_lock(&m)); return arg; }
int main(void)
{
    pthread_t t;
    pthread_mutexattr_t a;
    alarm(20);
    pthread_mutexattr_init(&a);
    pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&m, &a);
    pthread_create(&t, NULL, leave, NULL);
    pthread_join(t, NULL);
    printf("%d ", pthread_mutex_lock(&m));
    pthread_mutex_unlock(&m);
    for (int i = 0; i < 3; i++)
        printf("%d ", pthread_mutex_lock(&m));
    for (int i = 0; i < 3; i++) {
        pthread_create(&t, NULL, again, NULL);
        pthread_join(t, NULL);
    }
    puts("");
    return 0;
}
"""


def test_a_mutex_that_is_not_recoverable(tmp_path):
    """Whoever locks it is told so, each time; glibc's trylock, which comes first here, keeps it."""
    program = proc.compile(NOT_RECOVERABLE, tmp_path / "prog")
    bare = proc.run([program]).ok().stdout
    assert bare.split() == [str(errno.EOWNERDEAD)] + 6 * [str(errno.ENOTRECOVERABLE)]
    assert proc.traced([program], tmp_path / "t.out").ok().stdout == bare


SIGNALS = r"""
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER, never = PTHREAD_COND_INITIALIZER;
static int turns, timeouts, waiting;
static void *worker(void *arg)
{
    pthread_mutex_lock(&m);
    while (turns < 50) {
        waiting = 1;
        pthread_cond_wait(&news, &m);
    }
    for (int i = 0; i < 20; i++) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        t.tv_nsec += 1000000;
        t.tv_sec += t.tv_nsec / 1000000000;
        t.tv_nsec %= 1000000000;
        timeouts += pthread_cond_timedwait(&news, &m, &t) != 0;
    }
    pthread_mutex_unlock(&m);
    return arg;
}
__attribute__((noinline)) static void tell(void) { pthread_cond_signal(&news); }
int main(void)
{
    pthread_t t;
    struct timespec ms = {0, 3000000}, us = {0, 200000};
    for (int i = 0; i < 30; i++)
        pthread_cond_signal(&never); /* nobody will ever wait for that */
    pthread_create(&t, NULL, worker, NULL);
    for (int i = 0; i < 50; i++) {
        pthread_mutex_lock(&m);
        while (!waiting) {
            pthread_mutex_unlock(&m);
            nanosleep(&ms, NULL);
            pthread_mutex_lock(&m);
        }
        turns++;
        waiting = 0;
        tell();
        nanosleep(&us, NULL); /* who was told has to wait for the mutex now, and for nothing else */
        tell();
        pthread_mutex_unlock(&m);
    }
    pthread_join(t, NULL);
    for (int i = 0; i < 17; i++)
        tell();
    for (int i = 0; i < 5; i++)
        pthread_cond_broadcast(&news);
    printf("%d\n", timeouts);
    return 0;
}
"""


@pytest.mark.measured
@pytest.mark.parametrize("format", ["go1.11", "go1.23"])
def test_signals_in_vain(tmp_path, format):
    program = proc.compile(SIGNALS, tmp_path / "prog")
    result = proc.traced([program], tmp_path / "t.out", env={"GOTRACE_FORMAT": format}).ok()
    assert int(result.stdout) == 20, result
    text = proc.run([GOTRACE, "top", "--wakeups", result.trace]).ok().stdout
    rows = re.findall(r"^ *(\d+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+)  (\S+)$", text, re.M)
    assert [list(map(int, row[:-1])) + [row[-1]] for row in rows] == [[70, 50, 20, 0, 122, 72, "news"]], text
    assert re.search(r"^ +117 +67    pthread_cond_signal tell \(prog.c:\d+\)$", text, re.M), text
    assert re.search(r"^ +5 +5    pthread_cond_broadcast main \(prog.c:\d+\)$", text, re.M), text


FSYNC = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_mutex_t journal_lock = PTHREAD_MUTEX_INITIALIZER;
static int pipes[2];
/* A slow disk: it answers after 5 ms. */
static void *disk(void *arg) { for (int i = 0; i < 40; i++) { usleep(5000); if (write(pipes[1], "", 1) != 1) abort(); } return arg; }
__attribute__((noinline)) static void commit(void)
{
    char c;
    pthread_mutex_lock(&journal_lock);
    if (read(pipes[0], &c, 1) != 1)
        abort();
    pthread_mutex_unlock(&journal_lock);
    usleep(200);
}
__attribute__((noinline)) static void append(void)
{
    pthread_mutex_lock(&journal_lock);
    pthread_mutex_unlock(&journal_lock);
    usleep(200);
}
static void *committer(void *arg) { pthread_setname_np(pthread_self(), "committer"); for (int i = 0; i < 40; i++) commit(); return arg; }
static void *client(void *arg) { for (int i = 0; i < 300; i++) append(); return arg; }
int main(void)
{
    pthread_t t[5];
    if (pipe(pipes) != 0)
        abort();
    pthread_create(&t[0], NULL, disk, NULL);
    pthread_create(&t[1], NULL, committer, NULL);
    for (int i = 2; i < 5; i++)
        pthread_create(&t[i], NULL, client, NULL);
    for (int i = 0; i < 5; i++)
        pthread_join(t[i], NULL);
    return 0;
}
"""


@pytest.mark.measured
@pytest.mark.parametrize("format", ["go1.11", "go1.23"])
def test_held_across_a_slow_call(tmp_path, format):
    """One command names the cause: who held it, doing what."""
    program = proc.compile(FSYNC, tmp_path / "prog")
    trace = proc.traced([program], tmp_path / "t.out", env={"GOTRACE_FORMAT": format}).ok().trace
    for options, row in [
        (["--holders"], r"pthread_mutex_lock <- append \(prog.c:\d+\), journal_lock"),
        (["--by-lock"], r"[34] +\S+ +\S+  journal_lock"),
    ]:
        text = proc.run([GOTRACE, "top", *options, trace]).ok().stdout
        first = re.search(rf"^ *(\S+) +([\d.]+)% .*{row}\n +([\d.]+)%   \d+ committer \(committer\), by commit: read <- commit \(", text, re.M)
        assert first and float(first[2]) > 90 and float(first[3]) > 90, text


ENDLESS = ["mutex", "recursive", "adaptive", "inherit", "robust", "rwlock", "c11"]
DEADLOCKS = [("ring", kind, n) for kind, n in zip(ENDLESS * 2, [2, 3, 4, 5, 2, 3, 4, 5, 2, 2, 3, 2, 5, 4])]
DEADLOCKS += [("join", "mutex", 2), ("join", "rwlock", 2), ("readers", "rwlock", 2), ("readers", "rwlock", 5)]


@pytest.fixture(params=["trace", "recorder"])
def end(request):
    return request.param


@pytest.mark.parametrize("case", DEADLOCKS, ids=lambda case: "-".join(map(str, case)))
def test_deadlocks(tmp_path, case, end):
    """Told of on standard error, once, with stacks; and in what is recorded."""
    env = {"GOTRACE_HANG": "500ms"} | ({"GOTRACE_RING": "1M"} if end == "recorder" else {})
    trace, pipe = tmp_path / "t.out", proc.subprocess.PIPE
    argv = [PROGRAMS / "deadlocks", *map(str, case)]
    child = proc.spawn(argv, env=proc.traced_env(trace, env), stdout=pipe, stderr=pipe, text=True)
    lines = [child.stderr.readline()]
    assert lines == ["gotrace: DEADLOCK: for 500 ms threads have waited for each other:\n"]
    if end == "recorder":
        while "what led there" not in lines[-1]:
            lines.append(child.stderr.readline())
            assert lines[-1], lines
        assert sum("waits for" in line for line in lines) >= 2 and any("deadlocks.c:" in line for line in lines), lines
    else:
        proc.run([GOTRACE, "snapshot", child.pid]).ok()
    proc.stop(child)
    stuck = set(re.findall(r"^(\d+)$", child.stdout.read(), re.M))
    text = proc.run([GOTRACE, "top", trace]).ok().stdout
    block = re.search(r"^DEADLOCK: these threads wait for each other, .*:\n((?: .*\n)+)", text, re.M)[1]
    threads = set(re.findall(r"thread (\d+)", block))
    assert threads & stuck and (case[0] != "ring" or threads == stuck), (stuck, text)
    assert text.count("DEADLOCK") == 1 and "DEADLOCK" in proc.run([GOTRACE, "info", trace]).ok().stdout


@pytest.mark.parametrize("kind", ["mutex", "adaptive"])
def test_holder_that_has_ended(tmp_path, kind):
    trace = tmp_path / "t.out"
    child = proc.spawn([PROGRAMS / "deadlocks", "ended", kind], env=proc.traced_env(trace, {"GOTRACE_HANG": "500ms"}),
                       stderr=proc.subprocess.PIPE, text=True)  # fmt: skip
    assert child.stderr.readline() == "gotrace: DEADLOCK: for 500 ms a thread has waited for one that has ended:\n"
    proc.run([GOTRACE, "snapshot", child.pid]).ok()
    proc.stop(child)
    text = proc.run([GOTRACE, "top", trace]).ok().stdout
    assert re.search(r"DEADLOCK: a thread waits for a lock whose holder has ended:\n.* locks, held by thread \d+, which has ended\n", text), text


def test_holder_that_was_the_first_thread(tmp_path):
    """It stays as a zombie, and with it the program's descriptors are gone from where they are looked for."""
    source = """
        #include <pthread.h>
        #include <unistd.h>
        static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER;
        static void *heir(void *arg) { pthread_mutex_lock(&left); return arg; }
        int main(void)
        {
            pthread_t t;
            pthread_mutex_lock(&left);
            pthread_create(&t, NULL, heir, NULL);
            pthread_exit(NULL);
        }
    """
    program = proc.compile(source, tmp_path / "prog")
    child = proc.spawn([program], env=proc.traced_env(tmp_path / "t.out", {"GOTRACE_HANG": "500ms"}), stderr=proc.subprocess.PIPE, text=True)
    told = child.stderr.readline(), child.stderr.readline()
    proc.kill_group(child)
    assert "a thread has waited for one that has ended" in told[0], told
    assert f"left, which thread {child.pid} prog holds, and that has ended" in told[1], told


def test_holder_of_before_a_fork(tmp_path):
    """The mutex says the parent's number of the thread that has it in the child, too."""
    source = """
        #include <pthread.h>
        #include <stdio.h>
        #include <sys/wait.h>
        #include <unistd.h>
        static pthread_mutex_t kept = PTHREAD_MUTEX_INITIALIZER;
        static void *wait_for_it(void *arg)
        {
            pthread_mutex_lock(&kept);
            pthread_mutex_unlock(&kept);
            return arg;
        }
        int main(void)
        {
            pthread_t t;
            int status = 1;
            pthread_mutex_lock(&kept);
            pid_t pid = fork();
            if (pid) {
                waitpid(pid, &status, 0);
                printf("%d\\n", (int)pid);
                return status;
            }
            pthread_create(&t, NULL, wait_for_it, NULL);
            usleep(2500000); /* two looks */
            pthread_mutex_unlock(&kept);
            return pthread_join(t, NULL);
        }
    """
    program = proc.compile(source, tmp_path / "prog")
    result = proc.traced([program], tmp_path / "t.out", env={"GOTRACE_HANG": "1ms"}).ok()
    pid = int(result.stdout)
    assert "DEADLOCK" not in result.stderr, result
    text = proc.run([GOTRACE, "top", "--holders", f"{result.trace}.{pid}"]).ok().stdout
    assert re.search(rf"^ +(9[5-9]|100)\.\d%   {pid} .*usleep <- main", text, re.M), text


def test_who_had_it_before(tmp_path):
    """Who was woken, and found that another one had been faster, does not wait for who had the mutex then."""
    source = """
        #include <pthread.h>
        #include <unistd.h>
        static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
        static int rounds, free_now;
        static void *waiter(void *arg)
        {
            while (__atomic_load_n(&rounds, __ATOMIC_RELAXED) < 40) {
                pthread_mutex_lock(&cache_lock);
                pthread_mutex_unlock(&cache_lock);
                usleep(500);
            }
            return arg;
        }
        __attribute__((noinline)) static void guilty(void) { usleep(15000); }
        __attribute__((noinline)) static void innocent(void) { usleep(15000); }
        static void *barger(void *arg)
        {
            while (__atomic_load_n(&rounds, __ATOMIC_RELAXED) < 40) {
                if (!__atomic_exchange_n(&free_now, 0, __ATOMIC_ACQ_REL))
                    continue;
                while (pthread_mutex_trylock(&cache_lock) != 0)
                    ;
                guilty();
                pthread_mutex_unlock(&cache_lock);
            }
            return arg;
        }
        int main(void)
        {
            pthread_t t[2];
            pthread_create(&t[0], NULL, waiter, NULL);
            pthread_create(&t[1], NULL, barger, NULL);
            for (; rounds < 40; __atomic_fetch_add(&rounds, 1, __ATOMIC_RELAXED)) {
                pthread_mutex_lock(&cache_lock);
                usleep(3000);
                __atomic_store_n(&free_now, 1, __ATOMIC_RELEASE);
                pthread_mutex_unlock(&cache_lock);
                innocent();
            }
            return pthread_join(t[0], NULL) + pthread_join(t[1], NULL);
        }
    """
    program = proc.compile(source, tmp_path / "prog")
    trace = proc.traced([program], tmp_path / "t.out").ok().trace
    text = proc.run([GOTRACE, "top", "--holders", trace]).ok().stdout
    blamed = sum(float(share) for share in re.findall(r"^ +([\d.]+)%   .*<- innocent", text, re.M))
    assert blamed < 5 and "<- guilty" in text, text


@pytest.mark.limit(120)
def test_what_is_merely_slow(tmp_path):
    """No deadlock is claimed where there is none: locks held long, waits with a timeout, idle threads."""
    for case in ["slow", "mutex", "9"], ["ring", "timed", "3"], ["crowd", "mutex", "20"]:
        trace = tmp_path / f"{case[0]}.out"
        child = proc.spawn([PROGRAMS / "deadlocks", *case], env=proc.traced_env(trace, {"GOTRACE_HANG": "1ms"}),
                           stdout=proc.subprocess.PIPE, stderr=proc.subprocess.PIPE, text=True)  # fmt: skip
        assert child.stdout.readline() == "none\n"
        for _ in range(20):
            proc.run([GOTRACE, "snapshot", child.pid])
            if trace.exists():
                assert "DEADLOCK" not in proc.run([GOTRACE, "info", trace]).ok().stdout, case
        proc.time.sleep(1.5)  # two looks
        proc.stop(child)
        assert "DEADLOCK" not in child.stderr.read(), case


@pytest.mark.parametrize("format", LOGS)
def test_every_reader(tmp_path, format):
    """Takes what stands beside waits."""
    trace = proc.traced([PROGRAMS / "locks", "40"], tmp_path / "t.out", env={"GOTRACE_FORMAT": format}).ok().trace
    for go in gotools.readers_of(format).values():
        gotools.check(trace, go=go)
    assert len(logs(trace, "held by")) > 20 and len(logs(trace, "held ")) > 30


SHARED_NAME = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static void *hold(void *gate)
{
    pthread_setname_np(pthread_self(), WHO "-holder");
    for (int i = 0; i < 5; i++) {
        pthread_mutex_lock(&lock);
        pthread_barrier_wait(gate);
        usleep(20000);
        pthread_cond_signal(&news);
        pthread_mutex_unlock(&lock);
        pthread_barrier_wait(gate);
    }
    return NULL;
}
static void *want(void *gate)
{
    struct timespec now = {0};
    for (int i = 0; i < 5; i++) {
        pthread_barrier_wait(gate);
        pthread_mutex_lock(&lock);
        pthread_cond_timedwait(&news, &lock, &now);
        pthread_mutex_unlock(&lock);
        pthread_barrier_wait(gate);
    }
    return NULL;
}
static pthread_barrier_t gate;
static pthread_t t[2];
void BEGIN(void)
{
    pthread_barrier_init(&gate, NULL, 2);
    pthread_create(&t[0], NULL, hold, &gate);
    pthread_create(&t[1], NULL, want, &gate);
}
void END(void) { pthread_join(t[0], NULL), pthread_join(t[1], NULL); }
#ifdef MAIN
void b_begin(void);
void b_end(void);
int main(void) { BEGIN(), b_begin(), END(), b_end(); }
#endif
"""


@pytest.mark.parametrize(("other", "own", "its"), [("b.o", " (a.c)", " (b.c)"), ("libb.so", "", " (libb.so)")], ids=["file", "library"])
def test_locks_of_one_name(tmp_path, other, own, its):
    """Two static ones in two files are two, each with its own holder; so are two condition variables; and names later are the same."""
    (tmp_path / "b.c").write_text(SHARED_NAME)
    how = ["-shared", "-fPIC"] if own == "" else ["-c"]
    flags = [f"-D{name}={value}" for name, value in {"WHO": '"b"', "BEGIN": "b_begin", "END": "b_end"}.items()]
    proc.run(["gcc", "-g", "-pthread", *how, *flags, "-Wl,--build-id", tmp_path / "b.c", "-o", tmp_path / other]).ok()
    flags = [f"-D{name}={value}" for name, value in {"MAIN": "1", "WHO": '"a"', "BEGIN": "a_begin", "END": "a_end"}.items()]
    program = proc.compile(SHARED_NAME, tmp_path / "a", *flags, tmp_path / other, f"-Wl,-rpath,{tmp_path}", "-Wl,--build-id")
    for names in "now", "later":
        trace = proc.traced([program], tmp_path / f"{names}.out", env={"GOTRACE_NAMES": names}).ok().trace
        by_lock = json.loads(proc.run([GOTRACE, "top", "--by-lock", "--json", trace]).ok().stdout)["locks"]
        holders = {row["lock"]: {it["thread"]["name"] for it in row["holders"] if it["thread"]} for row in by_lock}
        assert holders.get(f"lock{own}") == {"a-holder"} and holders.get(f"lock{its}") == {"b-holder"}, by_lock
        variables = json.loads(proc.run([GOTRACE, "top", "--wakeups", "--json", trace]).ok().stdout)["variables"]
        assert {(row["variable"], row["waits"]) for row in variables} == {(f"news{own}", 5), (f"news{its}", 5)}, variables
        assert all(row["signals"] for row in variables), variables


@pytest.mark.measured
def test_a_lock_without_a_name(tmp_path):
    """Is told by where it was waited for first; and one of C++ by the name that people know."""
    trace = proc.traced([PROGRAMS / "locks", "200"], tmp_path / "t.out").ok().trace
    text = proc.run([GOTRACE, "top", "--by-lock", trace]).ok().stdout
    assert re.search(r"  0x[0-9a-f]+, first waited for by pthread_mutex_lock <- lock \(locks.c:\d+\)$", text, re.M), text
    source = r"""
#include <mutex>
#include <thread>
#include <unistd.h>
namespace { std::mutex mine; struct bank { template <class T> static void pay(T ms) { std::lock_guard<std::mutex> l(mine); usleep(ms * 1000); } }; }
int main()
{
    for (int i = 0; i < 10; i++) {
        std::thread one([] { bank::pay(30); }), other([] { usleep(5000); bank::pay(20); }), third([] { usleep(8000); bank::pay(1); });
        one.join(), other.join(), third.join();
    }
}
"""
    program = proc.compile(source, tmp_path / "cxx", compiler="g++")
    trace = proc.traced([program], tmp_path / "t.out").ok().trace
    told = {kind for _, kind, _ in logs(trace, "held ")}
    names = {message.split(", ", 1)[1] for _, _, message in logs(trace, "held by")}
    assert names == {"(anonymous namespace)::mine"}, names
    assert any(re.fullmatch(r"held \(anonymous namespace\)::mine, taken in .*bank::pay<int>", kind) for kind in told), told


def incident(fault, trace, **env):
    pipe = proc.subprocess.PIPE
    return proc.spawn([PROGRAMS / "incidents", fault], env=proc.traced_env(trace, env), stdout=pipe, stderr=pipe, text=True)


@pytest.mark.measured
def test_incident_of_a_convoy_and_of_a_slow_disk(tmp_path):
    """The README's, each named by one command."""
    for fault, row in [("convoy", r"stats_lock\n +([\d.]+)%   worker, by count: running"), ("fsync", r"journal_lock\n +([\d.]+)%   .*append.*: fsync <- append \(")]:
        trace = tmp_path / f"{fault}.out"
        proc.traced([PROGRAMS / "incidents", fault], trace).ok()
        text = proc.run([GOTRACE, "top", "--holders", trace]).ok().stdout
        assert (found := re.search(row, text)) and float(found[1]) > 50, text


def test_incident_of_a_deadlock(tmp_path):
    child = incident("deadlock", tmp_path / "t.out", GOTRACE_HANG="500ms")
    assert "DEADLOCK" in child.stderr.readline()
    stacks = proc.run([GOTRACE, "stacks", child.pid])
    proc.stop(child)
    assert stacks.returncode == 3 and stacks.stdout.count("transfer (incidents.c:") >= 2, stacks
    assert re.search(r"waits for mutex accounts \(.*\), held by thread \d+ \(worker\)", stacks.stdout), stacks


@pytest.mark.measured
def test_incident_of_a_lost_wakeup(tmp_path):
    trace = tmp_path / "t.out"
    child = incident("lost", trace)
    row, text = None, ""
    while not row or row.groups() != ("2", "1", "0", "1", "2", "1"):
        assert proc.run([GOTRACE, "snapshot", child.pid]).returncode in (0, 1)
        text = proc.run([GOTRACE, "top", "--wakeups", trace]).stdout if trace.exists() else ""
        row = re.search(r"^ *(\d+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+)  all_done$", text, re.M)
        assert child.poll() is None, (text, child.stderr.read())
    proc.stop(child)
    assert re.search(r"^ +2 +1    pthread_cond_signal finish \(incidents.c:\d+\)$", text, re.M), text
