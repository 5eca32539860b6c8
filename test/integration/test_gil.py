"""Python's interpreter lock: threads of Python wait for it, and programs know how long, and for which thread."""

import json
import re
import shutil
import time

import pytest
from test_python import command, python

from lib import ROOT, SOURCES, gotools, proc

GOTRACE = ROOT / "build/gotrace"
GIL = SOURCES / "gil"
FIXTURES = command, python

WAITS = """
SELECT waits.kind, waits.ns, waits.delay_ns, locks.name AS lock, holders.name AS holder, wakers.name AS waker FROM waits
LEFT JOIN locks ON locks.id = waits.lock_id JOIN threads ON threads.id = waits.thread_id
LEFT JOIN threads AS holders ON holders.id = waits.holder_id LEFT JOIN threads AS wakers ON wakers.id = waits.waker_id
WHERE threads.name = 'napper' ORDER BY waits.begin_ns
"""
HOLDS_OF = """
SELECT holds.ns, threads.name AS thread, function FROM holds
JOIN locks ON locks.id = holds.lock_id JOIN threads ON threads.id = holds.thread_id WHERE locks.name = '{}'
"""


def ask(trace, statement):
    return json.loads(proc.run([GOTRACE, "sql", "--json", trace, statement]).ok().stdout)


def naps_of(waits):
    """For each time it slept: what it waited for the lock after it, and how late it was for that or without a CPU."""
    naps = []
    for wait in waits:
        if wait["kind"] == "sleep":
            naps.append(([], [wait["delay_ns"] or 0]))
        elif naps and wait["lock"] == "GIL":
            naps[-1][0].append(wait)
            naps[-1][1].append(wait["ns"] + (wait["delay_ns"] or 0))
    return [(gil, sum(late) / 1e9) for gil, late in naps]


def test_which_thread_has_it(command, traced):
    """However often a thread has asked for the lock, it waits once, until the holder releases the lock."""
    result = traced([*command, GIL / "keeps.py"], timeout=60).ok()
    late = [float(s) for s in result.stdout.splitlines()[0].split()]
    naps = naps_of(ask(result.trace, WAITS))
    found = sorted(naps, key=lambda nap: nap[1])[-len(late) :]
    # Beside a busy machine it is late in other ways too: before it reads the clock, or without a CPU within its turn.
    without = [s - ours for s, (_, ours) in zip(sorted(late), found)]
    assert len(late) == len(found) == 5 and min(without) > -0.001 and sorted(without)[2] < 0.01, (late, naps)
    waits = [wait for gil, _ in naps for wait in gil if wait["ns"] > 15e6]
    assert len(waits) >= 3 and sum(len(gil) == 1 for gil, _ in found) >= 3, naps
    assert all(w["holder"] == "keeper" for w in waits) and sum(w["waker"] != "keeper" for w in waits) <= 1, waits
    holds = ask(result.trace, HOLDS_OF.format("GIL"))
    assert sum(h["thread"] == "keeper" and h["ns"] > 25e6 for h in holds) >= 4, holds
    assert {h["function"] for h in holds if h["thread"] == "napper"} <= {"nap", "", None}, holds


def test_exit_line_names_it(command, traced):
    """With waits in which a thread asks for it again and again."""
    result = traced([*command, GIL / "keeps.py"], timeout=60, env={"GOTRACE_QUIET": "0"}).ok()
    waits = [wait["ns"] for gil, _ in naps_of(ask(result.trace, WAITS)) for wait in gil if wait["ns"] > 15e6]
    said = re.search(r"; threads waited ([\d.]+) s in all for GIL in nap \(keeps.py:\d+\); ", result.stderr)
    assert said and len(waits) >= 3 and float(said[1]) > sum(waits) / 1e9 - 0.002, (result.stderr, waits)


