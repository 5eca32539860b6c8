"""Programs that do what a tracer fears (test/hostile), bare and under the library: same output, same end."""

import os
import re
import subprocess
import sys

import pytest

from lib import FUTEX, HOSTILE, LIBC, LIBRARY, PROGRAMS, SINGLE, gotools, proc

ROOT = os.geteuid() == 0

# Each child of these that makes a thread leaves a trace of its own; so many, besides the first process's.
FORKS = {
    "fork": 1,
    "_Fork": 1,
    "clone": 1,
    "under-fire": 100,
    "thread": 1,
    "vfork": 0,
    "spawn": 0,
    "twice": 1,
    "daemon": 1,
    "exec": 0,
    "exec-thread": 0,
}
SIGNALS = ["storm", "storm-restart", "altstack", "jumps", "interrupts", "cancels"]
CRASHES = ["SIGSEGV", "SIGSEGV handled", "SIGBUS", "SIGBUS handled", "abort"]
RESOURCES = [
    "closefrom",
    "close_range",
    "close-listed",
    "close-all",
    "few-files",
    "seccomp",
    "seccomp-kills",
    "seccomp-children",
    "small-stacks",
    "memory",
    "early-unshare",
]
AS_ROOT = ["setuid", "no-threads"]


def same(name, tmp_path, *args, **options):
    """Runs it twice and compares; returns the traced run."""
    bare = proc.run([HOSTILE / name, *args], cwd=tmp_path, **options)
    assert bare.returncode >= 0 or args and args[0] in ("SIGSEGV", "SIGBUS", "abort"), f"not a fair test: {bare}"
    result = proc.traced([HOSTILE / name, *args], tmp_path / "t.out", cwd=tmp_path, **options)
    assert (result.returncode, result.stdout) == (bare.returncode, bare.stdout), f"bare: {bare}\ntraced: {result}"
    others = [line for line in result.stderr.splitlines() if not line.startswith("gotrace: ")]
    assert others == bare.stderr.splitlines(), f"bare: {bare}\ntraced: {result}"
    return result


@pytest.mark.parametrize("way", FORKS)
def test_forks(tmp_path, way):
    same("forks", tmp_path, way)
    traces = sorted(tmp_path.glob("t.out*"))
    assert len(traces) == 1 + FORKS[way]
    for trace in traces[:5]:
        gotools.check_all(trace)
    if traces[5:]:
        assert proc.run([gotools.read_all(gotools.find()), *traces[5:]]).ok().stdout == ""


@pytest.mark.parametrize("case", SIGNALS)
def test_signals(tmp_path, case):
    gotools.check_all(same("signals", tmp_path, case).trace)


@pytest.mark.parametrize("case", CRASHES)
def test_crashes(tmp_path, case):
    """The trace of a crash ends with the last whole generation, a tenth of a second before it or so."""
    trace = same("signals", tmp_path, *case.split()).trace
    gotools.check_all(trace)
    assert any(e.is_go("Undetermined", "Running") for e in gotools.parse(trace))


def test_a_wait_left_by_longjmp_does_not_hide_the_next(tmp_path):
    events = gotools.parse(same("signals", tmp_path, "jumps").trace)
    leaves = [e.stack[0].func for e in events if e.is_go("Running", "Waiting")]
    assert leaves.count("sem_wait") == 5 and leaves.count("sleep") == 5 and leaves[-1] == "usleep"


def test_a_call_left_by_longjmp_has_its_stack(tmp_path):
    events = gotools.parse(same("signals", tmp_path, "jumps").trace)
    for call, state in (("read", "Syscall"), ("poll", "Syscall")):
        stacks = [[frame.func for frame in e.stack[:4]] for e in events if e.is_go("Running", state) and e.stack[0].func == call]
        assert stacks == [[call, f"wait_{call}", "jump_out_of", "jumps"]] * 5


