"""Python's interpreter lock: threads of Python wait for it, and programs know how long, and for which thread."""

import json
import re
import shutil
import time

import pytest
from test_python import command, python

from lib import ROOT, gotools, proc

GOTRACE = ROOT / "build/gotrace"
FIXTURES = command, python

# A thread calls C for 40 ms at a time and keeps the lock; another one tells how late it gets the lock back after naps.
KEEPS = """
import ctypes, threading, time
libc = ctypes.PyDLL(None)
late = []
def keep():
    while len(late) < 5:
        libc.usleep(40000)
        time.sleep(0.01)
def nap():
    while len(late) < 5:
        begin = time.monotonic()
        time.sleep(0.005)
        late.extend(s for s in [time.monotonic() - begin - 0.005] if s > 0.02)
threads = threading.Thread(target=keep, name="keeper"), threading.Thread(target=nap, name="napper")
for t in threads: t.start()
for t in threads: t.join()
print(*late)
"""
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
    result = traced([*command, "-c", KEEPS], timeout=60).ok()
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
    result = traced([*command, "-c", KEEPS], timeout=60, env={"GOTRACE_QUIET": "0"}).ok()
    waits = [wait["ns"] for gil, _ in naps_of(ask(result.trace, WAITS)) for wait in gil if wait["ns"] > 15e6]
    said = re.search(r"; threads waited ([\d.]+) s in all for GIL in nap \(<string>:\d+\); ", result.stderr)
    assert said and len(waits) >= 3 and float(said[1]) > sum(waits) / 1e9 - 0.002, (result.stderr, waits)


# Two threads take turns with locks: in one function, in one that another function gives the lock up for, and through
# Condition, whose own functions take and give up the lock.
TAKES = """
import threading, time
plain, split, inner, turns = threading.Lock(), threading.Lock(), threading.RLock(), threading.Barrier(2)
cond = threading.Condition(inner)
def within():
    with plain: time.sleep(0.002)
def begin(): split.acquire()
def end(): split.release()
def through():
    with cond: time.sleep(0.002)
def work():
    turns.wait()
    for _ in range(30): within()
    turns.wait()
    for _ in range(30):
        begin()
        time.sleep(0.002)
        end()
    turns.wait()
    for _ in range(30): through()
threads = [threading.Thread(target=work) for _ in range(2)]
for t in threads: t.start()
for t in threads: t.join()
"""
TAKERS = """
SELECT function, count(*) AS n FROM holds JOIN locks ON locks.id = holds.lock_id
WHERE locks.name LIKE '0x%' AND holds.ns > 1000000 GROUP BY 1
"""


def test_takers_of_locks(python, traced):
    """A lock is taken in the program's function, not in the interpreter's, whether it was free or had to be waited for."""
    trace = traced([python, "-c", TAKES]).ok().trace
    takers = {row["function"]: row["n"] for row in ask(trace, TAKERS)}
    expected = {"within", "begin", "through"}
    assert set(takers) - {"", None} == expected and min(takers[name] for name in expected) >= 40, takers


# Where threads wait for a lock: in its object, or at a semaphore, which the object points to.
ADDRESS = """
import ctypes, queue, sys, threading, time
def address(lock):
    inside = lock.__sizeof__() < 40 if type(lock) is type(threading.Lock()) else sys.version_info >= (3, 14)
    return hex(id(lock) + 16 if inside else ctypes.c_void_p.from_address(id(lock) + 16).value)
"""

# Asleep, and not for want of the interpreter's lock, which is free while the file is read.
ASLEEP = """
def is_asleep(thread):
    with open(f"/proc/self/task/{thread.native_id}/stat") as file: return file.read().rpartition(")")[2].split()[0] == "S"
"""

# The keeper finds the lock free each time, and keeps it for 20 ms after the wanter has begun to wait. The wanter tells how
# long it has waited for the lock at most.
KEEPS_LOCK = """
lock, turns = threading.KIND(), threading.Barrier(2)
waited, wants = [], False
def keep():
    for _ in range(10):
        with lock:
            turns.wait()
            while not wants or not is_asleep(threads[1]): pass
            time.sleep(0.02)
        turns.wait()
def want():
    global wants
    for _ in range(10):
        turns.wait()
        begin = time.monotonic()
        wants = True
        with lock: waited.append(time.monotonic() - begin)
        wants = False
        turns.wait()
threads = threading.Thread(target=keep, name="keeper"), threading.Thread(target=want, name="wanter")
for t in threads: t.start()
for t in threads: t.join()
print(address(lock), *waited)
"""
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
    result = traced([python, "-c", ADDRESS + ASLEEP + KEEPS_LOCK.replace("KIND", kind)]).ok()
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


