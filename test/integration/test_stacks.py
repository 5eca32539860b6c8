"""`gotrace stacks`: what threads wait for (test/prog/asleep.c), deadlocks (deadlocks.c), and that nothing is left behind."""

import json
import os
import pathlib
import platform
import re
import resource
import shutil
import signal
import subprocess
import time

import pytest

from lib import LIBRARY, PROGRAMS, ROOT, SINGLE, SOURCES, proc
from lib.reports import ns_of, without_cancellation
from lib.seeds import seeded

GOTRACE = ROOT / "build/gotrace"
DEADLOCK = 3
RUNS = int(os.environ.get("STACKS_RUNS", "60"))
X86 = platform.machine() == "x86_64"
QUICK = 1.0  # seconds that finding a deadlock may take, in a process or a core file; it takes some 0.1 s


class Program:
    """A program that is to be looked at; `first` is what it says first."""

    def __init__(self, *argv, preload=False, **options):
        env = {"LD_PRELOAD": LIBRARY, "GOTRACE_OUTPUT": "/dev/null"} if preload else {}
        self.child = proc.spawn(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)
        self.pid = self.child.pid

    def line(self):
        return self.child.stdout.readline().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        proc.kill_group(self.child)


PAGE = (ROOT / "scripts/man/gotrace-json.5.md").read_text().split("# STACKS")[1]
MEMBERS = set(re.findall(r"`(\w+)`", PAGE)) | {"threads", "deadlocks", "waits"}


def explained(members):
    assert members.keys() <= MEMBERS, "gotrace-json(5) lacks some"
    return members


def stacks(*what, **options):
    """(exit status, what it says), as an object"""
    result = proc.run([GOTRACE, "stacks", "--json", *what], **options)
    assert result.returncode in (0, DEADLOCK) and not result.stderr, str(result)
    found = json.loads(result.stdout, object_hook=explained)
    assert found["version"] == 1 and (result.returncode == DEADLOCK) == bool(found["deadlocks"])
    return result, found


def await_stacks(pid, good):
    """Until what it says is good: threads need a moment to get where they stay."""
    end = time.monotonic() + 10
    while True:
        result, found = stacks(pid)
        if good(found) or time.monotonic() > end:
            return result, found
        time.sleep(0.02)