@pytest.mark.chance
@pytest.mark.parametrize("end", ["exit", "exec"])
def test_jumps_out_of_the_tracer(tmp_path, end):
    """The drain side does not wait for an event that will never be whole; the earlier events are in the trace."""
    result = same("leaves", tmp_path, end, env={"GOTRACE_SYSCALL_MIN": "0"})
    gotools.check_all(result.trace)
    assert end == "exec" or re.search(r", \d+ events lost", result.stderr), result.stderr
    assert len({e.goid for e in gotools.parse(result.trace) if e.is_go("Running", "Syscall")}) >= 2


def test_errno_on_a_stack_of_unknown_size(tmp_path):
    gotools.check_all(same("stacks", tmp_path, "coroutine").trace)


def test_a_call_in_a_handler_on_a_stack_above_is_part_of_the_wait(tmp_path):
    """One wait, which the main thread ends, however many signals come."""
    events = gotools.parse(same("stacks", tmp_path, "high").trace)
    waits = [e for e in events if e.is_go("Running", "Waiting") and "waits_below" in [f.func for f in e.stack]]
    assert [e.stack[0].func for e in waits] == ["sem_wait"], waits
    (end,) = [e for e in events if e.is_go("Waiting", "Runnable") and e.goid == waits[0].goid and e.time > waits[0].time]
    assert end.stack[0].func == "sem_post", end


def test_a_jump_behind_the_end_of_the_trace_loses_nothing(tmp_path):
    program = SINGLE / "hostile/late_jumps"
    assert "nothing lost" in proc.traced([program], tmp_path / "t.out").ok().stderr


def steps(tmp_path, *args):
    """The traces of test/hostile/steps.c, which all tools can read."""
    env = {"GOTRACE_SYSCALL_MIN": "0", "GOTRACE_QUIET": "1"}
    result = proc.traced([HOSTILE / "steps", *args], tmp_path / "t.out", env=env, timeout=110)
    if result.returncode == 77:
        pytest.skip("only x86-64 can be stepped")
    traces = sorted(tmp_path.glob("t.out*"))
    assert proc.run([gotools.read_all(gotools.find()), *traces]).ok().stdout == ""
    return result, traces


@pytest.mark.limit(120)
@pytest.mark.parametrize("way", ["siglongjmp", "pthread_exit"])
@pytest.mark.long
def test_threads_that_leave_the_tracer_at_each_instruction(tmp_path, way):
    """What is half done nobody trips over: neither readers of the trace nor the threads that come later."""
    result, (trace,) = steps(tmp_path, way, "sem_post", 1, 5)
    assert result.returncode == 0
    stacks = [[f.func for f in e.stack] for e in gotools.parse(trace) if e.is_go("Running", "Waiting")]
    assert any(s[:2] == ["usleep", "last"] for s in stacks)


@pytest.mark.chance
def test_threads_cancelled_anywhere(tmp_path):
    result = same("cancels", tmp_path, env={"GOTRACE_SYSCALL_MIN": "0"})
    assert proc.run([gotools.read_all(gotools.find()), result.trace], timeout=120).ok().stdout == ""


@pytest.mark.limit(120)
def test_forks_at_each_instruction_of_the_tracer(tmp_path):
    """The child goes back there, and has a trace of its own."""
    result, traces = steps(tmp_path, "fork", "write", 1, 5)
    assert (result.returncode, result.stdout) == (0, "") and len(traces) > 100


@pytest.mark.chance
@pytest.mark.alone  # a collection that has no CPU for 0.9 s counts as one that waits for the tracer
@pytest.mark.parametrize("memory", ["1M", "256M"])
def test_collector_that_stops_threads_by_signals(tmp_path, memory):
    """Also those that are inside the tracer, which must not make the collector wait for them."""
    result = same("collector", tmp_path, env={"GOTRACE_MAX_MEM": memory})
    lost = re.search(r", (\d+) events lost", result.stderr)  # what would have had to wait for a stopped thread
    assert int(lost[1]) < 100 if lost else "nothing lost" in result.stderr, result.stderr
    gotools.check_all(result.trace)


URGENT = [
    {},
    pytest.param({"GOTRACE_SYSCALLS": "all"}, marks=pytest.mark.long),
    {"GOTRACE_SYSCALLS": "all", "GOTRACE_RING": "1M"},
    pytest.param({"GOTRACE_SYSCALLS": "all", "GOTRACE_CPU_HZ": "200"}, marks=pytest.mark.long),
]


