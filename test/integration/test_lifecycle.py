"""Processes from their beginning to their end: errno as without us, what a forked child must not inherit, threads from before
us, which process waits for which, and for how long."""

import concurrent.futures
import contextlib
import ctypes
import os
import re
import select
import signal
import subprocess
import time

import pytest

from lib import FUTEX, HOSTILE, LIBRARY, SINGLE, SOURCES, gotools, proc

# --- what a program begins with


@pytest.mark.parametrize(
    "options",
    [{}, {"GOTRACE_CPU_HZ": "100"}, {"GOTRACE_RING": "1M"}, {"GOTRACE_FORMAT": "go1.19"}, {"GOTRACE_START": "manual"}],
    ids=["file", "samples", "ring", "v1", "manual"],
)
def test_errno_is_as_without_us(traced, options):
    """At the program's start, in its threads and in a fork's handlers, parent and child."""
    program = SINGLE / "lifecycle/errno"
    assert traced([program], env=options).ok().stdout == proc.run([program]).ok().stdout


def test_errno_of_a_thread_that_gets_no_timer(traced):
    program = SINGLE / "lifecycle/errno"
    argv = ["prlimit", "--sigpending=0", program]
    result = traced(argv, env={"GOTRACE_CPU_HZ": "100"}).ok()
    assert result.stdout == proc.run(argv).ok().stdout
    assert "no timers for CPU samples of some threads" in result.stderr


# --- what a forked child must not have of its parent


@pytest.mark.measured
def test_a_childs_time_is_its_own(tmp_path):
    """What the parent's drain side wrote last has no part in it: 2 s after its start."""
    late = proc.compile(SOURCES / "lifecycle/late_threads.c", tmp_path / "late.so", "-D_GNU_SOURCE", "-shared", "-fPIC")
    program = SINGLE / "lifecycle/young_child"
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
    program = SINGLE / "lifecycle/young_child"
    proc.traced([program], tmp_path / "t.out").ok()
    (child,) = tmp_path.glob("t.out.*")
    assert b"only_parent" in (tmp_path / "t.out").read_bytes()
    assert b"only_parent" not in child.read_bytes() and b"nap" in child.read_bytes()


def test_a_childs_heap_is_shown_at_once(tmp_path):
    """When its parent would have shown its heap again is of no interest to it: 100 blocks of 1 MiB, 1 ms apart."""
    proc.traced([SINGLE / "lifecycle/heap_of_a_child"], tmp_path / "t.out").ok()
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
@pytest.mark.limit(150)
@pytest.mark.long
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


# --- threads that run on at the end

PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207
WALL = 0x40000000  # for waitpid(2): threads, too


@contextlib.contextmanager
def standing_still(tid):
    """One thread, while the others run."""
    ptrace = ctypes.CDLL(None).ptrace
    assert ptrace(PTRACE_SEIZE, tid, None, None) == 0 and ptrace(PTRACE_INTERRUPT, tid, None, None) == 0
    os.waitpid(tid, WALL)
    try:
        yield
    finally:
        ptrace(PTRACE_DETACH, tid, None, None)


@contextlib.contextmanager
def at_rest(drain):
    """Elsewhere it may hold a lock that the end of the process needs."""
    for _ in range(1000):
        proc.until(lambda: is_idle(drain))
        with standing_still(int(drain.name)):
            if is_idle(drain):
                yield
                return
    raise AssertionError("it never rests")


def says(child, seconds):
    return bool(select.select([child.stdout], [], [], seconds)[0])


