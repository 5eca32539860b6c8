"""Processes from their beginning to their end: errno as without us, what a forked child must not inherit, threads from before
us, who waits for whom, and for how long."""

import concurrent.futures
import contextlib
import os
import re
import subprocess
import time

import pytest

from lib import HOSTILE, LIBRARY, PROGRAMS, gotools, proc

# --- what a program begins with

ERRNO = r"""
#include "gotrace.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void prepare(void)
{
    printf("before fork %d\n", errno);
}

static void parent(void)
{
    printf("after fork %d\n", errno);
}

static void child(void)
{
    printf("in the child's handler %d\n", errno);
}

static void fork_once(void)
{
    fflush(stdout);
    errno = 4711;
    pid_t pid = fork();
    int found = errno;
    if (pid)
        waitpid(pid, NULL, 0);
    printf("%s %d\n", pid ? "parent" : "child", found);
    fflush(stdout);
    if (pid == 0)
        _exit(0);
}

static void *begin(void *arg)
{
    printf("thread %d\n", errno);
    return arg;
}

__attribute__((constructor)) static void construct(void)
{
    printf("constructor %d\n", errno);
}

int main(void)
{
    printf("main %d\n", errno);
    pthread_t t;
    pthread_atfork(prepare, parent, child);
    fork_once();
    pthread_create(&t, NULL, begin, NULL);
    pthread_join(t, NULL);
    gotrace_snapshot(NULL); /* our thread has a file now, which the child's has not */
    fork_once();
    return 0;
}
"""


@pytest.mark.beside
@pytest.mark.parametrize(
    "options",
    [{}, {"GOTRACE_CPU_HZ": "100"}, {"GOTRACE_RING": "1M"}, {"GOTRACE_FORMAT": "go1.19"}, {"GOTRACE_START": "manual"}],
    ids=["file", "samples", "ring", "v1", "manual"],
)
def test_errno_is_as_without_us(traced, tmp_path, options):
    """At the program's start, in its threads and in a fork's handlers, parent and child."""
    program = proc.compile(ERRNO, tmp_path / "program", f"-I{proc.ROOT}/preload")
    assert traced([program], env=options).ok().stdout == proc.run([program]).ok().stdout


def test_errno_of_a_thread_that_gets_no_timer(traced, tmp_path):
    program = proc.compile(ERRNO, tmp_path / "program", f"-I{proc.ROOT}/preload")
    argv = ["prlimit", "--sigpending=0", program]
    result = traced(argv, env={"GOTRACE_CPU_HZ": "100"}).ok()
    assert result.stdout == proc.run(argv).ok().stdout
    assert "no timers for CPU samples of some threads" in result.stderr


# --- what a forked child must not have of its parent

# Between a thread's creation in the trace and its first instruction the first generation ends: the drain side then tells of
# the thread, which has not begun. libgotrace.so's own thread, which does that, goes through at once.
LATE_THREADS = r"""
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, "pthread_create");
    struct timespec ms = {0, 1000000};
    struct stat st = {0};
    char path[4096];
    int state = PTHREAD_CREATE_JOINABLE;
    if (attr)
        pthread_attr_getdetachstate(attr, &state);
    snprintf(path, sizeof path, "%s/%d.out", getenv("FOLDER"), (int)getpid());
    for (int i = 0; state == PTHREAD_CREATE_JOINABLE && !(stat(path, &st) == 0 && st.st_size); i++) {
        if (i == 10000)
            abort();
        nanosleep(&ms, NULL);
    }
    return real(thread, attr, start, arg);
}
"""

YOUNG_CHILD = r"""
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void *nap(void *arg)
{
    nanosleep(&(struct timespec){0, 10000000}, NULL);
    return arg;
}

static void thread(void)
{
    pthread_t t;
    pthread_create(&t, NULL, nap, NULL);
    pthread_join(t, NULL);
}

static void only_parent(void)
{
    nanosleep(&(struct timespec){2, 0}, NULL);
}

int main(void)
{
    only_parent();
    thread();
    pid_t pid = fork();
    if (pid == 0) {
        thread();
        _exit(0);
    }
    printf("%d\n", (int)pid);
    return wait(NULL) < 0;
}
"""