@pytest.mark.measured
@pytest.mark.skipif(not ROOT, reason="needs root")
@pytest.mark.parametrize("env", URGENT, ids=" ".join)
def test_real_time_priorities(tmp_path, env):
    """None of its calls makes the most urgent thread wait for another one of the program, or for the tracer's."""
    program = ["taskset", "-c", min(os.sched_getaffinity(0)), HOSTILE / "urgent", 4000]
    result = proc.traced(program, tmp_path / "t.out", env=env).ok()
    assert result.stdout == "while the highest ran, others did 0\n", result
    lost = re.search(r"(\d+) events lost", result.stderr)
    times = int(re.search(r"(\d+) times", result.stderr)[1])
    assert times > 1000 and int(lost[1] if lost else 0) < times, result.stderr
    gotools.check_all(result.trace)


@pytest.mark.measured
@pytest.mark.skipif(not ROOT, reason="needs root")
def test_real_time_end(tmp_path):
    """A process ends as soon as the trace is written, though threads leave no time to less urgent ones."""
    program = ["chrt", "-f", "40", "taskset", "-c", min(os.sched_getaffinity(0)), HOSTILE / "urgent", "end"]
    bare, result = proc.run(program).ok(), proc.traced(program, tmp_path / "t.out").ok()
    assert result.seconds < bare.seconds + 0.3, f"{result.seconds} s, bare {bare.seconds} s"
    gotools.check_all(result.trace)


def test_all_keys(tmp_path):
    """The program can make as many keys as without us; what begins after that has an end in the trace nevertheless."""
    result = proc.traced([PROGRAMS / "allkeys"], tmp_path / "t.out").ok()
    keys = 1024 if LIBC >= 34 else 1023  # libdl takes one when somebody first calls dlsym
    assert result.stdout == f"keys {keys} of 1024, then 1\ndestroyed 21, wrong 0\none again: 1\n"
    gotools.check_all(result.trace)
    events = gotools.parse(result.trace)
    routine = {e.goid: e.transition_stack[0].func for e in events if e.is_go("NotExist", "Runnable")}
    ended = [routine.get(e.goid) for e in events if e.is_go("Running", "NotExist")]
    assert ended.count("comes_later") == 20


@pytest.mark.parametrize("case", RESOURCES)
def test_resources(tmp_path, case):
    gotools.check_all(same("resources", tmp_path, case).trace)


def test_confined_before_there_are_threads(tmp_path):
    """There the program's own thread would have to write the trace, by calls for which it is killed."""
    result = same("resources", tmp_path, "early-seccomp")
    assert "gotrace: the program confines itself by seccomp(2): nothing is recorded from here on\n" in result.stderr
    gotools.check_all(result.trace)


SYSTEM_CALLS = range(470)  # Linux 6.12 has 467 on x86-64
PERF_EVENT_OPEN, TIMER_GETTIME = (298, 224) if os.uname().machine == "x86_64" else (241, 108)
PIDFD_GETFD = 438
FSTATFS = 138 if os.uname().machine == "x86_64" else 44
SIGNALS_OF_OURS = {"GOTRACE_CPU_HZ": "1000", "GOTRACE_RING": "1M"}


TRACED = [f"LD_PRELOAD={LIBRARY}", "GOTRACE_OUTPUT=t.out", "GOTRACE_HANG=100ms"]