def test_threads_are_held_while_the_trace_is_completed(tmp_path):
    """Meanwhile their waits end, behind destructors that have freed what they use."""
    env = proc.traced_env(tmp_path / "t.out")
    child = proc.spawn([SINGLE / "lifecycle/remains"], env=env, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"begun\n"
    with at_rest(proc.drain_thread(child.pid)):
        child.stdin.write(b"\n")
        assert says(child, 30) and child.stdout.readline() == b"freed\n"
        assert not says(child, 2) and child.poll() is None  # twice as long as their waits
    assert child.wait(30) == 0
    gotools.check_all(tmp_path / "t.out")


def test_threads_are_held_while_the_ending_thread_waits_for_a_cpu(tmp_path):
    """By the clock the hold is over long before."""
    library = proc.compile(
        SOURCES / "lifecycle/starved.c", tmp_path / "starved.so", "-D_GNU_SOURCE", "-shared", "-fPIC", "-pthread"
    )
    env = {"LD_PRELOAD": f"{LIBRARY} {library}", "GOTRACE_OUTPUT": tmp_path / "t.out"}
    result = proc.run(["true"], env=env)
    if result.returncode == 77:
        pytest.skip("needs two CPUs and real-time priority")
    assert result.ok().stderr.splitlines()[-1] == "was held"
    gotools.check_all(tmp_path / "t.out")


@pytest.mark.measured
@pytest.mark.parametrize(
    ("way", "options", "most_ms"),
    [("JOIN", {}, 30), ("YIELD", {}, 30), ("SPIN", {}, 300), ("SPIN", {"GOTRACE_START": "manual"}, 30)],
    ids=["join", "yield", "spin", "manual"],
)
def test_a_thread_that_was_held_goes_on(tmp_path, way, options, most_ms):
    """A destructor that runs after ours waits for it."""
    source = SOURCES / "lifecycle/joins_late.c"
    library = proc.compile(source, tmp_path / "late.so", "-D_GNU_SOURCE", f"-DWAY={way}", "-shared", "-fPIC", "-pthread")
    env = {"LD_PRELOAD": f"{LIBRARY} {library}", "GOTRACE_OUTPUT": tmp_path / "t.out"} | options
    result = proc.run(["true"], env=env).ok()
    assert int(re.fullmatch(r"(?:gotrace: .* nothing lost.*\n)?waited (\d+) ms\n", result.stderr)[1]) < most_ms
    if not options:
        gotools.check_all(tmp_path / "t.out")


def test_a_thread_that_was_held_reads_the_trace(tmp_path):
    """From a FIFO, which is full until it goes on."""
    fifo, trace = tmp_path / "fifo", tmp_path / "t.out"
    os.mkfifo(fifo)
    with open(os.open(fifo, os.O_RDWR | os.O_NONBLOCK), "rb") as rest, open(trace, "wb") as copy:
        env = proc.traced_env(fifo, {"GOTRACE_SYSCALLS": "all"})
        child = proc.spawn([SINGLE / "lifecycle/reads_its_trace", fifo], env=env, stdout=copy, stderr=subprocess.PIPE, text=True)
        _, said = child.communicate(timeout=60)
        copy.write(rest.read() or b"")
    assert child.returncode == 0 and "nothing lost" in said, said
    gotools.check_all(trace)


def test_threads_go_on_where_the_process_does(traced):
    """A filter for all threads lets nothing be recorded any more, and none of them call futex(2)."""
    result = traced([SINGLE / "lifecycle/confines_threads"]).ok()
    assert "confines itself by seccomp(2)" in result.stderr


# --- a program with one thread has none of ours

WRITTEN = [  # where to
    pytest.param({}, id="file"),
    pytest.param({"GOTRACE_FORMAT": "go1.11"}, id="v1", marks=pytest.mark.long),
    pytest.param({"GOTRACE_RING": "64M"}, id="ring", marks=pytest.mark.long),
]


@pytest.mark.parametrize("options", WRITTEN)
def test_a_single_thread_stays_alone(tmp_path, options):
    result = proc.traced([SINGLE / "lifecycle/alone"], tmp_path / "t.out", env=options).ok()
    assert result.stdout == "1\n" and "nothing lost;" in result.stderr
    naps = [e for e in gotools.parse(result.trace) if e.is_go("Running", "Waiting") and e.stack[0].func == "nanosleep"]
    assert len(naps) == 20000


def test_a_single_thread_writes_nothing_before_a_buffer_is_full(tmp_path):
    """300 sleeps fill its first, small buffer, and not the next one."""
    result = proc.traced([SINGLE / "lifecycle/naps"], tmp_path / "t.out")
    assert result.returncode == -signal.SIGKILL and not result.trace.exists()


@pytest.mark.measured
@pytest.mark.parametrize("options", WRITTEN)
def test_full_buffers_in_a_signal_handler(tmp_path, options):
    """They are written there, without what the handler may have interrupted; and there is an end to them."""
    program = SINGLE / "lifecycle/handler"
    env = {"GOTRACE_SYSCALLS": "all", "GOTRACE_MAX_MEM": "1M"} | options
    result = proc.traced([program], tmp_path / "t.out", env=env).ok()
    assert result.stdout == "0\n" and "nothing lost;" in result.stderr and result.seconds < 9
    callers = [e.stack[1].func for e in gotools.parse(result.trace) if e.is_go("Running", "Syscall") and e.stack[0].func == "write"]
    # names are not looked up there
    assert len([c for c in callers if c == "on_signal" or c.startswith("handler+0x")]) == 20000


# --- threads from before us

# What libc's own callers, and libraries bound in another way, do: the tracer does not see it.
UNSEEN = "-DCREATE=((int(*)(pthread_t*,void*,void*(*)(void*),void*))dlsym(dlopen(\"libpthread.so.0\",RTLD_NOW),\"pthread_create\"))"


@pytest.mark.parametrize("process", ["first", "child"])
@pytest.mark.parametrize("creation", ["seen", "unseen"])
def test_threads_of_a_librarys_constructor(tmp_path, creation, process):
    """They are traced in every process, though the program never makes one; from their creation, if that could be seen."""
    flag = "-DCREATE=pthread_create" if creation == "seen" else UNSEEN
    proc.compile(SOURCES / "lifecycle/with_threads.c", tmp_path / "libwith.so", "-D_GNU_SOURCE", "-shared", "-fPIC", flag, "-ldl")
    program = proc.compile(SOURCES / "lifecycle/uses_threads.c", tmp_path / "user", f"-L{tmp_path}", "-lwith", f"-Wl,-rpath,{tmp_path}")
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


def test_a_fork_while_we_look_at_the_modules(tmp_path):
    """The child's loader is free."""
    program = proc.compile(SOURCES / "lifecycle/fork_in_the_loader.c", tmp_path / "program", "-D_GNU_SOURCE", "-rdynamic", "-ldl")
    bare = proc.run([program]).ok()
    result = proc.traced([program], tmp_path / "t.out").ok()
    assert result.stdout == bare.stdout == "0\n"


# --- a command that was given up


def is_idle(drain):
    return (drain / "syscall").read_text().startswith(f"{FUTEX} ")


@pytest.mark.long
def test_what_was_given_up_is_not_done_later(tmp_path):
    """Nor from a path that is not there any more. The call that had begun is done when there is a reader again."""
    program = SINGLE / "lifecycle/gives_up"
    with stuck_fifo(tmp_path / "fifo") as fifo:
        env = proc.traced_env(fifo, {"GOTRACE_RING": "1M"})
        child = proc.spawn([program, tmp_path], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert [child.stdout.readline() for _ in range(2)] == ["fifo: Connection timed out\n", "second: Connection timed out\n"]
        with open(fifo, "rb", buffering=0) as reader:
            assert reader.read(65536) == bytes(65536)
            proc.until(lambda: reader.read(65536) and is_idle(proc.drain_thread(child.pid)))  # who wrote may not know yet that it could
            child.stdin.write("\n")
            child.stdin.close()
            assert child.stdout.read() == "third: Success\n"
            assert child.wait(20) == 0
    assert not (tmp_path / "second").exists()
    gotools.check_all(tmp_path / "third")


# --- containers


@pytest.fixture(scope="module")
def waiting(tmp_path_factory):
    source = "#include <pthread.h>\n#include <stdio.h>\n" "static void *nothing(void *arg) { return arg; }\n"
    source += "int main(void) { pthread_t t; pthread_create(&t, NULL, nothing, NULL); pthread_join(t, NULL); puts(\"there\"); fflush(stdout); getchar(); return 0; }\n"
    return proc.compile(source, tmp_path_factory.mktemp("waiting") / "program")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("ring", ["", "1M"])
def test_processes_of_the_same_number(waiting, tmp_path, ring):
    """The first process of each of four containers is number 1: none writes where another one writes, or has written."""
    env = [f"{k}={v}" for k, v in proc.traced_env(tmp_path / "t.out", {"GOTRACE_RING": ring} if ring else {}).items()]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    children = [proc.spawn(["unshare", "-pf", "env", *env, waiting], **pipes) for _ in range(4)]
    for child in children:
        assert child.stdout.readline() == "there\n"
    proc.until(lambda: ring or len(list(tmp_path.glob("t.out*"))) == 4)
    for child in children:
        child.communicate("\n", 20)
        assert child.returncode == 0
    traces = sorted(tmp_path.glob("t.out*"))
    assert [t.name for t in traces] == ["t.out", "t.out.1", "t.out.1.2", "t.out.1.3"]
    for trace in traces:
        gotools.check_all(trace)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_one_after_another_of_the_same_number(waiting, tmp_path):
    """Three of a family: each leaves a trace. Those that an earlier family has left are overwritten. A file that is younger
    than two ticks may be of an earlier image of the process."""
    command = f"for i in 1 2 3; do unshare -pf {waiting} </dev/null; sleep 0.1; done"
    for _ in range(2):
        began = time.time_ns()
        proc.traced(["sh", "-c", command], tmp_path / "t.out").ok()
        traces = sorted(tmp_path.glob("t.out*"))
        assert [t.name for t in traces] == ["t.out", "t.out.1", "t.out.1.1", "t.out.1.1.2"]
        assert all(t.stat().st_mtime_ns > began - 20_000_000 for t in traces)  # the kernel's clock of files is that rough
        for trace in traces:
            gotools.check_all(trace)
