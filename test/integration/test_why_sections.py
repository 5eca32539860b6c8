"""`gotrace why` of a lock that threads need for less than a microsecond at a time."""

import re

import pytest

from lib import LIBRARY, SINGLE, SOURCES, proc
from test_why import findings, page

pytestmark = pytest.mark.measured

TOLD = re.compile(
    r"Short sections: (\d) threads wait for the lock (\w+), whose holds are too short for a log: (\d+) times, \S+ on average, and (\d+) times too briefly for an event\.\n"
    r"  Without these waits, and without the lack of a CPU after them \(\S+\), the run would take up to (\d+) % less; a lock for each part of what it guards may save that\."
)


def test_waits_without_a_hold(tmp_path):
    """Each lock call of two threads finds the mutex taken: half of them are waits, the others too brief."""
    library = proc.compile(SOURCES / "locks/taken_once.c", tmp_path / "waits.so", "-shared", "-fPIC", "-DWAITS")
    env = {"LD_PRELOAD": f"{LIBRARY} {library}", "GOTRACE_HOLD_MIN": "10s"}  # a holder may lose its CPU for long
    for times, told in (1000, True), (400, False):
        trace = proc.traced([SINGLE / "locks/counted", str(times)], tmp_path / "t.out", env=env).ok().trace
        found = findings(trace).get("short_sections")
        assert bool(found) == told, found
        if told:
            assert (words := TOLD.fullmatch(found["text"])) and words.groups()[:4] == ("2", "cache_lock", str(times), str(times)), found
            assert found["command"] == "top --by-lock" and "* Short sections: 2 threads wait for the lock cache_lock," in page(trace)


def test_what_more_locks_save(tmp_path):
    """The page names the lock of single/locks/sections.c, and the most that 64 locks in its place could save, which is more than they do save."""
    one, many = (proc.traced([SINGLE / "locks/sections", "4", shards, "50000"], tmp_path / f"{shards}.out").ok() for shards in ("1", "64"))
    took, (ns, *_, cpu_ns) = int(one.stdout.split()[0]), map(int, many.stdout.split())
    assert cpu_ns >= 1.6 * ns, "other processes have the CPUs: hardly ever do two of the threads run"
    assert "short_sections" not in findings(many.trace)
    text = findings(one.trace).get("short_sections", {"text": ""})["text"]
    named = re.search(r" the lock cache, .*up to (\d+) % less.*\n  It was given up to a waiter in (look_up|release) ", text, re.S)
    assert named and int(named[1]) / 100 > 1 - ns / took - 0.1, (text, 1 - ns / took)