@pytest.mark.measured
def test_a_childs_time_is_its_own(tmp_path):
    """What the parent's drain side wrote last has no part in it: 2 s after its start."""
    late = proc.compile(LATE_THREADS, tmp_path / "late.so", "-D_GNU_SOURCE", "-shared", "-fPIC")
    program = proc.compile(YOUNG_CHILD, tmp_path / "program")
    env = {"LD_PRELOAD": f"{LIBRARY} {late}", "GOTRACE_OUTPUT": tmp_path / "%p.out", "FOLDER": tmp_path}
    child = tmp_path / f"{proc.run([program], env=env).ok().stdout.strip()}.out"
    (parent,) = set(tmp_path.glob("*.out")) - {child}
    (nap,) = [e for e in gotools.parse(child) if e.is_go("Running", "Waiting") and e.stack[1].func == "nap"]
    (end,) = [e for e in gotools.parse(child) if e.is_go("Waiting", "Runnable") and e.goid == nap.goid and e.time > nap.time]
    begin = min(e.time for e in gotools.parse(child))
    assert nap.time - begin < 1e9
    assert 10e6 <= end.time - nap.time < 500e6
    gotools.check_all(parent)
    gotools.check_all(child)


def test_a_childs_tables_are_its_own(tmp_path):
    """What only its parent did is not in its file."""
    program = proc.compile(YOUNG_CHILD, tmp_path / "program")
    proc.traced([program], tmp_path / "t.out").ok()
    (child,) = tmp_path.glob("t.out.*")
    assert b"only_parent" in (tmp_path / "t.out").read_bytes()
    assert b"only_parent" not in child.read_bytes() and b"nap" in child.read_bytes()


HEAP_OF_A_CHILD = r"""
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void *nothing(void *arg)
{
    return arg;
}

static long now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Never waits: what is shown then is all of it. */
static void grow(void)
{
    for (int i = 0; i < 100; i++) {
        long before = now_ms();
        *(volatile char *)malloc(1 << 20) = 1;
        while (now_ms() <= before)
            ;
    }
}

int main(void)
{
    nanosleep(&(struct timespec){3, 0}, NULL);
    grow();
    if (fork() == 0) {
        pthread_t t;
        pthread_create(&t, NULL, nothing, NULL);
        pthread_join(t, NULL);
        grow();
        _exit(0);
    }
    return wait(NULL) < 0;
}
"""


def test_a_childs_heap_is_shown_at_once(tmp_path):
    """When its parent would have shown its heap again is of no interest to it: 100 blocks of 1 MiB, 1 ms apart."""
    proc.traced([proc.compile(HEAP_OF_A_CHILD, tmp_path / "program")], tmp_path / "t.out").ok()
    (child,) = tmp_path.glob("t.out.*")
    heap = [e for e in gotools.parse(child) if e.kind == "Metric" and e.fields["Name"] == "/memory/classes/heap/objects:bytes"]
    assert len(heap) > 50


# --- whom the program waits for, and how long

LATE = "could not be written in time; its end is missing"
WAYS = ["exec", "no-exec", "exit", "_exit", "quick_exit", "abort", "SYS_exit_group", "last-thread", "SYS_exit", "confine", "fork", "stop", "snapshot"]
STUCK = [(way, how, {}) for way in WAYS for how in ("threads", "full")] + [
    (way, how, {"GOTRACE_RING": "1M"}) for way in ("SIGTERM", "snapshot", "stop", "exit") for how in ("threads", "full")
]


@contextlib.contextmanager
def stuck_fifo(path):
    """A FIFO that is full, and whose reader is there and stands still."""
    os.mkfifo(path)
    reader, writer = os.open(path, os.O_RDONLY | os.O_NONBLOCK), os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, bytes(4096))
    try:
        yield path
    finally:
        os.close(reader)
        os.close(writer)