# Two threads wake each other through queues, whose waiters take locks that other threads release, and by such a lock itself.
SIGNALS = """
there, back, signal = queue.Queue(), queue.Queue(), threading.Lock()
wants = None
def until_it_waits(what):
    while wants != what or not is_asleep(threads[1]): pass
def serve():
    for _ in range(60):
        item = there.get()
        until_it_waits("item")
        back.put(item)
        until_it_waits("signal")
        signal.release()
def want():
    global wants
    signal.acquire()
    for i in range(60):
        there.put(i)
        wants = "item"
        back.get()
        wants = "signal"
        signal.acquire()
threads = threading.Thread(target=serve, name="server"), threading.Thread(target=want, name="wanter")
for t in threads: t.start()
for t in threads: t.join()
print(address(there.mutex), address(back.mutex), address(signal))
"""
HELD = "SELECT locks.name AS lock FROM holds JOIN locks ON locks.id = lock_id WHERE locks.name LIKE '0x%'"


def test_signals_have_no_holder(python, traced):
    result = traced([python, "-c", ADDRESS + ASLEEP + SIGNALS]).ok()
    *mutexes, signal = result.stdout.split()
    waits = ask(result.trace, WAITS_FOR_LOCK)
    assert sum(row["lock"] == signal for row in waits) == 60, waits
    assert sum(row["lock"] not in (signal, *mutexes) and not row["lock"].startswith("GIL") for row in waits) == 60, waits
    assert not [row for row in waits if row["lock"] not in mutexes and not row["lock"].startswith("GIL") and (row["holder"] or row["other"])], waits
    assert {row["lock"] for row in ask(result.trace, HELD)} <= set(mutexes)


# Threads of a pool wait for work in Python's library: the program tells in which line.
POOL = """
import concurrent.futures, inspect, time
from concurrent.futures import thread
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    for _ in range(5):
        pool.submit(time.sleep, 0.005).result()
        while not all(map(is_asleep, pool._threads)): pass
source, first = inspect.getsourcelines(thread._worker)
print(next(first + i for i, line in enumerate(source) if "work_queue.get(block=True)" in line))
"""


def test_a_pool_waits_in_pythons_library(python, traced):
    """The place is the library's function, and no function of the interpreter, which executes it."""
    result = traced([python, "-c", ASLEEP + POOL]).ok()
    places = {row["place"] for row in ask(result.trace, "SELECT place FROM waits JOIN stacks ON stacks.id = stack_id WHERE kind = 'sync'")}
    assert f"sem_wait <- _worker (thread.py:{result.stdout.split()[0]})" in places, places
    # See WAITS_FOR_LOCK.
    assert not [place for place in places if re.match(r"sem_wait <- (_?Py(?!Event_Wait )|python3)", place)], places


# Four workers wait for each job: the queue's lock goes from the one that gets the job to the next one, which waits again.
JOBS = """
from concurrent.futures import ThreadPoolExecutor
turns = threading.Barrier(4)
with ThreadPoolExecutor(4) as pool:
    list(pool.map(lambda _: turns.wait() and None, range(4)))
    for _ in range(30):
        while not all(map(is_asleep, pool._threads)): pass
        time.sleep(0.005)
        pool.submit(time.sleep, 0.002)
"""


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
    result = traced([interpreter, "-c", "import threading, time" + ASLEEP + JOBS]).ok()
    text = proc.run([GOTRACE, "top", result.trace]).ok().stdout
    assert re.search(r"^idle: .*sem_wait <- _worker \(thread.py:\d+\)", text, re.M), text
    assert not re.search(r" sync +sem_wait <- (_worker|_?Py|lock)", text), text


# A C extension that keeps the lock joins a thread that needs the lock.
JOINS = r"""
#include <pthread.h>
static void *(*ensure)(void);
static void *work(void *arg) { (*(int (*)(void))ensure)(); return arg; }
void join(void *(*f)(void)) { pthread_t t; ensure = f; pthread_create(&t, 0, work, 0); pthread_join(t, 0); }
"""


def told_of_a_deadlock(child):
    told = []
    while sum(" thread " in line for line in told) < 2:
        told.append(child.stderr.readline())
        assert told[-1], told
    proc.kill_group(child)
    return "".join(told)


def test_a_deadlock(python, tmp_path):
    library = proc.compile(JOINS, tmp_path / "libjoin.so", "-shared", "-fPIC")
    script = f"import ctypes; ctypes.PyDLL('{library}').join(ctypes.cast(ctypes.pythonapi.PyGILState_Ensure, ctypes.c_void_p))"
    env = proc.traced_env(tmp_path / "t.out", {"GOTRACE_HANG": "300ms"})
    child = proc.spawn([python, "-c", script], env=env, stderr=proc.subprocess.PIPE, text=True)
    text = told_of_a_deadlock(child)
    assert "DEADLOCK: for 300 ms threads have waited for each other" in text
    assert f"thread {child.pid} " in text and " waits for the end of thread " in text, text
    assert f" waits for GIL, which thread {child.pid} " in text, text


