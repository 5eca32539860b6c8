"""What `gotrace why` says of programs that are slow for a reason which is known."""

import json
import os
import re

import pytest

from lib import ROOT, SINGLE, SOURCES, proc

GOTRACE = ROOT / "build/gotrace"


def why(trace):
    return json.loads(proc.run([GOTRACE, "why", "--json", trace], timeout=60).ok().stdout)


@pytest.mark.measured
@pytest.mark.urgent
@pytest.mark.parametrize("sched", ["off", "on"])
def test_python_and_its_lock(traced, sched):
    """Four threads compute in one function, and one at a time: they pass the interpreter's lock (GIL) around. As nearly all
    of the run is that function, half of that is half of the run. Without the lock, as many as there are CPUs compute."""
    result = traced(["/usr/bin/python3", SOURCES / "known_reasons/interpreted.py"], env={"GOTRACE_SCHED": sched}).ok()
    if "does not let this user watch threads" in result.stderr:
        pytest.skip("perf_event_open(2) is not allowed here")
    said = why(result.trace)
    finding = said["findings"][0]
    assert finding["finding"] == "gil" and "computing in work " in finding["text"], said["findings"]
    assert not {"serialised_pool", "convoy", "polling"} & {f["finding"] for f in said["findings"]}, said["findings"]
    changes = {w["name"]: w["gain"] for w in said["what_if"]}
    half = {name: gain for name, gain in changes.items() if "half as long" in name}
    work = {name: gain for name, gain in half.items() if name.startswith("running in work")}
    assert 0.25 < sum(work.values()) < 0.55, changes
    assert all(gain < 0.1 for name, gain in half.items() if name not in work), changes
    most = 1 - 0.9 * said["parallelism"]["running"]["average"] / os.cpu_count()
    if not said["replay"]["cpus"]:  # else others used the CPUs, and left less than one
        assert 0.2 < changes["nobody ever waited for GIL"] < most, changes


@pytest.mark.measured
def test_python_and_a_call_that_keeps_its_lock(traced):
    """Each nap ends at the end of such a call. So half of the calls is 300 ms less, and without the lock it is all of them,
    though no thread waits for the call's end itself."""
    said = why(traced(["/usr/bin/python3", SOURCES / "known_reasons/keeping.py"]).ok().trace)
    finding = said["findings"][0]
    assert finding["finding"] == "gil" and "in usleep <- keep (keeping.py:7) " in finding["text"], said["findings"]
    changes = {w["name"]: w["gain"] for w in said["what_if"]}
    half = 20 * 15e6 / (said["to_ns"] - said["from_ns"])
    assert abs(changes["usleep <- keep (keeping.py:7) took half as long"] - half) < 0.12, changes
    assert changes["nobody ever waited for GIL"] > 1.4 * half, changes


@pytest.mark.measured
@pytest.mark.long
def test_two_locks_of_python(traced):
    """Without its own lock the program takes two thirds of the time or less. So that lock is the answer, and what it gives
    does not stand below the words about the GIL, which threads wait for, too."""
    if proc.run(["/usr/bin/python3", "-c", "import sys; sys.exit(sys.version_info >= (3, 13))"]).returncode:
        pytest.skip("from 3.13 on threading.Lock is no semaphore, so its holders are not known: libgotrace(7)")
    program = SOURCES / "known_reasons/two_locks.py"

    def took(*how):
        return min(float(proc.run(["/usr/bin/python3", program, *how]).ok().stdout) for _ in range(2))

    assert took("unlocked") < 0.67 * took()
    trace = traced(["/usr/bin/python3", program]).ok().trace
    page = " ".join(proc.run([GOTRACE, "why", trace], timeout=60).ok().stdout.split())
    gains = {w["name"].split()[4]: w["gain"] for w in why(trace)["what_if"] if w["name"].startswith("nobody ever")}
    told, _, gil = page.partition("Critical path:")[0].partition("* Limited by the GIL")
    assert gains and max(gains, key=gains.get) != "GIL", (gains, page)
    assert re.search(r"(Limited by the lock|Lock held across I/O:|Convoy:).* 0x[^*]*If nobody ever waited for it, the run would", told), (gains, page)
    assert "would take" not in gil.partition("gotrace top")[0], (gains, page)


@pytest.mark.measured
def test_a_pool_of_processes_and_their_lock(tmp_path):
    """The path goes from process to process with the lock: it is all of the sleeps, and no wait for the lock. In some runs it
    is not: main waits for a thread of the pool that waited for something else."""
    trace = tmp_path / "t.out"
    proc.run([GOTRACE, "-f", "-o", trace, "/usr/bin/python3", SOURCES / "known_reasons/pool.py"], timeout=60).ok()
    said = why(trace)
    assert "serialised_pool" not in {f["finding"] for f in said["findings"]}, said["findings"]
    rows = {r["name"]: r["ns"] / (30 * 20e6) for r in said["path"]["rows"]}
    asleep, waiting = (sum(part for name, part in rows.items() if name.startswith(f"{call} <- job ")) for call in ("clock_nanosleep", "sem_wait"))
    assert asleep > 0.8 and waiting < 0.2, (asleep, waiting)


@pytest.mark.measured
def test_pigz_with_one_thread(traced, tmp_path):
    """Nothing is wrong but that it computes alone."""
    (tmp_path / "data").write_bytes(os.urandom(8 << 20))
    said = why(traced(["pigz", "-p1", "-k", tmp_path / "data"]).ok().trace)
    assert said["threads"] == 1 and {f["finding"] for f in said["findings"]} <= {"preempted"}, said["findings"]  # others may have the CPUs
    runs = sum(row["ns"] for row in said["path"]["rows"] if row["kind"] in ("running", "sched"))
    assert runs > 0.7 * said["path"]["ns"]
    assert re.match(r"running in pigz|running in deflate", said["what_if"][0]["name"]), said["what_if"]


@pytest.mark.measured
def test_a_pool_whose_queue_is_its_limit(traced):
    """100 jobs of 1 ms with the lock make 100 ms; without it a fourth of 1.5 ms each."""
    said = why(traced([SINGLE / "known_reasons/queue"]).ok().trace)
    (finding,) = (f for f in said["findings"] if f["finding"] == "lock_held_across_io")
    assert re.search(r"queue, taken in JobQueue::take, is held .*\n.* <- JobQueue::take\(\)", finding["text"]), finding
    first = said["what_if"][0]
    assert first.get("lock") == "queue" and first["change"] == "free_lock" and 0.5 < first["gain"] < 0.75, first