TAKERS = """
SELECT function, count(*) AS n FROM holds JOIN locks ON locks.id = holds.lock_id
WHERE locks.name LIKE '0x%' AND holds.ns > 1000000 GROUP BY 1
"""


def test_takers_of_locks(python, traced):
    """A lock is taken in the program's function, not in the interpreter's, whether it was free or had to be waited for."""
    trace = traced([python, GIL / "takes.py"]).ok().trace
    takers = {row["function"]: row["n"] for row in ask(trace, TAKERS)}
    expected = {"within", "begin", "through"}
    assert set(takers) - {"", None} == expected and min(takers[name] for name in expected) >= 40, takers


# From 3.14 on a new thread may wait for its starter's event before it executes any function of Python.
WAITS_FOR_LOCK = """
SELECT waits.ns, locks.name AS lock, holders.name AS holder, waits.holder AS other FROM waits
JOIN stacks ON stacks.id = waits.stack_id AND place NOT LIKE 'sem_wait <- PyEvent_Wait %'
JOIN locks ON locks.id = waits.lock_id LEFT JOIN threads AS holders ON holders.id = waits.holder_id
JOIN threads ON threads.id = waits.thread_id WHERE threads.name = 'wanter' ORDER BY waits.begin_ns
"""
IDLE_AT_LOCK = """
SELECT place FROM waits JOIN stacks ON stacks.id = waits.stack_id JOIN threads ON threads.id = thread_id LEFT JOIN locks ON locks.id = lock_id
WHERE idle AND (locks.name = '{}' OR threads.name = 'keeper' AND (kind = 'sleep' OR place LIKE 'select %'))
"""


@pytest.mark.parametrize("kind", ["Lock", "RLock"])
def test_a_lock_that_was_free(python, traced, kind):
    """Its taking is not seen, but it is known who has it, from the moment when another thread waits for it."""
    result = traced([python, GIL / "keeps_lock.py", kind]).ok()
    address, *waited = result.stdout.split()
    rows = [row for row in ask(result.trace, WAITS_FOR_LOCK) if row["lock"] == address]
    holds = [row for row in ask(result.trace, HOLDS_OF.format(address)) if row["ns"] > 10e6]
    # A semaphore is known to be a lock only when it has served as one for some time.
    known = [row for row in rows if row["holder"]]
    assert len(rows) == 10 and all(20e6 <= row["ns"] <= 1e9 * float(most) for row, most in zip(rows, waited)), (rows, waited)
    assert len(known) >= 4 and {row["holder"] for row in known} == {"keeper"}, rows
    assert len(holds) >= 4 and {row["thread"] for row in holds} == {"keeper"}, holds
    assert {row["function"] for row in holds} <= {"keep"}, holds
    assert not [row for row in rows if row["other"]], rows
    assert not ask(result.trace, IDLE_AT_LOCK.format(address))


HELD = "SELECT locks.name AS lock FROM holds JOIN locks ON locks.id = lock_id WHERE locks.name LIKE '0x%'"


def test_signals_have_no_holder(python, traced):
    result = traced([python, GIL / "signals.py"]).ok()
    *mutexes, signal = result.stdout.split()
    waits = ask(result.trace, WAITS_FOR_LOCK)
    assert sum(row["lock"] == signal for row in waits) == 60, waits
    assert sum(row["lock"] not in (signal, *mutexes) and not row["lock"].startswith("GIL") for row in waits) == 60, waits
    assert not [row for row in waits if row["lock"] not in mutexes and not row["lock"].startswith("GIL") and (row["holder"] or row["other"])], waits
    assert {row["lock"] for row in ask(result.trace, HELD)} <= set(mutexes)