def state_of(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def await_states(pid, letter):
    """Waits until the kernel says of all its threads that they are in that state."""
    proc.until(lambda: {state_of(f"{pid}/task/{tid}") for tid in os.listdir(f"/proc/{pid}/task")} == {letter})


def threads_in(found):
    return {t["name"]: t for t in found["threads"]}


def functions(thread):
    return without_cancellation(f["function"] for f in thread["stack"])


# --- deadlocks


def expect(program, threads, kind="cycle"):
    """Finds the one deadlock of these threads, and nothing else."""
    tids = {int(program.line()) for _ in range(threads)}

    def is_whole(found):
        # The kernel refuses a lock that would close a ring. The others wait, but may be on their way back into their
        # wait when somebody has just looked at them.
        return any(kind == "refused" or d["kind"] != "refused" for d in found["deadlocks"])

    _, found = await_stacks(program.pid, is_whole)
    assert [d["kind"] for d in found["deadlocks"]] == [kind], found
    assert set(found["deadlocks"][0]["threads"]) == tids
    return found


preloads = pytest.mark.parametrize("preload", [False, True], ids=["bare", "preloaded"])


@pytest.mark.measured
@pytest.mark.needs("gcore")
def test_a_deadlock_is_found_quickly(core):
    with Program(PROGRAMS / "deadlocks", "ring", "mutex", 3) as program:
        expect(program, 3)
        for what in program.pid, core(program, "gcore"):
            assert stacks(what)[0].seconds < QUICK


def test_functions_without_names(tmp_path):
    """How many frames have none, and what to do, as reports about traces say."""
    said = r"\n\d+ % of the frames above are functions without names \(stripped\)\.\nBuild stripped with -g, do not strip it, and run it again\.\n$"
    stripped = tmp_path / "stripped"
    proc.run(["strip", "-o", stripped, PROGRAMS / "deadlocks"]).ok()
    for program, is_told in (stripped, True), (PROGRAMS / "deadlocks", False):
        with Program(program, "ring", "mutex", 3) as its:
            await_stacks(its.pid, lambda found: found["deadlocks"])
            text = proc.run([GOTRACE, "stacks", its.pid]).stdout
        assert bool(re.search(said, text)) == is_told and ("without names" in text) == is_told, text


@preloads
@pytest.mark.parametrize("n", [2, 3, 4, 5])
@pytest.mark.parametrize("kind", ["mutex", "recursive", "errorcheck", "adaptive", "robust", "shared", "inherit", "c11", "rwlock"])
def test_ring(kind, n, preload):
    with Program(PROGRAMS / "deadlocks", "ring", kind, n, preload=preload) as program:
        found = expect(program, n)
        threads = {t["tid"]: t for t in found["threads"]}
        ring = found["deadlocks"][0]["threads"]
        for tid, owner in zip(ring, ring[1:] + ring[:1]):
            wait = threads[tid]["waits"]
            assert wait["owner"] == owner and wait["owner_is"] == "thread" and not wait["timed"]
            assert wait["kind"] == ("rwlock" if kind == "rwlock" else "mutex")
            assert re.fullmatch(r"locks(\+\d+)?", wait["name"])
            assert "philosopher" in functions(threads[tid]) and threads[tid]["state"] == "waiting"


@preloads
@pytest.mark.parametrize("kind", ["mutex", "adaptive", "robust", "inherit", "c11"])
def test_waits_for_itself(kind, preload):
    with Program(PROGRAMS / "deadlocks", "self", kind, preload=preload) as program:
        expect(program, 1)


@preloads
@pytest.mark.parametrize("kind", ["mutex", "recursive", "adaptive", "inherit", "c11", "rwlock"])
def test_holder_has_ended(kind, preload):
    with Program(PROGRAMS / "deadlocks", "ended", kind, preload=preload) as program:
        found = expect(program, 1, "ended")
        (waits,) = (t["waits"] for t in found["threads"] if t["tid"] == program.pid)  # another one may not have its name yet
        assert waits["owner_is"] == "ended"


@preloads
@pytest.mark.parametrize("kind", ["mutex", "rwlock", "inherit"])
def test_join(kind, preload):
    with Program(PROGRAMS / "deadlocks", "join", kind, preload=preload) as program:
        expect(program, 2)


@pytest.mark.parametrize("case, threads, kind", [("file", 3, "all"), ("file_elsewhere", 1, "cycle"), ("files", 1, "cycle")])
def test_locks_on_files(tmp_path, case, threads, kind):
    """Circles of a mutex and a file's lock, in one process, through another one, and of two files' locks."""
    with Program(PROGRAMS / "deadlocks", case, "mutex" if case == "file" else "shared", cwd=tmp_path) as program:
        found = expect(program, threads, kind)
        text = proc.run([GOTRACE, "stacks", program.pid]).stdout
    (wait,) = [t["waits"] for t in found["threads"] if t["waits"].get("call") == "flock"]
    assert (wait["process"] == program.pid) == (case == "file")
    if case == "file":
        assert wait["may_be_owner"] in found["deadlocks"][0]["threads"] and "held by this process: it may be thread" in text
    else:
        assert wait["owner"] == program.pid and f"held by process {wait['process']} (deadlocks), which waits for thread {program.pid}" in text


@pytest.mark.parametrize("case, threads", [("file", 3), ("files", 1)])
def test_files_locks_that_may_be_released(tmp_path, case, threads):
    """By a thread that sleeps, or by another process that waits for none of this one's locks."""
    with Program(PROGRAMS / "deadlocks", case, "mutex", 3, cwd=tmp_path) as program:
        for _ in range(threads):
            program.line()
        _, found = await_stacks(program.pid, lambda found: [t for t in found["threads"] if (t["waits"] or {}).get("process")])
        assert not found["deadlocks"]
        assert [t["waits"]["process"] == program.pid for t in found["threads"] if "process" in (t["waits"] or {})] == [case == "file"]


@pytest.mark.parametrize("case, threads", [("files_alarm", 1), ("files_timer", 1), ("file_alarm", 3)])
def test_files_locks_with_a_timer(tmp_path, case, threads):
    """A signal ends the wait for a file's lock: that of alarm, or of a timer that the process has made."""
    with Program(PROGRAMS / "deadlocks", case, "mutex", cwd=tmp_path) as program:
        tids = {int(program.line()) for _ in range(threads)}
        # The last wait of the circle begins after the ids: so await all, and look once more.
        everyone = tids if case == "file_alarm" else {program.pid}
        for _ in range(2):
            _, found = await_stacks(program.pid, lambda found: {t["tid"] for t in found["threads"] if t["waits"]} == everyone and any("process" in t["waits"] for t in found["threads"]))
            assert not found["deadlocks"], found
    assert sum("process" in t["waits"] for t in found["threads"]) == 1, found


def test_a_files_lock_that_a_child_has(tmp_path):
    """The process that took it waits for a lock of this one, but has closed the file."""
    with Program(PROGRAMS / "deadlocks", "files_left", "mutex", cwd=tmp_path) as program:
        program.line()
        _, found = await_stacks(program.pid, lambda found: "taken_by" in (found["threads"][0]["waits"] or {}))
        text = proc.run([GOTRACE, "stacks", program.pid]).ok().stdout
    assert not found["deadlocks"] and "process" not in found["threads"][0]["waits"], found
    assert f", taken by process {found['threads'][0]['waits']['taken_by']} (deadlocks)\n" in text, text


def test_files_with_the_same_inode(tmp_path):
    """Of two file systems."""
    script = f"for i in 0 1; do mkdir $i && mount -t tmpfs none $i && touch $i/f && ln -s $i/f deadlocks.$i || exit; done; exec {PROGRAMS}/deadlocks files_apart mutex"
    if proc.run(["unshare", "-r", "-m", "true"]).returncode:
        pytest.skip("no mount namespaces here")
    with Program("unshare", "-r", "-m", "sh", "-c", script, cwd=tmp_path) as program:
        holders = [int(program.line()) for _ in range(2)]
        _, found = await_stacks(program.pid, lambda found: sum("process" in (t["waits"] or {}) for t in found["threads"]) == 2)
        inodes = {(tmp_path / "/proc" / str(program.pid) / f"cwd/{i}/f").stat().st_ino for i in range(2)}
    assert len(inodes) == 1 and {t["waits"]["process"] for t in found["threads"]} == set(holders), (found, holders)


def test_readers_wait_for_a_writer_that_joins_one():
    with Program(PROGRAMS / "deadlocks", "readers", "rwlock", 3) as program:
        tid = int(program.line())
        _, found = await_stacks(program.pid, lambda found: found["deadlocks"] and sum((t["waits"] or {}).get("kind") == "rwlock" for t in found["threads"]) == 3)
        (deadlock,) = found["deadlocks"]
        assert tid in deadlock["threads"] and len(deadlock["threads"]) == 2


@preloads
@pytest.mark.parametrize("what", ["mutex", "recursive", "shared", "readers"])
def test_cxx(what, preload):
    with Program(PROGRAMS / "deadlocks_cxx", what, preload=preload) as program:
        found = expect(program, 2)
        for t in found["threads"]:
            if t["tid"] in found["deadlocks"][0]["threads"] and what != "readers":
                assert "bank::accounts<std::" in t["waits"]["name"], t["waits"]
                assert any(f.startswith("(anonymous namespace)::transfer<std::") or "transfer<" in f for f in functions(t))


def test_statically_linked(tmp_path):
    program = proc.compile(ROOT / "test/prog/deadlocks.c", tmp_path / "static", "-static")
    with Program(program, "ring", "mutex", 3) as program:
        found = expect(program, 3)
        assert sum("philosopher" in functions(t) for t in found["threads"]) == 3


def test_text():
    with Program(PROGRAMS / "deadlocks", "ring", "mutex", 2) as program:
        expect(program, 2)
        text = proc.run([GOTRACE, "stacks", "--verbose", program.pid]).stdout
    first, second, third = re.split(r"\n\n", text)[:3]
    assert re.fullmatch(rf"process {program.pid} \(deadlocks\), 3 threads, none stopped for more than [\d.]+[mu]s", first)
    assert second.startswith("DEADLOCK: 2 threads wait for each other\nthread ")
    assert re.search(r"^thread \d+ \(deadlocks\): waits for mutex locks \(0x\w+\), held by thread \d+ \(deadlocks\)$", text, re.M)
    assert re.search(r"^    philosopher \(deadlocks\.c:\d+\)$", third, re.M)


# --- holders that no lock tells


def compiled_cxx(tmp_path, name, *flags, to=None):
    """The program of test/source/stacks/NAME.cc."""
    return proc.compile(SOURCES / f"stacks/{name}.cc", tmp_path / (to or name), "-std=c++17", *flags, compiler="g++")


@pytest.fixture
def fake_python(tmp_path):
    return proc.compile(SOURCES / "stacks/fake_python.c", tmp_path / "fake_python", "-rdynamic")


def waits_of(found):
    """What the threads but the first one wait for."""
    return [t["waits"] for t in found["threads"][1:]]


@pytest.mark.parametrize("case, threads, holders", [("circle", 2, 2), ("itself", 1, 0), ("condition", 2, 1)])
def test_blocks_of_locks_of_python(fake_python, case, threads, holders):
    """A thread does not hold a lock that it waits for, nor any in whose block it has called Condition.wait."""
    with Program(fake_python, case) as program:
        program.line()
        _, found = await_stacks(program.pid, lambda found: [w["kind"] for w in waits_of(found) if w] == ["mutex"] * threads)
        for _ in range(2):
            _, found = await_stacks(program.pid, lambda found: bool(found["deadlocks"]) == (case == "circle"))
    assert sum("owner" in w for w in waits_of(found)) == holders and bool(found["deadlocks"]) == (case == "circle"), found


@pytest.mark.parametrize("case", ["circle", "itself", "condition"])
def test_the_library_and_blocks_of_locks_of_python(fake_python, case):
    env = proc.traced_env("/dev/null", {"GOTRACE_HANG": "100ms"})
    child = proc.spawn([fake_python, case], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    child.stdout.readline()
    if case == "circle":
        assert "DEADLOCK" in child.stderr.readline()
    time.sleep(1.5)  # several times GOTRACE_HANG
    child.terminate()
    assert "DEADLOCK" not in child.communicate()[1]


def stacks_in_little_memory(pid):
    return json.loads(proc.run(["sh", "-c", 'ulimit -v 250000; exec "$@"', "sh", GOTRACE, "stacks", "--json", pid]).ok().stdout)


def test_many_threads_of_python_wait(fake_python):
    """The frames of all threads are read once, not once for each waiter."""
    with Program(fake_python, "many", 800) as program:
        program.line()
        found = stacks_in_little_memory(program.pid)
    assert sum(w["kind"] == "mutex" for w in waits_of(found) if w) > 700


def test_a_thread_with_many_states_of_python(fake_python):
    with Program(fake_python, "states", 60000) as program:
        program.line()
        assert len(stacks_in_little_memory(program.pid)["threads"]) == 2


@pytest.mark.parametrize("fake, n", [(False, 1900), (False, 2100), (True, 2100)])
def test_deep_recursion_of_python(fake_python, fake, n):
    """Its innermost functions, and that there are more."""
    argv = [fake_python, "deep", n] if fake else ["/usr/bin/python3", SOURCES / "stacks/deep.py", n]
    with Program(*argv) as program:
        program.line()
        _, found = await_stacks(program.pid, lambda found: functions(found["threads"][-1]).count("work") > 900)
    thread = found["threads"][-1]
    assert thread["cut"] and functions(thread).count("work") > 900, functions(thread)[-20:]


def test_two_local_statics():
    with Program(SINGLE / "stacks/statics") as program:
        found = expect(program, 2)
    waits = [t["waits"] for t in found["threads"] if t["tid"] in found["deadlocks"][0]["threads"]]
    assert {(w["kind"], w["name"]) for w in waits} == {("once", "guard variable for a()::one"), ("once", "guard variable for b()::one")}


def test_stdio():
    with Program("sh", "-c", f"exec {SINGLE / 'stacks/logs'} 2>&1") as program:
        found = expect(program, 2)
    assert {t["waits"]["kind"] for t in found["threads"]} == {"mutex", "stdio"}


def test_the_gil_and_a_join(tmp_path):
    """Who has the GIL joins a thread that waits for it; without the join, and where the GIL is given up meanwhile, there is none."""
    script = "import ctypes, sys; print('ready', flush=True); ctypes.{}(sys.argv[1]).join(ctypes.cast(ctypes.pythonapi.PyGILState_Ensure, ctypes.c_void_p))"
    library = proc.compile(SOURCES / "gil/join.c", tmp_path / "libjoin.so", "-shared", "-fPIC")
    with Program("/usr/bin/python3", "-c", script.format("PyDLL"), library) as program:
        assert program.line() == "ready"
        _, found = await_stacks(program.pid, lambda found: found["deadlocks"])
        assert [d["kind"] for d in found["deadlocks"]] == ["cycle"], found
        kinds = {t["tid"] == program.pid: (t["waits"]["kind"], t["waits"]["owner"]) for t in found["threads"]}
        other = next(t["tid"] for t in found["threads"] if t["tid"] != program.pid)
        assert kinds == {True: ("join", other), False: ("gil", program.pid)}


@pytest.mark.parametrize("what", ["constructor", "pool", "reader"])
def test_none_can_go_on(tmp_path, what):
    """Who would wake whom nobody knows; but none of them is left that could."""
    argv = [compiled_cxx(tmp_path, what)]
    if what == "constructor":
        argv.append(compiled_cxx(tmp_path, what, "-DPLUGIN", "-shared", "-fPIC", to="libplugin.so"))
    with Program(*argv) as program:
        _, found = await_stacks(program.pid, lambda found: found["deadlocks"])
        assert [d["kind"] for d in found["deadlocks"]] == ["all"], found
        assert sorted(found["deadlocks"][0]["threads"]) == sorted(t["tid"] for t in found["threads"]) and len(found["threads"]) == 2
        assert "DEADLOCK: none of the 2 threads can go on: " in proc.run([GOTRACE, "stacks", program.pid]).stdout
        if what == "reader":  # the first one, which alone does not want to write
            assert [t["waits"]["may_be_readers"] for t in found["threads"]] == [[program.pid]] * 2, found


@pytest.fixture(scope="module")
def pools(tmp_path_factory):
    return {level: compiled_cxx(tmp_path_factory.mktemp("pools"), "pools", level, to=f"pools{level}") for level in ("-O0", "-O2")}


# What leads from an optimized worker to its queue may be in a register only, which our library's frames can hide: man page.
@pytest.mark.parametrize("level, preload", [("-O0", False), ("-O2", False), ("-O0", True)])
@pytest.mark.parametrize("main", ["sleep", "root"])
def test_all_workers_wait_for_their_own_pool(pools, main, level, preload):
    """Whichever other threads live: the first one sleeps, or waits for a worker's task; one reads; a second pool is idle."""
    with Program(pools[level], main, preload=preload) as program:
        found = expect(program, 2, "pool")
        assert len(found["threads"]) - preload == 5
        text = proc.run([GOTRACE, "stacks", program.pid]).stdout
    assert "DEADLOCK: all workers wait for their own pool: 2 threads, for tasks that only they could execute\n" in text, text


@preloads
@pytest.mark.parametrize("what", ["free", "elsewhere", "promise", "helps"])
def test_another_thread_could_execute_it(pools, what, preload):
    """A third worker, when it is back; another pool's, when it is; the thread that has a promise; the first thread, which works in the pool."""
    with Program(pools["-O2"], what, preload=preload) as program:
        tids = {int(program.line()) for _ in range(2)}
        everyone = []

        def wait(found):
            everyone[:] = [t["tid"] for t in found["threads"] if t["waits"] and t["waits"]["kind"] == "future"]
            return len(everyone) == 2

        _, found = await_stacks(program.pid, wait)
        assert len(everyone) == 2 and (what == "helps" or set(everyone) == tids) and not found["deadlocks"], found


def test_a_pool_that_goes_on(pools):
    """Workers wait for tasks of their own pool, and of another one, all the time; always one is left that executes them."""
    waits = 0
    with Program(pools["-O2"], "busy") as program:
        for _ in range(RUNS // 6):
            result, found = stacks(program.pid)
            assert not found["deadlocks"], result.stdout
            waits += sum(t["waits"] is not None and t["waits"]["kind"] == "future" for t in found["threads"])
    assert waits > RUNS // 6, "nobody waited for anybody"


def test_core_of_a_pool(tmp_path, core, pools):
    with Program(pools["-O2"], "sleep", cwd=tmp_path) as program:
        live = expect(program, 2, "pool")
        path = core(program, "kernel")
    _, found = stacks(path)
    assert [(d["kind"], set(d["threads"])) for d in found["deadlocks"]] == [("pool", set(live["deadlocks"][0]["threads"]))]


@preloads
def test_which_thread_may_be_the_reader(tmp_path, preload):
    """The one that has the lock's address in the frames of callers: it waits below itself, since a writer came in between; or it is another one."""
    program = compiled_cxx(tmp_path, "readers", "-O0")
    for how in "below", "other":
        with Program(program, how, preload=preload) as program_of:
            reader = int(program_of.line())
            program_of.child.stdin.write("x")
            program_of.child.stdin.flush()

            def rwlocks(found):
                return [t for t in found["threads"] if t["waits"] and t["waits"]["kind"] == "rwlock"]

            # a thread that has not seen the writer yet may hold the lock twice for a moment
            _, found = await_stacks(program_of.pid, lambda found: sum("may_be_readers" in t["waits"] for t in rwlocks(found)) == 2)
            text = proc.run([GOTRACE, "stacks", program_of.pid]).ok().stdout
        assert len(rwlocks(found)) == 2 and (how == "below") == (reader in [t["tid"] for t in rwlocks(found)]), found
        assert [t["waits"]["may_be_readers"] for t in rwlocks(found)] == [[reader]] * 2, found
        assert text.count(f"held by 1 reader, which may be thread {reader} (readers)") == 2, text


# --- no deadlocks


@pytest.mark.limit(120)
@pytest.mark.parametrize("kind", ["mutex", "recursive", "errorcheck", "adaptive", "inherit", "robust", "shared", "timed", "c11", "rwlock"])
def test_slow_is_no_deadlock(kind):
    """Fifty programs whose threads wait for each other all the time, and always go on."""
    owners = 0
    for threads in 2, 3, 5, 8, 12:
        with Program(PROGRAMS / "deadlocks", "slow", kind, threads) as program:
            assert program.line() == "none"
            for _ in range(RUNS // 30):
                result, found = stacks(program.pid)
                assert result.returncode == 0, result.stdout
                owners += sum(t["waits"] is not None and "owner" in t["waits"] for t in found["threads"])
    assert owners > 20, "nobody waited for anybody"


@pytest.mark.parametrize("case", [("ring", "timed", 2), ("elsewhere", "shared"), ("elsewhere", "robust")])
def test_what_only_looks_like_one(case):
    with Program(PROGRAMS / "deadlocks", *case) as program:
        assert program.line() == "none"
        _, found = await_stacks(program.pid, lambda found: mutex_wait(found) and all(t["waits"] for t in found["threads"]))
        waits = [t["waits"] for t in found["threads"] if t["waits"]["kind"] == "mutex"]
        assert waits and not found["deadlocks"]
        assert all(w["timed"] or w["owner_is"] == "foreign" for w in waits), waits


def mutex_wait(found):
    return next((t["waits"] for t in found["threads"] if t["waits"] and t["waits"]["kind"] in ("mutex", "rwlock")), None)


@pytest.mark.skipif(not X86, reason="needs a register that only x86-64 tells")
@pytest.mark.parametrize("kind", ["mutex", "rwlock"])
def test_locks_held_over_a_fork(kind):
    """The thread that forked has its own still, as the child's first; another's nobody has; when the parent is gone, who knows."""
    with Program(PROGRAMS / "deadlocks", "heir", kind) as program:
        child = int(program.line())
        _, found = await_stacks(child, mutex_wait)
        wait = mutex_wait(found)
        assert (wait["owner_is"], wait["owner"]) == ("thread", child) and not found["deadlocks"], found
        program.child.kill()
        program.child.wait()
        _, found = stacks(child)
        assert mutex_wait(found)["owner_is"] == "forked" and not found["deadlocks"], found
    with Program(PROGRAMS / "deadlocks", "left", kind) as program:
        child = int(program.line())
        _, found = await_stacks(child, lambda found: found["deadlocks"])
        assert [(d["kind"], d["threads"]) for d in found["deadlocks"]] == [("ended", [child])], found
        assert mutex_wait(found)["owner_is"] == "left", found


def test_a_file_that_is_read_is_no_module():
    """As ours reads the executable in traced programs: whole, and so much memory as its zeros take would reach over libc."""
    with Program(SINGLE / "stacks/reads") as program:
        assert program.line() == "1"  # else this shows nothing
        _, found = await_stacks(program.pid, lambda found: functions(found["threads"][0])[:2] == ["pause", "main"])
        assert functions(found["threads"][0])[:2] == ["pause", "main"], found


def test_code_moved_into_anonymous_memory():
    """As for large pages: it is the file's code still, with its names and its way to unwind."""
    with Program(SINGLE / "stacks/moved") as program:
        assert program.line() == "moved"
        (thread,) = stacks(program.pid)[1]["threads"]
        names = [f["function"] for f in thread["stack"]]
        assert names[names.index("wait_in_moved_code") + 1] == "main" and names[-1] == "_start", thread


def test_a_mutex_on_a_stack_that_has_just_come_free():
    """As Chromium's threads have them: a waiter sleeps on until it is woken, and no kernel has refused it anything."""
    with Program(SINGLE / "stacks/frees") as program:

        def two_wait(found):
            return sum("wait_for" in functions(t) and t["waits"] is not None and t["waits"]["kind"] == "mutex" for t in found["threads"]) == 2

        _, found = await_stacks(program.pid, two_wait)
        assert two_wait(found)
        await_states(program.pid, "S")  # they go on with their calls, and would take a free mutex then
        program.child.stdin.write("\n")
        program.child.stdin.flush()
        assert program.line() == "free"
        _, found = stacks(program.pid)
        assert two_wait(found) and not found["deadlocks"], found
        assert {t["waits"]["owner_is"] for t in found["threads"] if t["waits"]["kind"] == "mutex"} == {"unknown"}


def test_a_lost_wake_up_stays_lost():
    """A wait for a word that has changed would end, were its call made again: the hang is there to be seen, by the next one, too."""
    with Program(SINGLE / "stacks/lost") as program:
        _, found = await_stacks(program.pid, lambda found: any("await_word" in functions(t) for t in found["threads"]))
        await_states(program.pid, "S")  # it goes on with its call
        program.child.stdin.write("\n")
        program.child.stdin.flush()
        assert program.line() == "free"
        for _ in range(5):
            _, found = stacks(program.pid)
            assert any("await_word" in functions(t) and t["waits"]["kind"] == "futex" for t in found["threads"]), found
        assert program.child.poll() is None


# --- core files


@pytest.fixture
def core(tmp_path):
    """A function that ends a program and gives the core file that it leaves, or one that gcore takes."""
    pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip()

    def take(program, how):
        if how == "gcore":
            proc.run(["gcore", "-o", tmp_path / "core", program.pid], timeout=60).ok()
            return tmp_path / f"core.{program.pid}"
        if pattern.startswith(("|", "/")) or resource.getrlimit(resource.RLIMIT_CORE)[1] != resource.RLIM_INFINITY:
            pytest.skip(f"no core files here: {pattern}")
        resource.prlimit(program.pid, resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        program.child.send_signal(signal.SIGABRT)
        program.child.wait(20)
        (path,) = tmp_path.glob(pattern.split("%")[0] + "*")
        return path

    return take


@pytest.mark.parametrize("how", ["kernel", pytest.param("gcore", marks=pytest.mark.needs("gcore"))])
@pytest.mark.parametrize("case", [("ring", "mutex", 3, 3), ("join", "rwlock", 2, 2), ("ring", "inherit", 3, 3)])
def test_core(tmp_path, core, how, case):
    *argv, threads = case
    with Program(PROGRAMS / "deadlocks", *argv, cwd=tmp_path) as program:
        live = expect(program, threads)
        path = core(program, how)
    _, found = stacks(path)
    assert [(d["kind"], set(d["threads"])) for d in found["deadlocks"]] == [("cycle", set(live["deadlocks"][0]["threads"]))]
    assert {t["tid"]: functions(t) for t in found["threads"]} == {t["tid"]: functions(t) for t in live["threads"]}
    assert {t["tid"]: t["waits"].get("name") for t in found["threads"]} == {t["tid"]: t["waits"].get("name") for t in live["threads"]}
    assert found["pid"] == program.pid and found["name"] == "deadlocks" and found["stopped_ns"] == 0


def test_core_of_a_program_that_is_elsewhere_now(tmp_path, core):
    shutil.copy(PROGRAMS / "deadlocks", tmp_path / "before")
    with Program(tmp_path / "before", "self", "mutex", cwd=tmp_path) as program:
        expect(program, 1)
        path = core(program, "kernel")
    (tmp_path / "before").rename(tmp_path / "after")
    assert "lock_mutex" not in proc.run([GOTRACE, "stacks", path]).stdout
    assert "lock_mutex" in proc.run([GOTRACE, "stacks", path, tmp_path / "after"]).stdout
    assert "asleep is not used: it is not what ran there" in proc.run([GOTRACE, "stacks", path, PROGRAMS / "asleep"]).stderr


@pytest.mark.chance
def test_damaged_core(tmp_path, core):
    """Cut, and with bytes changed: an answer or a message, no crash."""
    with Program(PROGRAMS / "deadlocks", "self", "mutex", cwd=tmp_path) as program:
        expect(program, 1)
        whole = core(program, "kernel").read_bytes()
    rng = seeded("FUZZ_FIRST", 7)
    for i in range(60):
        bad = bytearray(whole[: rng.choice([64, 500, 4000, 20000, len(whole)])])
        for _ in range(rng.randrange(40)):
            bad[rng.randrange(min(len(bad), 8000))] = rng.randrange(256)
        (tmp_path / "bad").write_bytes(bad)
        assert proc.run([GOTRACE, "stacks", tmp_path / "bad"]).returncode in (0, 1, DEADLOCK), i


# --- every wait


@pytest.fixture
def asleep():
    with Program(PROGRAMS / "asleep") as program:
        assert program.line() == "ready"
        yield program
        if program.child.poll() is None:
            ended(program)  # killed, it would leave its semaphores and messages to the system


def ended(program):
    """What its threads say when they go on before the end."""
    program.child.stdin.close()
    said = program.child.stdout.read()
    assert program.child.wait(10) == 0
    return said


EXPECTED = {
    "mutex": {"kind": "mutex", "name": "cache_lock", "owner_is": "thread"},
    "rdlock": {"kind": "rwlock", "name": "written", "owner_is": "thread"},
    "wrlock": {"kind": "rwlock", "name": "written", "owner_is": "thread"},
    "wrlock readers": {"kind": "rwlock", "name": "read_by", "owner_is": "readers", "readers": 1},
    "cond": {"kind": "cond", "name": "news"},
    "semaphore": {"kind": "semaphore", "name": "slots"},
    "barrier": {"kind": "barrier", "name": "gate"},
    "once": {"kind": "once", "name": "once"},
    "once runs": {"kind": "sleep", "ns": 3600 * 10**9},
    "join": {"kind": "join", "owner_is": "thread"},
    "futex": {"kind": "futex", "name": "word", "owner_is": "unknown"},
    "poll": {"kind": "poll"},
    "select": {"kind": "poll"},
    "epoll": {"kind": "poll", "timed": False},
    "epoll timed": {"kind": "poll", "timed": True, "ns": 3600 * 10**9},
    "accept": {"kind": "descriptor", "call": "accept"},
    "recv": {"kind": "descriptor", "call": "recvfrom"},
    "read": {"kind": "descriptor", "call": "read"},
    "inotify": {"kind": "descriptor", "call": "read"},
    "flock": {"kind": "descriptor", "call": "flock"},
    "sleep": {"kind": "sleep", "ns": 3600 * 10**9, "timed": True},
    "sleep left": {"kind": "sleep", "timed": True},
    "child": {"kind": "child"},
    "semop": {"kind": "call", "timed": False},
    "semtimedop": {"kind": "call", "timed": True},
    "msgrcv": {"kind": "call", "call": "msgrcv"},
    "sigtimedwait": {"kind": "call", "call": "rt_sigtimedwait", "timed": True},
    "sigwaitinfo": {"kind": "call", "call": "rt_sigtimedwait", "timed": False},
}
DESCRIPTORS = {
    "poll": ["pipe:", "unix socket"],
    "select": ["pipe:"],
    "epoll": ["anon_inode:[eventpoll]", "unix socket"],
    "accept": ["tcp 127.0.0.1:"],
    "recv": ["unix socket"],
    "read": ["pipe:"],
    "inotify": ["anon_inode:inotify"],
    "flock": ["/tmp/asleep-"],
}


def check_waits(found, owner, but=()):
    threads = threads_in(found)
    for name, expected in EXPECTED.items():
        if name in but:
            continue
        wait = threads[name]["waits"]
        assert expected.items() <= wait.items(), (name, wait)
        if wait.get("owner_is") == "thread":
            assert wait["owner"] == (threads["mutex"]["tid"] if name == "join" else owner)
        begins = DESCRIPTORS.get(name, [])
        assert len(begins) == 0 or [fd["what"][: len(b)] for fd, b in zip(wait["fds"], begins)] == begins
    left = threads["sleep left"]["waits"]
    assert "ns" not in left and 0 < left["left_ns"] <= 3600 * 10**9, left
    assert threads["spin"]["state"] == "running" and threads["spin"]["waits"] is None
    assert "do_spin" in functions(threads["spin"])


@pytest.mark.limit(120)
@pytest.mark.long
@pytest.mark.alone
def test_every_wait_and_no_interruption(asleep):
    """The calls go on, and say the same, however often they are looked at."""
    for run in range(RUNS):
        _, found = stacks(asleep.pid)
        if run in (0, 1, RUNS - 1):
            check_waits(found, asleep.pid)
    assert ended(asleep) == ""


def test_signals_get_through():
    """Those that arrive meanwhile run their handlers, each once, and end what they should end."""
    with Program(SINGLE / "stacks/handles") as program:
        assert program.line() == "ready"
        looking = proc.spawn(["sh", "-c", f"while {GOTRACE} stacks {program.pid}; do :; done"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for i in range(1, 1001):
            os.kill(program.pid, signal.SIGUSR1)
            assert program.line() == str(i)
        assert program.line() == "1000 1000 0"
        proc.kill_group(looking)


SIZE, TIMEOUT_MS = 300_000, 3_000  # of halfway.c
PARTS = ["write", "writev", "send", "sendmsg", "sendfile", "recv", "raw"]
TIMED_OUT = {"nanosleep": 0, "poll": 0, "ppoll": 0, "select": 0, "pselect": 0, "epoll": 0, "sigtimedwait": -1, "semtimedop": -1, "recv timed": -1}


@pytest.mark.measured
def test_calls_with_something_half_done():
    """Looked at all the time: each moves all that it is to move, and waits no longer than it is to wait."""
    looks, whole = 0, set()
    with Program(PROGRAMS / "halfway") as program:
        assert program.line() == "ready"
        end = time.monotonic() + 4 * TIMEOUT_MS / 1000
        while program.child.poll() is None and time.monotonic() < end:
            looked = proc.run([GOTRACE, "stacks", "--json", program.pid])
            if "has ended" in looked.stderr:  # since poll
                break
            found = json.loads(looked.stdout)
            looks += 1
            for name, t in threads_in(found).items():
                if t["waits"] and t["stack"] and not t["cut"]:
                    whole |= {name} if f"do_{name.replace(' ', '_')}" in functions(t) and "run" in functions(t) else set()
        said = dict(line.split(": ") for line in program.child.communicate(timeout=30)[0].splitlines())
    results = {name: list(map(int, text.split())) for name, text in said.items()}
    assert {name: results[name][0] for name in PARTS} == dict.fromkeys(PARTS, SIZE)
    timed = {name: results[name] for name in TIMED_OUT}
    assert {name: it[0] for name, it in timed.items()} == TIMED_OUT and all(it[1] in (0, 11) for it in timed.values()), timed
    assert all(TIMEOUT_MS - 10 < it[2] < 2 * TIMEOUT_MS for it in timed.values()), timed
    assert looks > 2
    assert not X86 or whole >= {*PARTS, *TIMED_OUT}, {*PARTS, *TIMED_OUT} - whole


def test_two_looks_at_a_futex_with_a_timeout():
    """By syscall(2), as Rust and Qt make it: the kernel goes on with it after another one's stop, as what says nothing of it."""
    with Program(SINGLE / "stacks/futex") as program:

        def waiting(found):
            return next((t["waits"] for t in found["threads"] if "wait" in functions(t) and t["waits"]), None)

        await_stacks(program.pid, waiting)
        for _ in range(3):
            program.child.send_signal(signal.SIGSTOP)
            await_states(program.pid, "T")
            program.child.send_signal(signal.SIGCONT)
            await_states(program.pid, "S")
            _, found = stacks(program.pid)
            wait = waiting(found)
            assert (wait["kind"], wait["call"], wait["name"], wait["timed"]) == ("futex", "futex", "word", True), found


# --- what is left behind


@pytest.mark.alone
def test_what_was_stopped_stays_stopped(asleep):
    asleep.child.send_signal(signal.SIGSTOP)
    await_states(asleep.pid, "T")
    for _ in range(20):
        _, found = stacks(asleep.pid)
        assert {t["state"] for t in found["threads"]} == {"stopped"}
        assert threads_in(found)["mutex"]["waits"]["name"] == "cache_lock"
    time.sleep(0.05)  # nothing may happen meanwhile
    assert state_of(asleep.pid) == "T"
    asleep.child.send_signal(signal.SIGCONT)
    proc.until(lambda: state_of(asleep.pid) == "S")


@pytest.mark.chance
@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_killed_in_the_middle(asleep, sig):
    """At any time: all threads go on, and can be looked at again. With SIGKILL some calls may have failed with EINTR."""
    rng = seeded(moments=True)
    for _ in range(RUNS // 3):
        child = proc.spawn([GOTRACE, "stacks", asleep.pid], stdout=subprocess.DEVNULL)
        time.sleep(rng.uniform(0, 0.02))
        child.send_signal(sig)
        child.wait(10)
        proc.kill_group(child)
    stats = [task / "stat" for task in pathlib.Path(f"/proc/{asleep.pid}/task").iterdir()]
    proc.until(lambda: {stat.read_text().rpartition(")")[2].split()[0] for stat in stats} <= {"S", "R"})
    assert re.search(r"^TracerPid:\t0$", pathlib.Path(f"/proc/{asleep.pid}/status").read_text(), re.M)
    _, found = stacks(asleep.pid)
    over = EXPECTED.keys() - threads_in(found).keys()
    check_waits(found, asleep.pid, but=over)
    said = ended(asleep).splitlines()
    assert {line.partition(":")[0] for line in said} == over and all("Interrupted" in line for line in said), said
    assert sig == signal.SIGKILL or not said


@pytest.mark.measured
@pytest.mark.limit(120)
@pytest.mark.parametrize(("threads", "looks"), [(200, 10), (3000, 2)])
@pytest.mark.long
def test_many_threads_stand_still_for_a_moment_each(threads, looks):
    with Program(PROGRAMS / "deadlocks", "crowd", "mutex", threads) as program:
        assert program.line() == "none"
        times = []
        for _ in range(looks):
            _, found = stacks(program.pid)
            assert len(found["threads"]) == threads + 1
            times.append(found["stopped_ns"] / 1e6)
        text = proc.run([GOTRACE, "stacks", program.pid]).stdout
    assert min(times) < 10, times
    assert re.search(rf"^{threads} threads, thread \d+ .*: waits for condition ", text, re.M), text[:500]
    assert text.split("\n\n")[1].startswith(f"DEADLOCK: none of the {threads + 1} threads can go on: ")


# --- what cannot be looked at


def refused(*argv, user=None):
    result = subprocess.run([GOTRACE, "stacks", *map(str, argv)], capture_output=True, text=True, user=user, timeout=20)
    assert result.returncode == 1 and not result.stdout, result
    return result.stderr


def test_no_such_process(tmp_path):
    (tmp_path / "text").write_text("no core")
    assert refused(999999999) == "gotrace: there is no process 999999999\n"
    assert "No such file" in refused(tmp_path / "none")
    assert "neither a process id nor a core file" in refused(tmp_path / "text")
    assert "neither a process id nor a core file" in refused(tmp_path)
    assert proc.run([GOTRACE, "stacks"]).returncode == 2
    assert proc.run([GOTRACE, "stacks", ""]).returncode == 2
    for none in 0, 2**32 + os.getpid(), 2**64 + os.getpid():
        assert refused(none) == f"gotrace: there is no process {none}\n"


@pytest.mark.needs("strace")
def test_a_debugger_is_there_already(asleep):
    tracer = proc.spawn(["strace", "-f", "-o", "/dev/null", "-p", asleep.pid], stderr=subprocess.DEVNULL)
    proc.until(lambda: "TracerPid:\t0\n" not in pathlib.Path(f"/proc/{asleep.pid}/status").read_text(), child=tracer)
    assert f"is being debugged already, by process {tracer.pid} (strace)" in refused(asleep.pid)
    proc.stop(tracer)


NOBODY = 65534
root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
reachable = all(folder.stat().st_mode & 0o001 for folder in [ROOT, *ROOT.parents])
of_others = pytest.mark.skipif(not reachable, reason="other users cannot reach this checkout")


@root
@of_others
def test_another_users(asleep):
    assert "is another user's; try as root" in refused(asleep.pid, user=NOBODY)


@root
@of_others
def test_any_user_can_look_at_their_own():
    with Program(PROGRAMS / "deadlocks", "ring", "mutex", 2, user=NOBODY) as program:
        expect(program, 2)
        result = subprocess.run([GOTRACE, "stacks", str(program.pid)], capture_output=True, text=True, user=NOBODY, timeout=20)
        assert result.returncode == DEADLOCK and result.stdout.count("    philosopher (deadlocks.c:") == 2


@root
@of_others
def test_one_that_was_roots():
    with Program(SINGLE / "stacks/changed") as program:
        assert program.line() == "ready"
        assert "has or had more privileges than its user" in refused(program.pid, user=NOBODY)


def test_a_program_that_was_deleted(tmp_path):
    shutil.copy(PROGRAMS / "deadlocks", tmp_path / "gone")
    with Program(tmp_path / "gone", "ring", "mutex", 2) as program:
        (tmp_path / "gone").unlink()
        assert sum("philosopher" in functions(t) for t in expect(program, 2)["threads"]) == 2


@pytest.mark.measured
@pytest.mark.parametrize("pointers", [False, True], ids=["plain", "frame pointers"])
def test_a_thread_that_no_signal_wakes(tmp_path, pointers):
    """Its stack is that of its call, and the others do not wait for it; it goes on when it can."""
    flag = "-fno-omit-frame-pointer" if pointers else "-fomit-frame-pointer"
    both = [("uninterruptible", True), ("waiting", True)]
    (line,) = (n for n, text in enumerate((SOURCES / "stacks/vforks.c").read_text().splitlines(), 1) if "vfork()" in text)
    with Program(proc.compile(SOURCES / "stacks/vforks.c", tmp_path / "vforks", flag)) as program:
        assert program.line() == "ready"
        _, found = await_stacks(program.pid, lambda found: [(t["state"], bool(t["waits"])) for t in found["threads"]] == both)
        deep, idle = found["threads"]
        assert deep["waits"]["call"] == "vfork"
        assert not X86 or (functions(deep)[:2] == ["vfork", "main"] and deep["stack"][1]["line"] == line), deep
        assert not X86 or deep["cut"] == pointers == (functions(deep)[-1] == "main"), deep
        assert idle["waits"]["call"] in ("pause", "ppoll") and "idle" in functions(idle)
        assert found["stopped_ns"] < 100e6
        assert program.child.communicate("x", timeout=10)[0] == "on\n"
        assert program.child.returncode == 0


def test_kernel_threads():
    if not pathlib.Path("/proc/2/comm").exists() or "VmSize" in pathlib.Path("/proc/2/status").read_text():
        pytest.skip("no kernel thread to be seen here")
    assert refused(2) == "gotrace: process 2 is no program: it is the kernel's\n"


def test_one_that_has_ended():
    child = proc.spawn(["true"])
    proc.until(lambda: state_of(child.pid) == "Z")
    assert refused(child.pid) == f"gotrace: process {child.pid} has ended; its parent has not asked for its status yet\n"


@root
@pytest.mark.needs("setpriv")
def test_a_root_that_may_not(asleep):
    argv = ["setpriv", "--bounding-set=-sys_ptrace", GOTRACE, "stacks", asleep.pid]
    result = proc.run(argv)
    assert result.returncode == 1 and "may not be debugged even by root here" in result.stderr, str(result)


@root
@pytest.mark.needs("setpriv", "unshare")
@pytest.mark.parametrize(("scope", "advice"), [(1, "try as root, or set it to 0 (sysctl(8))"), (3, "until the next boot")])
def test_yama(tmp_path, scope, advice):
    """Where its switch is what forbids it. This kernel may not have that: a process that nobody may debug, and the file."""
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    kernel = "/proc/sys/kernel"
    script = f'mount -t tmpfs none {kernel} && mkdir {kernel}/yama && echo {scope} > {kernel}/yama/ptrace_scope && exec "$0" "$@"'
    confined = ["unshare", "--mount", "sh", "-c", script]
    if proc.run([*confined, "true"]).returncode:
        pytest.skip("no mount namespace may be made here")
    built = pathlib.Path(shutil.copy(SINGLE / "stacks/forbids", tmp_path))
    gotrace = pathlib.Path(shutil.copy(GOTRACE, tmp_path))  # where that user may come
    for path in (built, gotrace, *list(tmp_path.parents)[:-2], tmp_path):
        path.chmod(path.stat().st_mode | 0o055)
    with Program(*user, built) as program:
        assert program.line() == "ready"
        result = proc.run([*confined, *user, gotrace, "stacks", program.pid])
    says = f"may not be debugged: kernel.yama.ptrace_scope is {scope}"
    assert result.returncode == 1 and says in result.stderr and advice in result.stderr, str(result)


def test_the_first_thread_has_ended():
    """Then /proc has files and memory by the others only."""
    with Program(SINGLE / "stacks/leaves") as program:
        proc.until(lambda: state_of(program.pid) == "Z")
        _, found = await_stacks(program.pid, lambda found: found["threads"][0]["waits"])
        (thread,) = found["threads"]
        assert "reads" in functions(thread) and not thread["cut"]
        assert thread["waits"]["call"] == "read" and thread["waits"]["fds"][0]["what"].startswith("pipe:")


@pytest.mark.chance
@pytest.mark.limit(120)
@pytest.mark.long
def test_executing_programs_all_the_time():
    """From a thread that becomes the first one; the kernel does that when we have taken note of all others' end."""
    with Program(SINGLE / "stacks/becomes") as program:
        for _ in range(RUNS // 3):
            stacks(program.pid)
        assert program.child.poll() is None


def test_executing_a_program_for_ever():
    """As another debugger takes no note of a thread's end: no other process can stop that one, but it can be looked at."""
    with Program(SINGLE / "stacks/hinders") as program:
        child, tid = map(int, program.line().split())
        proc.until(lambda: state_of(f"{child}/task/{tid}") == "Z")
        _, found = stacks(child)
        assert "execve" in {t["waits"]["call"] for t in found["threads"] if t["waits"]}, found


# --- what others chose


@pytest.mark.skipif(not X86, reason="has instructions of x86-64")
def test_code_made_at_run_time(tmp_path):
    """As of a compiler in a JVM: nothing tells who called that, and the stack says so."""
    with Program(proc.compile(SOURCES / "stacks/makes.c", tmp_path / "makes", "-fno-optimize-sibling-calls")) as program:
        _, found = await_stacks(program.pid, lambda found: "waits" in functions(found["threads"][0]))
        (thread,) = found["threads"]
        assert functions(thread)[:2] == ["pause", "waits"] and re.fullmatch(r"0x\w+", functions(thread)[2])
        assert len(functions(thread)) == 3 and thread["cut"]
        assert re.search(r"^    waits .*\n    0x\w+\n    \.\.\. \(nothing tells how it goes on\)$", proc.run([GOTRACE, "stacks", program.pid]).ok().stdout, re.M)


def test_sockets_in_no_table():
    with Program(SINGLE / "stacks/sockets") as program:
        _, found = await_stacks(program.pid, lambda found: found["threads"][0]["waits"] and found["threads"][0]["waits"]["kind"] == "poll")
        assert [fd["what"] for fd in found["threads"][0]["waits"]["fds"]] == ["netlink socket", "udp socket"]


def test_json_whatever_names_there_are(tmp_path):
    program = proc.compile(SOURCES / "stacks/names.c", tmp_path / 'a "b"\tc\\')
    for name in b"\"\\\x01\x1b[31m\n\t", b"\xff\xfe\xc3(", b"\xed\xa0\x80\xf8\x88", "grün €".encode(), b"}":
        with Program(program, os.fsdecode(name)) as running:
            assert running.line() == "ready"
            _, found = stacks(running.pid)
            text = proc.run([GOTRACE, "stacks", running.pid]).ok().stdout
        assert found["threads"][0]["stack"][-1]["module"].endswith('a "b"\tc\\')
        assert "\x1b" not in text and "\x01" not in text
        if name.decode(errors="replace") == "grün €":
            assert found["threads"][0]["name"] == "grün €"


def test_no_name_forges_a_line(tmp_path):
    """A path of a descriptor and the name of a function may have a newline; the report's lines are its own."""
    program = proc.compile(SOURCES / "stacks/forged.c", tmp_path / "forger", "-O0")
    program.write_bytes(program.read_bytes().replace(b"forged_DEADLOCK", b"forged\nDEADLOCK"))
    fifo = tmp_path / "fifo\nDEADLOCK: thread 1"
    os.mkfifo(fifo)
    with open(fifo, "r+b", buffering=0) as stdin:
        child = proc.spawn([program], stdin=stdin, stdout=subprocess.PIPE, text=True)
        assert child.stdout.readline() == "ready\n"
        look = lambda: proc.run([GOTRACE, "stacks", child.pid]).ok().stdout
        text = proc.until(lambda: "forged" in (text := look()) and text)  # it is on its way there
        proc.kill_group(child)
    assert "fifo?DEADLOCK: thread 1" in text and "forged?DEADLOCK" in text, text
    assert not [line for line in text.splitlines() if line.startswith("DEADLOCK")], text


@pytest.mark.needs("unshare")
def test_another_pid_and_mount_namespace(tmp_path):
    """Owners are numbered as the process numbers them, files are its own."""
    if os.geteuid() != 0:
        pytest.skip("namespaces need root")
    shutil.copy(PROGRAMS / "deadlocks", tmp_path / "deadlocks")
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    script = f"mount -t tmpfs none {hidden} && cp {tmp_path}/deadlocks {hidden} && exec {hidden}/deadlocks ring mutex 3"
    with Program("unshare", "--pid", "--fork", "--mount", "sh", "-c", script) as outer:
        inside = sorted(int(outer.line()) for _ in range(3))
        assert inside[0] < 20
        children = pathlib.Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text().split()
        _, found = await_stacks(children[0], lambda found: found["deadlocks"])
        assert len(found["deadlocks"][0]["threads"]) == 3
        assert sum("philosopher" in functions(t) for t in found["threads"]) == 3


def test_without_libdw():
    """Says what is missing, and the other commands work."""
    if os.geteuid() != 0:
        pytest.skip("hiding a library needs root")
    (path,) = set(re.findall(r"/\S*/libdw\.so\.1", proc.run(["ldconfig", "-p"]).ok().stdout))
    script = f"mount --bind /dev/null {os.path.realpath(path)} && {GOTRACE} --version && exec {GOTRACE} stacks $$"
    result = proc.run(["unshare", "--mount", "sh", "-c", f"sleep 9 >/dev/null 2>&1 & P=$!; {script.replace('$$', '$P')}"])
    assert result.returncode == 1 and "stacks needs libdw.so.1" in result.stderr, str(result)


@pytest.mark.measured
def test_what_the_recorder_knows(tmp_path):
    """Since when a thread waits, and what it did before; and nothing stays of that."""
    env = proc.traced_env(tmp_path / "t.out", {"GOTRACE_RING": "1M"})
    child = proc.spawn([PROGRAMS / "incidents", "deadlock"], env=env, stderr=subprocess.DEVNULL)
    proc.until(lambda: "DEADLOCK" in proc.run([GOTRACE, "stacks", child.pid]).stdout)
    time.sleep(0.3)
    before = set(pathlib.Path("/tmp").glob("gotrace-*"))
    result = proc.run([GOTRACE, "stacks", "--last=4", child.pid])
    _, found = stacks("--last=4", child.pid)
    proc.stop(child)
    assert result.returncode == 3 and set(pathlib.Path("/tmp").glob("gotrace-*")) <= before
    stuck = re.findall(r"waits for mutex accounts.*\n(?:    .*\n)*?    sync for (\S+)\n    \S+ ago: sleep for (\S+): usleep <- transfer \(incidents.c:\d+\)\n", result.stdout)
    assert len(stuck) == 2 and all(ns_of(since) > 0.3e9 and ns_of(slept) > 1e6 for since, slept in stuck), result.stdout
    recorded = [t["recorded"] for t in found["threads"] if t["tid"] in found["deadlocks"][0]["threads"]]
    assert len(recorded) == 2 and all(it["kind"] == "sync" and it["ns"] > 0.3e9 for it in recorded), recorded
    last = [it["last"][0] for it in recorded]
    assert all(it["kind"] == "sleep" and it["ns"] > 1e6 and it["place"].startswith("usleep <- transfer (incidents.c:") for it in last), last
    refused = proc.run([GOTRACE, "stacks", "--last=4", os.getpid()])
    assert refused.returncode == 1 and not refused.stdout, refused
