"""`gotrace why`: locks that are futexes, guards of statics, herds, and read-write locks. The programs know which thread waits
for which."""

import re

import pytest

from lib import SINGLE, SOURCES, proc
from test_why import findings, page, why

pytestmark = pytest.mark.measured


def said(traced, program, ms):
    """The trace, its report, and the times in ms that the program printed. ms: the first time, as its sleeps make it."""
    result = traced([program]).ok()
    times = list(map(float, result.stdout.split()))
    assert times[0] < 1.1 * ms, times  # else other processes had the CPUs
    return result.trace, why(result.trace), times


def test_a_static_that_others_wait_for(traced, tmp_path):
    """One thread initialises two statics: its work is no part that others could have had."""
    program = proc.compile(SOURCES / "why/statics.cc", tmp_path / "statics", compiler="g++")
    trace, report, (constructed, took) = said(traced, program, 300)
    found = findings(trace)
    text = " ".join(found["static_initialised"]["text"].split())
    assert "imbalance" not in found and not [c for c in report["what_if"] if c["change"] in ("even", "free_lock")], report
    assert "other threads waited 6 times for that" in text, text
    assert re.search(r"Waits for a static: (german|english)\(\)::words, taken in \1\(\), is ", text), text
    part = int(re.search(r"The initialisation is (\d+) % of the critical path", text)[1])
    assert abs(part / 100 - constructed / took) < 0.05 and "< read_block" in text, (text, constructed, took)
    assert page(trace).splitlines()[2].startswith("* Waits for a static: ")


@pytest.mark.needs("rustc")
def test_the_holder_of_a_mutex_of_rust(traced, tmp_path):
    """The path is in the mutex's holders, also while no thread waits for it, and what they do with it is no uneven part."""
    proc.run(["rustc", "-O", "-g", "-o", tmp_path / "guards", SOURCES / "why/guards.rs"], timeout=60).ok()
    trace, report, (took, longest) = said(traced, tmp_path / "guards", 360)
    row = report["path"]["rows"][0]
    assert row["count"] == 36 and row["what"] in ("nanosleep", "clock_nanosleep") and row["lock"], row  # by the age of Rust
    found = findings(trace)
    assert "lock_held_across_io" in found and not {"imbalance", "serialised_pool"} & set(found), found
    changes = {c["change"]: c for c in report["what_if"]}
    assert "even" not in changes and changes["free_lock"]["lock"] == row["lock"], changes
    assert abs(changes["free_lock"]["gain"] - (1 - longest / took)) < 0.1, (changes, longest, took)


@pytest.mark.urgent
def test_a_herd_that_takes_the_cpus_comes_first(traced):
    """A lack of CPUs, or of work, has its reason in threads that are woken for nothing."""
    result = traced([SINGLE / "why/crowd"], timeout=100).ok()
    wakes, vain = map(int, result.stdout.split())
    assert vain > 0.5 * wakes, (wakes, vain)
    told = why(result.trace)["findings"]
    names = [f["finding"] for f in told]
    part, of = map(int, re.search(r"After (\d+) % of (\d+) wake-ups", told[0]["text"]).groups())
    assert abs(part - 100 * vain / wakes) <= 5 and abs(of - wakes) <= 0.05 * wakes, (told[0], wakes, vain)
    assert names[0] == "thundering_herd" and "false_idle" not in names, names
    assert page(result.trace).splitlines()[2].startswith("* Thundering herd: in pthread_cond_wait <- take_item ")


@pytest.mark.urgent
def test_readers_that_starve_a_writer(traced):
    """The lock is named; what readers do is no cause, as a run with other lengths of it ends at another moment."""
    result = traced([SINGLE / "why/starves"], timeout=100).ok()
    waited, took, passed = map(float, result.stdout.split())
    assert waited > 0.5 * took and passed > 20, (waited, took, passed)
    text = " ".join(findings(result.trace)["writer_starvation"]["text"].split())
    waits, took_all, milli, rounds = re.search(r"table_lock is waited for in pthread_rwlock_wrlock <- update .* In (\d+) waits?, ([\d.]+)(m?)s in all, .* again (\d+) times", text).groups()
    assert 0.5 * waited < float(took_all) * (1 if milli else 1000) < 1.1 * waited and 0 < int(rounds) <= passed, (text, waited, passed)
    report = why(result.trace)
    assert report["findings"][0]["finding"] == "writer_starvation" and not report["what_if"], report
    assert "holder_without_cpu" not in findings(result.trace), report  # the writer's own hold is short
    shown = " ".join(page(result.trace).split())
    assert "* Writer starvation: table_lock " in shown
    # What the last reader did may be all of the path: then it is the replay that is off.
    assert "when readers let a writer in depends on all of them" in shown or "no predictions are printed" in shown, shown