ORDERS = """
one, other, turns = threading.KIND(), threading.KIND(), threading.Barrier(2)
print(address(one), address(other), flush=True)
def work(first, second):
    with first:
        turns.wait()
        with second: pass
threads = threading.Thread(target=work, args=(one, other)), threading.Thread(target=work, args=(other, one))
for t in threads: t.start()
"""


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
    env = proc.traced_env(tmp_path / "t.out", {"GOTRACE_HANG": "300ms"})
    script = ADDRESS + ORDERS.replace("KIND", kind)
    child = proc.spawn([python, "-c", script], env=env, stdout=proc.subprocess.PIPE, stderr=proc.subprocess.PIPE, text=True)
    locks = child.stdout.readline().split()
    text = told_of_a_deadlock(child)
    assert "DEADLOCK: for 300 ms threads have waited for each other" in text
    assert set(re.findall(r" waits for a lock at (0x\w+), which thread ", text)) == set(locks), (locks, text)


@pytest.mark.parametrize("kind", ["Lock", "RLock"])
def test_a_trace_ends_with_a_deadlock_of_locks(python, tmp_path, kind):
    """The program ends itself: a signal would leave little time to write the end."""
    trace, pipe = tmp_path / "t.out", proc.subprocess.PIPE
    script = "import os\n" + ADDRESS + ORDERS.replace("KIND", kind) + "sys.stdin.readline()\nos._exit(0)\n"
    child = proc.spawn([python, "-c", script], env=proc.traced_env(trace, {"GOTRACE_HANG": "300ms"}), stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    assert "DEADLOCK" in child.stderr.readline()
    child.communicate("\n")
    found = json.loads(proc.run([GOTRACE, "top", "--json", trace]).ok().stdout)["deadlocks"]
    assert [(d["kind"], len(d["threads"])) for d in found] == [("cycle", 2)], found
    assert "deadlock" in [f["finding"] for f in json.loads(proc.run([GOTRACE, "why", "--json", trace]).ok().stdout)["findings"]]


# A thread waits for a lock of which it is in a block, or seems to be. It is in no deadlock: it has given the lock up there, so
# that the main thread has it, or the main thread will release the lock. CASE is what the thread executes. The main thread says
# when the thread is there. In comprehensions the interpreter keeps the outer value of a variable, here a lock, on its stack.
OWN = """
import contextlib
lock, other, given, taken = threading.Lock(), threading.Lock(), threading.Event(), threading.Event()
def pause():
    given.set()
    taken.wait()
def give():
    lock.release()
    pause()
def itself():
    with lock:
        give()
        lock.acquire()
def no_names(operations=(lock.release, pause, lock.acquire)):
    with lock:
        for operation in operations: operation()
@contextlib.contextmanager
def without():
    give()
    yield
    lock.acquire()
def block():
    with lock:
        with without():
            with lock: pass
class Without:
    def __enter__(self):
        lock.__exit__(None, None, None)
        pause()
    def __exit__(self, *_): lock.__enter__()
def at_its_end():
    with lock:
        with Without(): pass
def hand_over():
    with lock:
        given.set()
        with lock: pass
def comprehension():
    kept = lock
    pause()
    def want(_):
        with lock: pass
    return [want(kept) for kept in [other]]
thread = threading.Thread(target=CASE, daemon=True)
thread.start()
given.wait()
if CASE != hand_over: lock.acquire()
taken.set()
while not is_asleep(thread): pass
print(flush=True)
sys.stdin.readline()
os._exit(0)
"""


@pytest.mark.parametrize("case", ["itself", "no_names", "block", "at_its_end", "hand_over", "comprehension"])
def test_a_thread_that_waits_for_a_lock_of_its_own(python, tmp_path, case):
    check_no_deadlock(python, tmp_path, OWN.replace("CASE", case))


def check_no_deadlock(python, tmp_path, script):
    """No DEADLOCK while the program waits for a line, in its trace and in the reports of it."""
    trace, pipe = tmp_path / "t.out", proc.subprocess.PIPE
    env = proc.traced_env(trace, {"GOTRACE_HANG": "100ms"})
    child = proc.spawn([python, "-c", ADDRESS + ASLEEP + "import os\n" + script], env=env, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    child.stdout.readline()
    for _ in range(5):
        proc.run([GOTRACE, "stacks", child.pid]).ok()
    time.sleep(1.5)  # several times GOTRACE_HANG
    assert "DEADLOCK" not in child.communicate("\n")[1] and child.returncode == 0
    assert not json.loads(proc.run([GOTRACE, "top", "--json", trace]).ok().stdout)["deadlocks"]
    assert "deadlock" not in [f["finding"] for f in json.loads(proc.run([GOTRACE, "why", "--json", trace]).ok().stdout)["findings"]]


# One thread wants a lock. Its block seems to be that of a thread which executes CASE, and the two seem to wait in a circle. But
# the thread has left the block, and the main thread has the lock (left). Or the thread waits in its block, with a timeout, or
# sleeps (timed, sleeps). Or it gave the lock up in Condition.wait and wants it again, while the main thread has it (gives_up).
# Or it never had the lock: a comprehension keeps it on the interpreter's stack, as the outer value of a variable, and the main
# thread has it (keeps). The main thread says when both are there.
NO_CIRCLES = """
one, other, turns, go, there = threading.Lock(), threading.Lock(), threading.Barrier(3), threading.Event(), []
changed = threading.Condition(one)
def meet():
    turns.wait()
    go.wait()
    there.append(1)
def left():
    with one: pass
    meet()
    with other: pass
def timed():
    with one:
        meet()
        other.acquire(timeout=600)
def sleeps():
    with one:
        meet()
        time.sleep(600)
def gives_up():
    with one:
        turns.wait()
        there.append(1)
        changed.wait()
def keeps():
    lock = one
    meet()
    def take(lock):
        with lock: pass
    [take(lock) for lock in [other]]
def wants():
    with other:
        meet()
        with one: pass
threads = [threading.Thread(target=f, daemon=True) for f in (CASE, wants)]
for t in threads: t.start()
turns.wait()
if CASE in (left, gives_up, keeps):
    while CASE == gives_up and not changed._waiters: pass
    one.acquire()
    if CASE == gives_up: changed.notify()
go.set()
while len(there) < 2 or not all(map(is_asleep, threads)): pass
print(flush=True)
sys.stdin.readline()
os._exit(0)
"""


@pytest.mark.parametrize("case", ["left", "timed", "sleeps", "gives_up", "keeps"])
def test_no_deadlock_of_locks(python, tmp_path, case):
    check_no_deadlock(python, tmp_path, NO_CIRCLES.replace("CASE", case))


# Threads wait for signals much longer than GOTRACE_HANG: each for locks that it or another waiting thread has taken.
LONG = """
import queue, threading, time
jobs, event, changed, signal = queue.SimpleQueue(), threading.Event(), threading.Condition(), threading.Lock()
def notified():
    with changed: changed.wait()
def signalled():
    signal.acquire()
    event.wait()
    signal.release()
threads = [threading.Thread(target=f) for f in (jobs.get, jobs.get, notified, event.wait, signalled)]
for t in threads: t.start()
time.sleep(0.5)
event.set()
for _ in range(2): jobs.put(1)
with changed: changed.notify()
for t in threads: t.join()
"""


def test_threads_that_wait_for_a_signal_are_in_no_deadlock(python, traced):
    result = traced([python, "-c", LONG], env={"GOTRACE_HANG": "100ms"}).ok()
    assert "DEADLOCK" not in result.stderr and "DEADLOCK" not in proc.run([GOTRACE, "top", result.trace]).ok().stdout


def test_stacks_of_a_deadlock_of_byte_locks(python, byte_lock):
    """Also without the library. The threads may still be on their way into it."""
    script = ADDRESS + ORDERS.replace("KIND", byte_lock)
    child = proc.spawn([python, "-c", script], stdout=proc.subprocess.PIPE, text=True)
    locks = child.stdout.readline().split()
    for _ in range(50):
        told = proc.run([GOTRACE, "stacks", str(child.pid)])
        if told.returncode == 3:
            break
    proc.kill_group(child)
    assert told.returncode == 3 and "DEADLOCK: 2 threads wait for each other" in told.stdout, told
    assert set(re.findall(r" waits for mutex (0x\w+), held by thread ", told.stdout)) == set(locks), (locks, told.stdout)


DAEMONS = """
import threading, time
def work():
    while True: pass
for _ in range(6): threading.Thread(target=work, daemon=True).start()
time.sleep(0.03)
"""


@pytest.mark.parametrize("format", gotools.some("go1.11", "go1.23"))
def test_threads_that_end_in_a_wait(python, traced, format):
    """Python ends daemons when they ask for the lock once more, in the middle of what is one wait."""
    result = traced([python, "-c", DAEMONS], env={"GOTRACE_FORMAT": format}, timeout=60).ok()
    proc.run([GOTRACE, "info", "--check", result.trace], timeout=60).ok()
    statement = "SELECT sum(running_ns) AS running, max(end_ns) AS ns FROM threads WHERE creator_id IS NOT NULL"
    ((its),) = ask(result.trace, statement)
    assert its["running"] > 10e6, its  # they have had 30 ms
