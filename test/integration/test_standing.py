"""Waits in which threads stand when a program is attached, or a recording begins: test/prog/standing.c."""

import contextlib
import json
import platform
import re
import subprocess

import pytest

from lib import LIBRARY, PROGRAMS, ROOT, gotools, proc, spans

GOTRACE = ROOT / "build/gotrace"
STANDING = PROGRAMS / "standing"
CALLS = {  # what each stands in, which kind of wait that is
    "keeper": ("sleep", "sleep"),
    "mutex": ("pthread_mutex_lock", "sync"),
    "signalled": ("pthread_mutex_lock", "sync"),
    "cond": ("pthread_cond_wait", "sync"),
    "sem": ("sem_wait", "sync"),
    "quit": ("sem_wait", "sync"),
    "read": ("read", "syscall"),
    "sleep": ("nanosleep", "sleep"),
    "epoll": ("epoll_wait", "network"),
    "write": ("pthread_rwlock_wrlock", "sync"),
}
WAKERS = {"mutex": "pthread_mutex_unlock", "cond": "pthread_cond_signal", "sem": "sem_post", "quit": "sem_post", "write": "pthread_rwlock_unlock"}
WITH_STACKS = ("go1.23", "go1.25", "go1.26")  # of what waits already when the trace begins
SLACK = 3e6  # ns, of a thread that is woken, on a busy machine

attaching = pytest.mark.skipif(platform.machine() != "x86_64", reason="attaching is there for x86-64 only")
pytestmark = [pytest.mark.measured, pytest.mark.limit(120)]


