"""Small programs, bare and traced: the same behaviour, and a trace that every reader accepts."""

import os
import signal
import subprocess
import time

import pytest

from lib import ALL, LIBRARY, PROGRAMS, ROOT, SOURCES, gotools, proc
from lib.seeds import seeded

SAME = ["dlerror", "kinds", "kinds contended", "oldcond", "iterates", "cancel", "cxx", "threads 100", "threads 1000 each", "yields 4 100"]
ENDS = ["return", "exit", "_exit", "_Exit", "quick_exit", "abort", "thread-exit", "last-thread", "last-destructor", "last-flushes", "SYS_exit", "SYS_exit_group", "unseen", "exec", "fexecve", "execveat", "SYS_execve", "SIGTERM", "SIGINT"]
KILLS = int(os.environ.get("KILL_RUNS", "4" if ALL else "2"))  # the claim in test/README.md is 100


def program(line):
    name, *args = line.split()
    return [PROGRAMS / name, *args]


def same(line, traced, **options):
    bare = proc.run(program(line), **options)
    result = traced(program(line), **options)
    assert (result.returncode, result.stdout) == (bare.returncode, bare.stdout), f"bare: {bare}\ntraced: {result}"
    return result


@pytest.mark.parametrize("line", SAME)
def test_same_behaviour(traced, line):
    result = same(line, traced)
    gotools.check_all(result.trace)
    assert "nothing lost;" in result.stderr


@pytest.mark.parametrize("how", ENDS)
def test_every_end_leaves_a_whole_file(traced, how):
    result = same(f"ends {how}", traced)
    gotools.check_all(result.trace)
    blocks = [e for e in gotools.parse(result.trace) if e.is_go("Running", "Waiting")]
    assert any(e.stack[0].func == "pthread_cond_wait" for e in blocks), "the sleeping thread is not in the trace"


@pytest.mark.parametrize("how", ["now", "manual"])
def test_our_thread_keeps_out_of_the_way(traced, how):
    """It is not where the program's first thread went, nor as urgent."""
    assert proc.run(program("placed")).ok().stdout == ""
    assert traced(program("placed"), env={"GOTRACE_START": how}).ok().stdout == f"{os.SCHED_OTHER} 1\n"


@pytest.mark.measured
def test_contended_mutexes_of_all_kinds(traced):
    result = traced(program("kinds contended")).ok()
    waits = gotools.pprof(result.trace)
    kinds = result.stdout.count(" wait 0")
    assert kinds >= 7, result.stdout  # the priority-protected one fails on machines without real-time scheduling
    assert waits.leaf_count()["pthread_mutex_lock"] == kinds
    assert waits.leaf_ns()["pthread_mutex_lock"] >= 0.95 * kinds * 10_000_000


def test_callables_of_std_thread(traced):
    result = traced(program("cxx")).ok()
    created = [e.transition_stack[0].func for e in gotools.parse(result.trace) if e.is_go("NotExist", "Runnable")]
    assert created == ["Worker::member_function()", "plain_function(int)", "main::{lambda()#1}", "Functor"]


def test_uncontended_locks_write_nothing(traced):
    result = traced(program("uncontended")).ok()
    events = gotools.parse(result.trace)
    assert not [e for e in events if e.reason == "sync" and e.stack[0].func != "pthread_join"]
    assert result.trace.stat().st_size < 4096


def test_thread_that_appears(traced):
    """No hook saw its creation; its first wait brings it into the trace, under the routine it runs."""
    result = same("early", traced)
    gotools.check_all(result.trace)
    events = gotools.parse(result.trace)
    (born,) = [e for e in events if e.is_go("NotExist", "Runnable")]
    assert born.transition_stack[0].func == "unseen"
    sleeps = [e for e in events if e.goid == born.goid and e.is_go("Running", "Waiting")]
    assert len(sleeps) == 5 and all(e.stack[0].func == "nanosleep" for e in sleeps)


def test_raw_clone(traced):
    """A thread that shares its parent's thread-local variables is still a goroutine of its own."""
    result = same("rawclone", traced)
    gotools.check_all(result.trace)
    events = gotools.parse(result.trace)
    sleeps = [e for e in events if e.is_go("Running", "Waiting")]
    assert len([e for e in sleeps if e.goid == 2]) == 4
    assert {e.g for e in sleeps if e.goid == 1} == {1}
    assert {f.func for e in sleeps if e.goid == 2 for f in e.stack} >= {"nanosleep", "cloned"}


def test_no_frame_of_ours(traced):
    sources = tuple(f"{place}{part}/" for place in ("", f"{ROOT}/") for part in ("preload", "encoder", "symbolize"))
    for line in ["cxx", "threads 10", "kinds contended"]:
        for e in gotools.parse(traced(program(line)).ok().trace):
            assert not [f for f in e.stack + e.transition_stack if f.file == str(LIBRARY) or f.file.startswith(sources)], e


@pytest.mark.long
def test_single_thread_fills_buffers(traced):
    result = same("sleeps 20000", traced)
    gotools.check_all(result.trace)
    waits = gotools.parse(result.trace)
    assert len([e for e in waits if e.is_go("Running", "Waiting")]) == 20000


@pytest.mark.limit(120)
def test_two_thousand_threads_at_once(traced):
    result = same("threads 2000", traced, timeout=60)
    gotools.check_all(result.trace)
    created = [e for e in gotools.parse(result.trace) if e.is_go("NotExist", "Runnable")]
    assert len(created) == 2000