@pytest.mark.measured
@pytest.mark.beside  # they mostly wait
@pytest.mark.limit(150)
def test_nobody_waits_for_ever(tmp_path):
    """10 s in all, whatever it does, and however often; then it goes on, and what is missing is said."""

    def run(case):
        way, how, options = case
        program = [HOSTILE / "stuck", way, how]
        name = "-".join([way, how, *options])
        with stuck_fifo(tmp_path / name) as fifo:
            bare = proc.run(program)
            env = {"GOTRACE_SYSCALLS": "all"} | options
            return name, bare, proc.traced(program, fifo, env=env, timeout=100)

    with concurrent.futures.ThreadPoolExecutor(len(STUCK)) as pool:
        results = list(pool.map(run, STUCK))
    for name, bare, result in results:
        assert (result.returncode, result.stdout) == (bare.returncode, bare.stdout), f"{name}: bare: {bare}\ntraced: {result}"
        lines = result.stderr.splitlines()
        assert 9 < result.seconds < 20, f"{name}: {result}"
        told = "snapshot" in name and "RING" in name  # by gotrace_snapshot's result; its next file is another one
        assert told or lines.count(f"gotrace: {result.trace}: {LATE}") in (1, 2), f"{name}: {result}"


# --- a program with one thread has none of ours

ALONE = r"""
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Some 20,000 naps, in which several buffers fill; the most threads that the process had. */
int main(void)
{
    struct stat tasks;
    unsigned long most = 0;
    for (int i = 0; i < 20000; i++) {
        nanosleep(&(struct timespec){0, 1000}, NULL);
        stat("/proc/self/task", &tasks);
        most = tasks.st_nlink - 2 > most ? tasks.st_nlink - 2 : most;
    }
    printf("%lu\n", most);
    return 0;
}
"""


@pytest.mark.parametrize("options", [{}, {"GOTRACE_FORMAT": "go1.11"}, {"GOTRACE_RING": "64M"}], ids=["file", "v1", "ring"])
def test_a_single_thread_stays_alone(tmp_path, options):
    result = proc.traced([proc.compile(ALONE, tmp_path / "alone")], tmp_path / "t.out", env=options).ok()
    assert result.stdout == "1\n" and "nothing lost;" in result.stderr
    naps = [e for e in gotools.parse(result.trace) if e.is_go("Running", "Waiting") and e.stack[0].func == "nanosleep"]
    assert len(naps) == 20000


# The program's own allocator knows whether it is called in a signal handler, which may have interrupted it.
HANDLER = r"""
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void __libc_free(void *);
static volatile int in_handler, calls, null;

void *malloc(size_t n)
{
    calls += in_handler;
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    calls += in_handler;
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    calls += in_handler;
    return __libc_realloc(p, n);
}

void free(void *p)
{
    calls += in_handler;
    __libc_free(p);
}

static void on_signal(int number)
{
    (void)number;
    in_handler = 1;
    for (int i = 0; i < 1000; i++)
        (void)!write(null, "", 1);
    in_handler = 0;
}

int main(void)
{
    null = open("/dev/null", O_WRONLY);
    signal(SIGUSR1, on_signal);
    for (int i = 0; i < 20; i++)
        raise(SIGUSR1);
    printf("%d\n", calls);
    return 0;
}
"""


@pytest.mark.measured
@pytest.mark.parametrize("options", [{}, {"GOTRACE_FORMAT": "go1.11"}, {"GOTRACE_RING": "64M"}], ids=["file", "v1", "ring"])
def test_full_buffers_in_a_signal_handler(tmp_path, options):
    """They are written there, without what the handler may have interrupted; and there is an end to them."""
    program = proc.compile(HANDLER, tmp_path / "handler", "-Wno-unused-result")
    env = {"GOTRACE_SYSCALLS": "all", "GOTRACE_MAX_MEM": "1M"} | options
    result = proc.traced([program], tmp_path / "t.out", env=env).ok()
    assert result.stdout == "0\n" and "nothing lost;" in result.stderr and result.seconds < 9
    callers = [e.stack[1].func for e in gotools.parse(result.trace) if e.is_go("Running", "Syscall") and e.stack[0].func == "write"]
    # names are not looked up there
    assert len([c for c in callers if c == "on_signal" or c.startswith("handler+0x")]) == 20000


# --- threads from before us

