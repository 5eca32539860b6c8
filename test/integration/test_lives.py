"""CPU time and time in run queues of threads that end, against the kernel's own count at that moment (test/prog/lives.c)."""

import json
import os
import pathlib

import pytest

from lib import PROGRAMS, ROOT, proc

LIVES = PROGRAMS / "lives"
GOTRACE = ROOT / "build/gotrace"
SCHEDSTAT = pathlib.Path("/proc/self/schedstat").exists()
POINTS = {"on": 1, "off": 2}  # of a hundred: how far a part of a life may be from the truth
MOST_CPUS = 16  # encoder/births.c
QUERY = """SELECT t.tid, t.end_ns - t.start_ns AS life, t.running_ns, t.sched_ns, s.cpu_ns, s.queue_ns
    FROM threads t LEFT JOIN shares s ON s.thread_id = t.id"""
COLUMNS = {"on": ("running_ns", "sched_ns"), "off": ("cpu_ns", "queue_ns")}

pytestmark = [pytest.mark.beside, pytest.mark.skipif((os.cpu_count() or 1) > MOST_CPUS, reason="threads are watched late here")]


def lives(tmp_path, kind, sched):
    """what the program says, as (tid, life, cpu, queue); and what the trace does, as {tid: (cpu, queue)}"""
    result = proc.traced([LIVES, kind], tmp_path / "t.out", env={"GOTRACE_SCHED": sched}).ok()
    if "does not let this user watch" in result.stderr:
        pytest.skip("the kernel does not let this user watch threads")
    truth = [tuple(map(int, line.split())) for line in result.stdout.splitlines()]
    text = proc.run([GOTRACE, "sql", "--json", "-o", tmp_path / "db", result.trace, QUERY]).ok().stdout
    seen = {row["tid"]: tuple(row[name] or 0 for name in COLUMNS[sched]) for row in json.loads(text)}
    return truth, seen


@pytest.mark.parametrize("sched", ["on", "off"])
@pytest.mark.parametrize("kind", ["burn", "mix"])
def test_each_thread(tmp_path, kind, sched):
    truth, seen = lives(tmp_path, kind, sched)
    assert len(truth) == {"burn": 6, "mix": 5}[kind]
    for tid, life, cpu, queue in truth:
        off = [100 * (seen[tid][0] - cpu) / life, 100 * (seen[tid][1] - queue) / life if SCHEDSTAT else 0]
        assert max(map(abs, off)) <= POINTS[sched], (tid, life, cpu, queue, seen[tid], off)


@pytest.mark.parametrize("sched", ["on", "off"])
def test_sum_of_short_threads(tmp_path, sched):
    ((_, _, cpu, _),), seen = lives(tmp_path, "short", sched)
    first = min(seen)  # it makes the others
    assert len(seen) == 1001
    assert sum(used for tid, (used, _) in seen.items() if tid != first) == pytest.approx(cpu, rel=0.02)