@pytest.mark.parametrize(
    "mode, argv, options",
    [
        ("a", [HOSTILE / "confines", "run", PIDFD_GETFD, "/usr/bin/env", *TRACED, PROGRAMS / "incidents", "deadlock"], {}),
        ("a", [HOSTILE / "confines", "run", PIDFD_GETFD, "/usr/bin/env", *TRACED, PROGRAMS / "incidents", "deadlock"], {"extra_groups": range(1000, 1900)}),
        ("w", ["/usr/bin/env", *TRACED, HOSTILE / "confines", "hang", PERF_EVENT_OPEN], {}),
    ],
    ids=["inherited", "with_many_groups", "own"],
)
def test_lines_under_a_filter(tmp_path, mode, argv, options):
    """The library's thread has none of the program's descriptors. One filter is deadly for borrowing them, and one allows that."""
    if "extra_groups" in options and os.geteuid():
        pytest.skip("only root sets groups")
    said = tmp_path / "said"
    with open(said, mode) as stderr:
        child = proc.spawn(argv, cwd=tmp_path, stderr=stderr, **options)
    try:
        proc.until(lambda: "gotrace: DEADLOCK" in said.read_text(), child=child)
    finally:
        proc.kill_group(child)


@pytest.mark.limit(300)
@pytest.mark.parametrize(
    "when, options",
    [
        ("all", {}),
        *(pytest.param(when, {}, marks=pytest.mark.long) for when in ("before", "after", "child", "parent", "exec")),
        pytest.param("all", SIGNALS_OF_OURS, marks=pytest.mark.long),
    ],
    ids=str,
)
def test_each_system_call_may_kill(tmp_path, when, options):
    """What the program can do without when it is bare, it can do without when it is traced."""
    spared, killed = 0, []
    if proc.run([HOSTILE / "confines", when, max(SYSTEM_CALLS)]).returncode == 77:
        pytest.skip("there are no filters here")
    for number in SYSTEM_CALLS:
        argv = [HOSTILE / "confines", when, number]
        result = proc.traced(argv, tmp_path / "t.out", env=options)
        if result.returncode == 0:
            spared += 1
        elif proc.run(argv).returncode == 0:
            killed.append((number, str(result)))
    if LIBC < 34 and when == "exec":
        killed = [its for its in killed if its[0] != FUTEX]  # dlsym itself makes one, once
    assert spared > 400 and not killed, killed


def test_a_filter_that_kills_who_asks_for_message_queues(tmp_path):
    """A descriptor that looks like one."""
    (tmp_path / "queue").touch()
    os.truncate(tmp_path / "queue", 80)
    command = f'exec "$@" <{tmp_path / "queue"}'
    argv = ["sh", "-c", command, "sh", HOSTILE / "confines", "before", FSTATFS]
    if proc.run(argv).returncode == 77:
        pytest.skip("there are no filters here")
    proc.traced(argv, tmp_path / "%e.out").ok()
    gotools.check(tmp_path / "confines.out")


@pytest.mark.parametrize("call", [PERF_EVENT_OPEN, TIMER_GETTIME])
@pytest.mark.alone
def test_our_thread_heeds_a_filter_at_once(tmp_path, call):
    """It may be about to make the call, for the thread that has just begun, when the filter takes effect."""
    if proc.run([HOSTILE / "confines", "all", call]).returncode == 77:
        pytest.skip("there are no filters here")
    for _ in range(60):
        proc.traced([HOSTILE / "confines", "all", call], tmp_path / "t.out", env=SIGNALS_OF_OURS).ok()


def test_filter_that_cannot_be_read(tmp_path):
    assert same("confines", tmp_path, "unreadable").stdout.count("-1 Bad address\n") == 6


def test_filter_that_answers_for_the_kernel(tmp_path):
    """A call may succeed although its pointers are bad."""
    if proc.run([HOSTILE / "confines", "answered"]).returncode == 77:
        pytest.skip("there are no filters here")
    assert same("confines", tmp_path, "answered").stdout == "0 0\n"


SANDBOXES = ["early", "late", "alone", "child", "closed"]