LIBRARY_WITH_THREADS = r"""
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

static sem_t go, done;

static void *worker(void *arg)
{
    for (;;) {
        sem_wait(&go);
        nanosleep(&(struct timespec){0, 5000000}, NULL);
        sem_post(&done);
    }
    return arg;
}

__attribute__((constructor)) static void construct(void)
{
    pthread_t t;
    sem_init(&go, 0, 0);
    sem_init(&done, 0, 0);
    CREATE(&t, NULL, worker, NULL);
}

void work(void)
{
    sem_post(&go);
    sem_wait(&done);
}
"""

USER_OF_IT = r"""
#include <time.h>

void work(void);

int main(void)
{
    nanosleep(&(struct timespec){0, 50000000}, NULL);
    for (int i = 0; i < 5; i++)
        work();
    return 0;
}
"""

# What libc's own callers, and libraries bound in another way, do: the tracer does not see it.
UNSEEN = "-DCREATE=((int(*)(pthread_t*,void*,void*(*)(void*),void*))dlsym(dlopen(\"libpthread.so.0\",RTLD_NOW),\"pthread_create\"))"


@pytest.mark.parametrize("process", ["first", "child"])
@pytest.mark.parametrize("creation", ["seen", "unseen"])
def test_threads_of_a_librarys_constructor(tmp_path, creation, process):
    """They are traced in every process, though the program never makes one; from their creation, if that could be seen."""
    flag = "-DCREATE=pthread_create" if creation == "seen" else UNSEEN
    proc.compile("#include <dlfcn.h>\n" + LIBRARY_WITH_THREADS, tmp_path / "libwith.so", "-D_GNU_SOURCE", "-shared", "-fPIC", flag, "-ldl")
    program = proc.compile(USER_OF_IT, tmp_path / "user", f"-L{tmp_path}", "-lwith", f"-Wl,-rpath,{tmp_path}")
    argv = [program] if process == "first" else ["/bin/sh", "-c", f"{program}; true"]
    proc.traced(argv, tmp_path / "t.out").ok()
    trace = tmp_path / "t.out" if process == "first" else next(tmp_path.glob("t.out.*"))
    gotools.check_all(trace)
    events = gotools.parse(trace)
    (born,) = [e for e in events if e.is_go("NotExist", "Runnable")]
    mine = [e for e in events if e.goid == born.goid]
    naps = [e for e in mine if e.is_go("Running", "Waiting") and e.stack[0].func == "nanosleep"]
    waits = [e for e in mine if e.is_go("Running", "Waiting") and e.stack[0].func == "sem_wait"]
    assert len(naps) == 5
    assert born.transition_stack[0].func == "worker"
    if creation == "seen":
        assert "construct" in [f.func for f in born.stack]
        (end,) = [e for e in mine if e.is_go("Waiting", "Runnable") and waits[0].time < e.time < naps[0].time]
        assert "work" in [f.func for f in end.stack]  # where the main thread posts


# --- what another thread has in hand when a fork comes

# Our look at the loader's list of modules takes as long as the program likes: its dl_iterate_phdr is in between.
FORK_IN_THE_LOADER = r"""
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static sem_t inside, forked;
static __thread int closes;
static int (*callback)(struct dl_phdr_info *, size_t, void *);

/* The loader's lock is held here. */
static int linger(struct dl_phdr_info *info, size_t size, void *arg)
{
    if (closes) {
        struct timespec until;
        closes = 0;
        sem_post(&inside);
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 300000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        sem_timedwait(&forked, &until);
    }
    return callback(info, size, arg);
}

int dl_iterate_phdr(int (*fn)(struct dl_phdr_info *, size_t, void *), void *arg)
{
    int (*real)(int (*)(struct dl_phdr_info *, size_t, void *), void *) = dlsym(RTLD_NEXT, "dl_iterate_phdr");
    if (!closes)
        return real(fn, arg);
    callback = fn;
    return real(linger, arg);
}

static void *close_one(void *lib)
{
    closes = 1;
    dlclose(lib);
    if (closes) /* nobody looked */
        sem_post(&inside);
    return NULL;
}

static int use_loader(void)
{
    void *lib = dlopen("libresolv.so.2", RTLD_NOW);
    return lib && dlclose(lib) == 0 ? 0 : 1;
}

int main(void)
{
    pthread_t t;
    int status = 0;
    void *lib = dlopen("libm.so.6", RTLD_NOW), *other = dlopen("libanl.so.1", RTLD_NOW);
    dlopen("libm.so.6", RTLD_NOW); /* dlclose unloads nothing: a fork while it does leaves a lock of libc held */
    sem_init(&inside, 0, 0);
    sem_init(&forked, 0, 0);
    (void)other;
    pthread_create(&t, NULL, close_one, lib);
    sem_wait(&inside);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(10);
        _exit(use_loader());
    }
    sem_post(&forked);
    pthread_join(t, NULL);
    waitpid(pid, &status, 0);
    printf("%d\n", status);
    return 0;
}
"""