@pytest.mark.limit(300)
@pytest.mark.long
def test_ten_million_events(traced):
    result = traced(["/usr/bin/env", "bash", "-c", 'exec "$0" 8 625000', *program("yields")[:1]], env=proc.EVERY_YIELD, timeout=120)
    result.ok()
    assert "nothing lost" in result.stderr, result.stderr
    for go in gotools.readers():
        gotools.check(result.trace, go=go, timeout=240)


@pytest.mark.measured
@pytest.mark.long
def test_memory_is_bounded(tmp_path):
    """The library's buffers: at most 256 MiB by default, whatever the program writes."""
    env = proc.traced_env(tmp_path / "t.out", proc.EVERY_YIELD)
    script = (
        "import os,resource,subprocess,sys;"
        "subprocess.run(sys.argv[1:], check=True);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    argv = ["/usr/bin/python3", "-c", script, "env", *[f"{k}={v}" for k, v in env.items()], *program("yields 8 300000")]
    result = proc.run(argv, timeout=50).ok()
    assert int(result.stdout.split()[-1]) < 320 * 1024


@pytest.mark.chance
@pytest.mark.limit(60 + 10 * KILLS)
def test_sigkill_leaves_all_complete_generations(tmp_path):
    chance = seeded(moments=True)
    for run in range(KILLS):
        trace = tmp_path / f"{run}.out"
        child = proc.spawn(program("yields 8 100000000"), env=proc.traced_env(trace, proc.EVERY_YIELD))
        proc.until(lambda: trace.exists() and trace.stat().st_size, child=child, pause=0.001)
        time.sleep(chance.uniform(0, 1.8))  # the random moment is the point
        child.send_signal(signal.SIGKILL)
        child.wait()
        for go in gotools.readers():
            # What a person opens: the profile pages need every complete generation and no more.
            argv = [*gotools.tool(go), "-pprof=sched", str(trace)]
            result = subprocess.run(argv, capture_output=True, timeout=60)
            assert result.returncode == 0, f"{proc.repeat(argv, {})}: {result.stderr}"
        trace.unlink()


@pytest.mark.measured
def test_the_first_generations_are_short(tmp_path):
    """So that one that is killed early has left all but little: what gotrace-limits(7) says of that."""
    env = proc.traced_env(tmp_path / "t.out", {"GOTRACE_DURATION": "2600ms"})
    child = proc.spawn([*program("control"), "idle"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert b"nothing lost" in child.stderr.readline()
    child.communicate()
    proc.kill_group(child)
    begins = [e.time / 1e9 for e in gotools.parse(tmp_path / "t.out") if e.kind == "Sync"]
    # A length counts from when its generation was ordered: without a CPU that is a few milliseconds before it begins.
    lengths = [end - begin for begin, end in zip(begins, begins[1:]) if end - begin > 0.05]
    assert len(lengths) >= 5
    for length, least in zip(lengths, [0.1, 0.2, 0.4, 0.8, 1]):
        assert 0.8 * least <= length < 2 * least, lengths


@pytest.fixture(scope="session")
def cut_short(tmp_path_factory):
    return proc.compile(SOURCES / "programs/cut_short.cc", tmp_path_factory.mktemp("cut") / "cut-short", compiler="g++")


def can_be_read(trace, format):
    readers = gotools.readers_of(format)
    for go in {readers[min(readers)], readers[max(readers)]}:
        gotools.check(trace, go=go)
    assert "threads: " in proc.run([ROOT / "scripts/gotrace", "info", trace]).ok().stdout


@pytest.mark.parametrize("format", gotools.some("go1.5"))
def test_a_file_that_exists_can_be_read(tmp_path, cut_short, format):
    """From the moment in which it appears, in the first process and in a child."""
    for run in range(KILLS):
        trace = tmp_path / f"{run}.out"
        argv = [cut_short, "900000"] if run % 2 else ["sh", "-c", '"$0" 900000; true', cut_short]
        child = proc.spawn(argv, env=proc.traced_env(trace, {"GOTRACE_FORMAT": format}))
        files = lambda: [path for path in tmp_path.glob(f"{run}.out*") if not path.name.endswith((".elf", ".new"))]
        found = proc.until(files, child=child, pause=0)
        proc.kill_group(child)
        can_be_read(found[0], format)


@pytest.mark.parametrize("format", gotools.some("go1.5", of=["go1.5", "go1.21", "go1.23", "go1.26"]))
def test_a_short_life_leaves_a_file_that_can_be_read_or_none(tmp_path, cut_short, format):
    left = 0
    for us in [10, 100, 300, 1000, 2000, 3000, 5000, 7000, 10000, 20000, 400000]:
        trace = tmp_path / f"{us}.out"
        proc.run([cut_short, us], env=proc.traced_env(trace, {"GOTRACE_FORMAT": format})).ok()
        if trace.exists():
            can_be_read(trace, format)
            left += 1
    assert left


def test_the_file_appears_also_without_proc(tmp_path):
    """Where nothing that has no name can be given one."""
    trace = tmp_path / "t.out"
    env = [f"{name}={value}" for name, value in proc.traced_env(trace).items()]
    script = 'mount -t tmpfs none /proc || exit 77; exec env "$@"'
    result = proc.run(["unshare", "-r", "-m", "sh", "-c", script, "sh", *env, *program("threads 4")])
    if result.returncode == 77 or "unshare" in result.stderr:
        pytest.skip("no mounts of one's own here")
    assert "nothing lost" in result.ok().stderr
    gotools.check_all(trace)