@pytest.mark.parametrize(
    "when, options",
    [(when, {}) for when in SANDBOXES]
    + [("early", {"GOTRACE_FORMAT": format}) for format in ("go1.21", "go1.26")]
    + [("early", {"GOTRACE_SYSCALLS": "all"}), ("early", {"GOTRACE_CPU_HZ": "1000"})],
    ids=str,
)
def test_sandboxed_before_there_are_threads(tmp_path, when, options):
    """The file is opened, and names are read, before the program cannot do so any more."""
    if proc.run([HOSTILE / "sandboxes", when], cwd=tmp_path).returncode == 77:
        pytest.skip("this kernel has no Landlock")
    (tmp_path / "new").unlink(missing_ok=True)
    result = same("sandboxes", tmp_path, when, env=options)
    trace = result.trace if when != "child" else next(tmp_path.glob("t.out.*"))
    assert "open: -1 -1\n" in result.stdout  # the sandbox is one
    assert ("nothing lost" in result.stderr) == (when != "closed"), result.stderr
    readers = gotools.readers_of(options.get("GOTRACE_FORMAT", "go1.23"))
    for go in readers.values():
        gotools.check(trace, go=go)
    if when != "alone" and options.get("GOTRACE_FORMAT") != "go1.21":
        waits = [e.stack for e in gotools.parse(trace) if e.is_go("Running", "Waiting")]
        named = [s for s in waits if [f.func for f in s[:2]] == ["pthread_cond_wait", "await_all"]]
        assert named and all(s[1].file.endswith("sandboxes.c") and s[1].line for s in named), waits


@pytest.mark.skipif(not ROOT, reason="needs root")
@pytest.mark.parametrize("case", AS_ROOT)
def test_rights(tmp_path, case):
    gotools.check_all(same("resources", tmp_path, case).trace)


@pytest.mark.skipif(not ROOT, reason="needs root")
def test_locked_memory(tmp_path):
    """What the program locks is made when it is mapped: the tracer maps no more than it uses."""
    script = (
        "import resource,subprocess,sys;"
        "subprocess.run(sys.argv[1:], check=False, stdout=subprocess.DEVNULL);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt)"
    )
    gotools.check_all(same("resources", tmp_path, "locked").trace)
    env = proc.traced_env(tmp_path / "f.out")
    program = ["env", *[f"{k}={v}" for k, v in env.items()], HOSTILE / "resources", "locked"]
    faults = int(proc.run([sys.executable, "-c", script, *program]).ok().stdout)
    assert faults * 4096 < 150 << 20


@pytest.mark.skipif(not ROOT, reason="needs root")
def test_chroot(tmp_path):
    jail = tmp_path / "jail"
    jail.mkdir()
    gotools.check_all(same("resources", tmp_path, "chroot", jail).trace)


def test_a_file_of_the_program_is_never_written(tmp_path):
    result = same("resources", tmp_path, "occupy", tmp_path / "its")
    assert (tmp_path / "its").read_bytes() == b""
    gotools.check_all(result.trace)


def test_unlinked_output(tmp_path):
    same("resources", tmp_path, "unlink", tmp_path / "t.out")
    assert not (tmp_path / "t.out").exists()


def test_file_size_limit(tmp_path):
    """Generations that are small enough are there; what comes later is not, and is cut off whole. Without any: no file."""
    result = same("resources", tmp_path, "file-size")
    assert f"gotrace: cannot write {result.trace}: File too large; the program was not affected" in result.stderr
    if result.trace.exists():
        assert 0 < result.trace.stat().st_size <= 8192
        gotools.check_all(result.trace)