def test_a_pool_waits_in_pythons_library(python, traced):
    """The place is the library's function, and no function of the interpreter, which executes it."""
    result = traced([python, GIL / "pool.py"]).ok()
    places = {row["place"] for row in ask(result.trace, "SELECT place FROM waits JOIN stacks ON stacks.id = stack_id WHERE kind = 'sync'")}
    assert f"sem_wait <- _worker (thread.py:{result.stdout.split()[0]})" in places, places
    # See WAITS_FOR_LOCK.
    assert not [place for place in places if re.match(r"sem_wait <- (_?Py(?!Event_Wait )|python3)", place)], places


@pytest.fixture(params=["itself", "own", "stripped"])
def interpreter(request, python, tmp_path):
    """The interpreter, also by a name that does not tell what it is, as of a program that is linked with it."""
    if request.param == "itself":
        return python
    library = proc.run([python, "-c", "import os; print(os.path.dirname(os.path.dirname(os.__file__)))"]).ok().stdout.strip()
    (tmp_path / "bin").mkdir()
    (tmp_path / "lib").symlink_to(library)
    copy = shutil.copy(python.resolve(), tmp_path / "bin/interpreter")
    if request.param == "stripped":  # and without a build ID, by which its symbols might be found
        proc.run(["objcopy", "--strip-all", "-R", ".note.gnu.build-id", "-R", ".gnu_debuglink", copy]).ok()
    return copy


@pytest.mark.measured
def test_workers_of_a_pool_are_idle(interpreter, traced):
    result = traced([interpreter, GIL / "jobs.py"]).ok()
    text = proc.run([GOTRACE, "top", result.trace]).ok().stdout
    assert re.search(r"^idle: .*sem_wait <- _worker \(thread.py:\d+\)", text, re.M), text
    assert not re.search(r" sync +sem_wait <- (_worker|_?Py|lock)", text), text