class Standing:
    def __init__(self, **env):
        self.child = proc.spawn([STANDING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        self.says("ready")
        if "LD_PRELOAD" in env:
            proc.drain_thread(self.child.pid)  # till then it has the name of the main thread
        tasks = proc.run(["sh", "-c", f"head -q -n 1 /proc/{self.child.pid}/task/*/comm; ls /proc/{self.child.pid}/task"]).ok().stdout.split()
        self.tids = dict(zip(tasks[: len(tasks) // 2], map(int, tasks[len(tasks) // 2 :])))
        self.tids.pop("gotrace", None)  # the library's own

    def says(self, what):
        assert self.child.stdout.readline() == what + "\n"

    def go_on(self):
        self.child.stdin.write("go\n")
        self.child.stdin.flush()
        self.says("over")

    def end(self):
        """Thread → how long it has computed after its wait, ns."""
        out, _ = self.child.communicate(timeout=30)
        assert self.child.returncode == 0
        return {name: int(us) * 1000 for name, us in re.findall(r"(\w+) (\d+)\n", out)}


@contextlib.contextmanager
def standing(**env):
    program = Standing(**env)
    try:
        yield program
    finally:
        proc.kill_group(program.child)


def gotrace(command, *argv):
    return proc.run([GOTRACE, command, *argv], timeout=60).ok().stdout


def sql(trace, statement):
    return json.loads(gotrace("sql", "--json", trace, statement))


def threads(trace, tids):
    """Name → its goroutine."""
    ids = {row["tid"]: row["id"] for row in sql(trace, "SELECT id, tid FROM threads")}
    return {name: ids[tid] for name, tid in tids.items()}


WAITED = """
    SELECT kind, begin_ns, w.ns, ended, s.what, holder_id, wanted.name AS lock, d.what AS waker
    FROM (SELECT id, thread_id, kind, begin_ns, ns, ended, stack_id, waker_stack_id, holder_id, lock_id FROM waits
          UNION ALL SELECT id, thread_id, 'syscall', begin_ns, ns, ended, stack_id, NULL, NULL, NULL FROM calls) w
    LEFT JOIN stacks s ON s.id = w.stack_id LEFT JOIN stacks d ON d.id = w.waker_stack_id
    LEFT JOIN locks wanted ON wanted.id = lock_id
    WHERE w.thread_id = {} ORDER BY begin_ns, w.ns DESC"""


def check_waits(trace, tids):
    """Each stands in its call from the beginning: those who never go on all the time."""
    (length,) = (row["duration_ns"] for row in sql(trace, "SELECT duration_ns FROM trace"))
    found = threads(trace, tids)
    for name, tid in tids.items():
        if name == "standing":
            continue
        when, what = name.split("_")
        waits = sql(trace, WAITED.format(found[name]))
        wait = waits[0]
        assert (wait["begin_ns"], wait["what"], wait["kind"]) == (0, *CALLS[what]), (name, wait)
        if what == "signalled":  # a look may have met the handler, which is not printed otherwise
            assert {(w["what"], w["kind"]) for w in waits if w["kind"] != "sched"} == {CALLS[what]} and waits[-1]["ended"] == 0, waits
        elif when == "ever":
            assert wait["ended"] == 0 and wait["ns"] == length, (name, wait)
        else:
            assert wait["ended"] == 1 and wait["waker"] == WAKERS.get(what), (name, wait)
    wait = sql(trace, WAITED.format(found["ever_mutex"]))[0]
    assert wait["lock"] == "kept" and wait["holder_id"] == found["ever_keeper"], wait
    rows = sql(trace, "SELECT routine FROM threads")
    assert sorted(row["routine"] for row in rows) == ["main"] + ["stand"] * (len(tids) - 1), rows


def check_ends(trace, tids, computed):
    """A wait ends when its thread goes on; where a log doubts that, not after the log's time before it, nor before it ended."""
    found = threads(trace, tids)
    rows = sql(trace, "SELECT thread_id, message FROM logs WHERE category = 'attached'")
    doubts = {row["thread_id"]: int(re.fullmatch(r"it went on unseen, up to (\d+)us before it does here", row["message"])[1]) * 1000 for row in rows}
    for name, ns in computed.items():
        if not ns:
            continue
        ran = sql(trace, f"SELECT MAX(ns) AS ns FROM running WHERE thread_id = {found[name]}")[0]["ns"]
        (queue,) = (row["ns"] for row in sql(trace, f"SELECT SUM(queue_ns) AS ns FROM accounts WHERE thread_id = {found[name]}"))
        assert ran < ns + (queue or 0) + SLACK, (name, ran, ns, queue)
        assert ran + doubts.get(found[name], 0) > ns - SLACK, (name, ran, ns, doubts)
    return doubts


@attaching
@pytest.mark.parametrize("format", gotools.some())
def test_attached(tmp_path, format):
    """From the moment of the attach; in formats that can say so with the call and the lock."""
    trace = tmp_path / "t.out"
    with standing() as program:
        gotrace("attach", "-o", trace, f"--format={format}", program.child.pid)
        program.go_on()
        gotrace("detach", program.child.pid)
        computed = program.end()
    spans.check_readers(format, trace)
    if format in WITH_STACKS:
        check_waits(trace, program.tids)
        check_ends(trace, program.tids, computed)


@attaching
def test_started_later(tmp_path):
    """What went on before the recording did not stand there when it began."""
    trace = tmp_path / "t.out"
    with standing() as program:
        gotrace("attach", "-o", trace, "--start=manual", program.child.pid)
        program.go_on()
        gotrace("start", program.child.pid)
        gotrace("detach", program.child.pid)
        program.end()
    spans.check_readers("go1.23", trace)
    ended = {name: tid for name, tid in program.tids.items() if name.startswith("then_")}
    left = {name: tid for name, tid in program.tids.items() if name not in ended}
    check_waits(trace, left)


def test_late_recording(tmp_path):
    """Of a program that has the library the same is known."""
    trace = tmp_path / "t.out"
    with standing(LD_PRELOAD=LIBRARY, GOTRACE_OUTPUT=trace, GOTRACE_START="manual", GOTRACE_QUIET="1") as program:
        gotrace("start", program.child.pid)
        program.go_on()
        gotrace("stop", program.child.pid)
        computed = program.end()
    spans.check_readers("go1.23", trace)
    check_waits(trace, program.tids)
    assert not check_ends(trace, program.tids, computed)
