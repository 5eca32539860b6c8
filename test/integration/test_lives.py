"""CPU time and time in run queues of threads that end, against the kernel's own count at that moment (test/prog/lives.c)."""

import json
import pathlib

import pytest

from lib import PROGRAMS, ROOT, proc

pytestmark = pytest.mark.measured

LIVES = PROGRAMS / "lives"
GOTRACE = ROOT / "build/gotrace"
SCHEDSTAT = pathlib.Path("/proc/self/schedstat").exists()
# Of a hundred: how far a part of a life may be from the truth. Where the host takes a CPU away, a timer is late: the trace
# says that the thread could have run since then, the kernel that it slept.
POINTS = 2
QUERY = """SELECT t.tid, t.end_ns - t.start_ns AS life, t.running_ns, t.sched_ns, s.cpu_ns, s.queue_ns
    FROM threads t LEFT JOIN shares s ON s.thread_id = t.id"""
COLUMNS = {"on": ("running_ns", "sched_ns"), "off": ("cpu_ns", "queue_ns")}

OWN_NS = 100_000  # the library's own part of a thread's beginning and end, which the program's clock does not count


def lives(tmp_path, kind, sched):
    """what the program says, as (tid, life, cpu, queue); and what its traces do, as {tid: (life, cpu, queue)}"""
    result = proc.traced([LIVES, kind], tmp_path / "%p.out", env={"GOTRACE_SCHED": sched}).ok()
    if "does not let this user watch" in result.stderr:
        pytest.skip("the kernel does not let this user watch threads")
    truth = [tuple(map(int, line.split())) for line in result.stdout.splitlines()]
    ask = [GOTRACE, "sql", "--json", "-o", tmp_path / "db"]
    rows = [row for trace in tmp_path.glob("*.out") for row in json.loads(proc.run([*ask, trace, QUERY]).ok().stdout)]
    return truth, {row["tid"]: tuple(row[name] or 0 for name in ("life", *COLUMNS[sched])) for row in rows}


@pytest.mark.parametrize("sched", ["on", "off"])
@pytest.mark.parametrize("kind", ["burn", "mix", "fork"])
def test_each_thread(tmp_path, kind, sched):
    truth, seen = lives(tmp_path, kind, sched)
    assert len(truth) == {"burn": 6, "mix": 5, "fork": 9}[kind]
    for tid, life, cpu, queue in truth:
        traced_life, traced_cpu, traced_queue = seen[tid]
        off = [traced_cpu - cpu, traced_queue - queue if SCHEDSTAT else 0]
        after = max(traced_life - life, 0)  # with a long wait for a CPU, which the program does not count: behind its last words, or when it begins
        assert max(off[0], off[1] - after) <= life * POINTS / 100, (tid, life, cpu, queue, seen[tid])
        assert min(off) >= -life * POINTS / 100, (tid, life, cpu, queue, seen[tid])


@pytest.mark.parametrize("sched", ["on", "off"])
def test_sum_of_short_threads(tmp_path, sched):
    ((_, _, cpu, _),), seen = lives(tmp_path, "short", sched)
    first = min(seen)  # it makes the others
    assert len(seen) == 1001
    traced_cpu = sum(used for tid, (_, used, _) in seen.items() if tid != first)
    assert 0.98 * cpu <= traced_cpu <= 1.02 * cpu + 1000 * OWN_NS