def spawn(argv, env=None):
    pipe = proc.subprocess.PIPE
    return proc.spawn(argv, env=env, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def told_of_a_deadlock(child):
    told = []
    while sum(" thread " in line for line in told) < 2:
        told.append(child.stderr.readline())
        assert told[-1], told
    proc.kill_group(child)
    return "".join(told)


def test_a_deadlock(python, tmp_path):
    library = proc.compile(GIL / "join.c", tmp_path / "libjoin.so", "-shared", "-fPIC")
    script = f"import ctypes; ctypes.PyDLL('{library}').join(ctypes.cast(ctypes.pythonapi.PyGILState_Ensure, ctypes.c_void_p))"
    env = proc.traced_env(tmp_path / "t.out", {"GOTRACE_HANG": "300ms"})
    child = spawn([python, "-c", script], env)
    text = told_of_a_deadlock(child)
    assert "DEADLOCK: for 300 ms threads have waited for each other" in text
    assert f"thread {child.pid} " in text and " waits for the end of thread " in text, text
    assert f" waits for GIL, which thread {child.pid} " in text, text


# From 3.13.5 on a Lock is a byte, and from 3.14 on an RLock. Otherwise they are semaphores, to which any thread may post.
ARE_BYTES = "import sys, threading; print(threading.Lock().__sizeof__() < 40, sys.version_info >= (3, 14))"


@pytest.fixture(params=["Lock", "RLock"])
def byte_lock(request, python):
    lock, rlock = proc.run([python, "-c", ARE_BYTES]).ok().stdout.split()
    if (lock if request.param == "Lock" else rlock) == "False":
        pytest.skip("it is a semaphore")
    return request.param


@pytest.mark.parametrize("kind", ["Lock", "RLock"])
def test_a_deadlock_of_locks(python, tmp_path, kind):
    child = spawn([python, GIL / "orders.py", kind], proc.traced_env(tmp_path / "t.out", {"GOTRACE_HANG": "300ms"}))
    locks = child.stdout.readline().split()
    text = told_of_a_deadlock(child)
    assert "DEADLOCK: for 300 ms threads have waited for each other" in text
    assert set(re.findall(r" waits for a lock at (0x\w+), which thread ", text)) == set(locks), (locks, text)


@pytest.mark.parametrize("kind", ["Lock", "RLock"])
def test_a_trace_ends_with_a_deadlock_of_locks(python, tmp_path, kind):
    """The program ends itself: a signal would leave little time to write the end."""
    trace = tmp_path / "t.out"
    child = spawn([python, GIL / "orders.py", kind], proc.traced_env(trace, {"GOTRACE_HANG": "300ms"}))
    assert "DEADLOCK" in child.stderr.readline()
    child.communicate("\n")
    found = json.loads(proc.run([GOTRACE, "top", "--json", trace]).ok().stdout)["deadlocks"]
    assert [(d["kind"], len(d["threads"])) for d in found] == [("cycle", 2)], found
    assert "deadlock" in [f["finding"] for f in json.loads(proc.run([GOTRACE, "why", "--json", trace]).ok().stdout)["findings"]]


@pytest.mark.parametrize("case", ["itself", "no_names", "block", "at_its_end", "hand_over", "comprehension"])
def test_a_thread_that_waits_for_a_lock_of_its_own(python, tmp_path, case):
    check_no_deadlock([python, GIL / "own.py", case], tmp_path)


def check_no_deadlock(argv, tmp_path):
    """No DEADLOCK while the program waits for a line, in its trace and in the reports of it."""
    trace = tmp_path / "t.out"
    child = spawn(argv, proc.traced_env(trace, {"GOTRACE_HANG": "100ms"}))
    child.stdout.readline()
    for _ in range(5):
        proc.run([GOTRACE, "stacks", child.pid]).ok()
    time.sleep(1.5)  # several times GOTRACE_HANG
    assert "DEADLOCK" not in child.communicate("\n")[1] and child.returncode == 0
    assert not json.loads(proc.run([GOTRACE, "top", "--json", trace]).ok().stdout)["deadlocks"]
    assert "deadlock" not in [f["finding"] for f in json.loads(proc.run([GOTRACE, "why", "--json", trace]).ok().stdout)["findings"]]


@pytest.mark.parametrize("case", ["left", "timed", "sleeps", "gives_up", "keeps"])
def test_no_deadlock_of_locks(python, tmp_path, case):
    check_no_deadlock([python, GIL / "no_circles.py", case], tmp_path)


def test_threads_that_wait_for_a_signal_are_in_no_deadlock(python, traced):
    result = traced([python, GIL / "long.py"], env={"GOTRACE_HANG": "100ms"}).ok()
    assert "DEADLOCK" not in result.stderr and "DEADLOCK" not in proc.run([GOTRACE, "top", result.trace]).ok().stdout


def test_stacks_of_a_deadlock_of_byte_locks(python, byte_lock):
    """Also without the library. The threads may still be on their way into it."""
    child = spawn([python, GIL / "orders.py", byte_lock])
    locks = child.stdout.readline().split()
    for _ in range(50):
        told = proc.run([GOTRACE, "stacks", str(child.pid)])
        if told.returncode == 3:
            break
    proc.kill_group(child)
    assert told.returncode == 3 and "DEADLOCK: 2 threads wait for each other" in told.stdout, told
    assert set(re.findall(r" waits for mutex (0x\w+), held by thread ", told.stdout)) == set(locks), (locks, told.stdout)


@pytest.mark.parametrize("format", gotools.some("go1.11", "go1.23"))
def test_threads_that_end_in_a_wait(python, traced, format):
    """Python ends daemons when they ask for the lock once more, in the middle of what is one wait."""
    result = traced([python, GIL / "daemons.py"], env={"GOTRACE_FORMAT": format}, timeout=60).ok()
    proc.run([GOTRACE, "info", "--check", result.trace], timeout=60).ok()
    statement = "SELECT sum(running_ns) AS running, max(end_ns) AS ns FROM threads WHERE creator_id IS NOT NULL"
    ((its),) = ask(result.trace, statement)
    assert its["running"] > 10e6, its  # they have had 30 ms