@pytest.mark.skipif(not ROOT, reason="needs root")
def test_disk_full(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", disk], check=True)
    try:
        program = [HOSTILE / "resources", "none"]
        bare = proc.run(program)
        result = proc.traced(program, disk / "t.out")
        assert (result.returncode, result.stdout) == (bare.returncode, bare.stdout)
        assert result.stderr == (
            f"gotrace: cannot write {disk / 't.out'}: No space left on device; the program was not affected\n"
        )
        gotools.check_all(disk / "t.out")
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.mark.parametrize(
    "env",
    [
        {},
        {"GOTRACE_SYSCALLS": "all"},
        {"GOTRACE_CPU_HZ": "200"},
        {"GOTRACE_RING": "1M"},
        {"GOTRACE_SIGNAL": "USR2"},
        {"GOTRACE_START": "manual"},
        {"GOTRACE_FORMAT": "go1.11"},
    ],
    ids=lambda env: "-".join(env) or "default",
)
def test_bad_pointers(tmp_path, env):
    """What the kernel, or libc, says to them is the program's to see. One thread waits all the time, and is woken."""
    bare = proc.run([HOSTILE / "pointers"]).ok()
    result = proc.traced([HOSTILE / "pointers"], tmp_path / "t.out", env=env).ok()
    assert result.stdout.splitlines() == bare.stdout.splitlines()
    assert "woken: 1" in bare.stdout and bare.stdout.count("EFAULT") > 200, "the rows do not do what they say"
    if "GOTRACE_START" not in env:
        assert "nothing lost" in result.stderr, result.stderr
        gotools.check_all(result.trace)


def test_fifo(tmp_path):
    fifo, copy = tmp_path / "fifo", tmp_path / "copy"
    os.mkfifo(fifo)
    with open(copy, "wb") as out:
        reader = proc.spawn(["cat", fifo], stdout=out)
        proc.traced([HOSTILE / "resources", "none"], fifo)
        assert reader.wait(10) == 0
    gotools.check_all(copy)


@pytest.mark.limit(90)
@pytest.mark.long
def test_fifo_whose_reader_stands_still(tmp_path):
    """Threads wait for the writer, but not for ever; nor does the end of the process. No message says that all is well."""
    fifo, program = tmp_path / "fifo", [PROGRAMS / "yields", "4", "100000"]
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    bare = proc.run(program)
    result = proc.traced(program, fifo, env=proc.EVERY_YIELD | {"GOTRACE_MAX_MEM": "1M"}, timeout=60)
    os.close(reader)
    assert (result.returncode, result.stdout) == (bare.returncode, bare.stdout)
    assert result.stderr == f"gotrace: {fifo}: could not be written in time; its end is missing\n"


def test_fifo_whose_reader_leaves(tmp_path):
    """Neither SIGPIPE nor a hang."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = proc.spawn(["head", "-c", "20", fifo], stdout=subprocess.DEVNULL)
    bare = proc.run([HOSTILE / "resources", "none"])
    result = proc.traced([HOSTILE / "resources", "none"], fifo)
    assert reader.wait(10) == 0
    assert (result.returncode, result.stdout) == (bare.returncode, bare.stdout)
    assert "Broken pipe" in result.stderr


@pytest.mark.parametrize("command", ["sh -c 'sleep 0.01; true'", "make -j4 -f jobs", "seq 20 | xargs -P 4 -n 1 echo done"])
def test_trees_of_helpers_leave_nothing(tmp_path, command):
    (tmp_path / "jobs").write_text("all: a b c d\na b c d:\n\t@echo made\n")
    bare = proc.run(["sh", "-c", command], cwd=tmp_path)
    result = proc.traced(["sh", "-c", command], tmp_path / "t.out", cwd=tmp_path)
    assert result.returncode == bare.returncode
    assert sorted(result.stdout.splitlines()) == sorted(bare.stdout.splitlines())
    assert [p.name for p in tmp_path.glob("t.out*")] in ([], ["t.out"])


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    """hostile/stages.c as libraries: the first is loaded as usual, the second with RTLD_DEEPBIND, the third again and
    again."""
    folder = tmp_path_factory.mktemp("stages")
    source = proc.ROOT / "test/hostile/stages.c"
    flags = ["-shared", "-fPIC", "-D_GNU_SOURCE"]
    return [proc.compile(source, folder / name, *flags, f'-DLIBRARY="{name}"') for name in ("plain", "deep", "again")]


def test_stages_of_life(tmp_path, libraries):
    """Threads, waits and allocations before our constructor and after our destructor, and wherever a loader is at
    work. What lies between the two is in the trace."""
    result = same("stages", tmp_path, *libraries)
    assert "nothing lost" in result.stderr
    gotools.check_all(result.trace)
    waits = [[f.func for f in e.stack] for e in gotools.parse(result.trace) if e.is_go("Running", "Waiting")]
    for stage in "construct main loaded thread_local_destructor first_key_destructor at_exit destruct".split():
        assert any(stage in functions for functions in waits), stage
    assert sum("accompany" in functions for functions in waits) > 10  # born before us