def test_a_fork_while_we_look_at_the_modules(tmp_path):
    """The child's loader is free."""
    program = proc.compile(FORK_IN_THE_LOADER, tmp_path / "program", "-D_GNU_SOURCE", "-rdynamic", "-ldl")
    bare = proc.run([program]).ok()
    result = proc.traced([program], tmp_path / "t.out").ok()
    assert result.stdout == bare.stdout == "0\n"


# --- a command that was given up

GIVES_UP = r"""
#include "gotrace.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *nothing(void *arg)
{
    return arg;
}

/* The path is gone when it returns. */
static void snapshot(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    printf("%s: %s\n", name, strerror(gotrace_snapshot(*name == 'f' ? NULL : path)));
    memset(path, 'x', sizeof path);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    pthread_t t;
    pthread_create(&t, NULL, nothing, NULL);
    pthread_join(t, NULL);
    snapshot(argv[1], "fifo");
    snapshot(argv[1], "second");
    getchar();
    snapshot(argv[1], "third");
    return argc < 2;
}
"""


@pytest.mark.beside
def test_what_was_given_up_is_not_done_later(tmp_path):
    """Nor from a path that is not there any more. What was begun is done when there is a reader again."""
    program = proc.compile(GIVES_UP, tmp_path / "program", f"-I{proc.ROOT}/preload")
    with stuck_fifo(tmp_path / "fifo") as fifo:
        env = proc.traced_env(fifo, {"GOTRACE_RING": "1M"})
        child = proc.spawn([program, tmp_path], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert [child.stdout.readline() for _ in range(2)] == ["fifo: Connection timed out\n", "second: Connection timed out\n"]
        with open(fifo, "rb", buffering=0) as reader:
            assert reader.read(65536) == bytes(65536)
            while not reader.read(65536):
                time.sleep(0.01)
            child.stdin.write("\n")
            child.stdin.close()
            assert child.stdout.read() == "third: Success\n"
            assert child.wait(20) == 0
    assert not (tmp_path / "second").exists()
    gotools.check_all(tmp_path / "third")


# --- containers


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_processes_of_the_same_number(tmp_path):
    """The first process of each of four containers is number 1: while one writes, no other one writes there, too."""
    source = "#include <pthread.h>\n#include <stdio.h>\n" "static void *nothing(void *arg) { return arg; }\n"
    source += "int main(void) { pthread_t t; pthread_create(&t, NULL, nothing, NULL); pthread_join(t, NULL); puts(\"there\"); fflush(stdout); getchar(); return 0; }\n"
    program = proc.compile(source, tmp_path / "program")
    env = [f"{k}={v}" for k, v in proc.traced_env(tmp_path / "t.out").items()]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    children = [proc.spawn(["unshare", "-pf", "env", *env, program], **pipes) for _ in range(4)]
    for child in children:
        assert child.stdout.readline() == "there\n"
        deadline = time.monotonic() + 20
    while len(list(tmp_path.glob("t.out*"))) < 4 and time.monotonic() < deadline:
        time.sleep(0.01)
    for child in children:
        child.communicate("\n", 20)
        assert child.returncode == 0
    traces = sorted(tmp_path.glob("t.out*"))
    assert [t.name for t in traces] == ["t.out", "t.out.1", "t.out.1.2", "t.out.1.3"]
    for trace in traces:
        gotools.check_all(trace)
