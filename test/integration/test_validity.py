"""`gotrace info --check`, and what is checked so before it is written: the verdict of Go's own reader on the same files."""

import os
import re

import pytest

from lib import BUILD, PROGRAMS, SINGLE, gotools, proc, wire
from lib.reports import GOTRACE
from lib.seeds import seeded

FUZZ = BUILD / "test/fuzz/schedules"
SEED = int(os.environ.get("FUZZ_FIRST", "1"))
BROKEN = int(os.environ.get("FUZZ_BROKEN", "40"))  # files of each format

formats = pytest.mark.parametrize("format", gotools.some("go1.5", "go1.22", "go1.26"))


def check(trace):
    """Whether it is taken, and what is said."""
    result = proc.run([GOTRACE, "info", "--check", trace])
    assert result.returncode in (0, 1) and not result.stderr, str(result)
    return result.returncode == 0, result.stdout


def refused(traces, format):
    """Those that the newest Go which reads the format refuses, or breaks down over."""
    reader = gotools.read_all(max(gotools.readers_of(format).items())[1])
    return {trace for trace in traces if (result := proc.run([reader, trace])).stdout or result.returncode}


def schedules(tmp_path, format, count):
    proc.run([FUZZ, format, str(SEED), str(count), tmp_path], timeout=60).ok()
    return sorted(path for path in tmp_path.iterdir() if path.suffix == ".trace")


# What is refused on purpose though that reader takes it: the frequency would be divided by; names that are not there make
# the web pages fail; and two events of one number are in no order.
STRICTER = ("the frequency is 0", "is not there", "have the number", "readers need higher ones")


@formats
def test_what_go_takes(tmp_path, format):
    traces = schedules(tmp_path, format, 10)
    assert traces and not refused(traces, format)
    for trace in traces:
        assert check(trace)[0], check(trace)[1]


@pytest.mark.chance
@pytest.mark.limit(100)
@formats
def test_what_is_broken(tmp_path, format):
    """Files in which one thing is another one: an argument, an event, a batch, an entry of a table; or that are cut."""
    chance, sources, traces = seeded("FUZZ_FIRST", 1), schedules(tmp_path, format, 6), []
    for i in range(BROKEN):
        traces.append(tmp_path / f"{i}.broken")
        traces[-1].write_bytes(wire.broken(chance.choice(sources).read_bytes(), chance))
    bad = refused(traces, format)
    assert len(bad) > BROKEN / 6  # many changes do no harm
    for trace in traces:
        taken, said = check(trace)
        on_purpose = any(words in said for words in STRICTER) or format == "go1.5"
        assert taken == (trace not in bad) or on_purpose, (said, trace, SEED)


# Go's rules, one by one: the damage to the first event of that name, and the message.
def change(index, value):
    def do(items, i):
        items[i].args[index] = value

    return do


def drop(items, i):
    del items[i]


def twice(items, i):
    items.insert(i, items[i])


RULES = [
    ("GoCreate", twice, "exists already"),
    ("GoStart", change(2, 9), "is never in the state for that"),
    ("GoStart", drop, "runs no goroutine|is said to be running"),
    ("GoUnblock", change(2, 77), "is never in the state for that"),
    ("GoBlock", change(2, 9999), "stack 9999 is not in its generation"),
    ("GoBlock", change(1, 9999), "string 9999 is not in its generation"),
    ("GoSyscallBegin", change(1, 99), "has the sequence number 99"),
    ("GoSyscallEnd", twice, "not in a call"),
    ("ProcStatus", change(2, 9), "which there is not"),
    ("ProcStart", change(2, 9), "is never in the state for that"),
    ("GoStatus", change(3, 9), "which there is not"),
    ("String", twice, "two strings have the id"),
    ("Stack", twice, "two stacks have the id"),
    ("Stack", change(3, 9999), "string 9999, of a frame"),
    ("Frequency", twice, "two frequencies"),
    ("Frequency", drop, "has no frequency"),
]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    trace = tmp_path_factory.mktemp("rules") / "t.out"
    proc.traced([PROGRAMS / "rounds"], trace, env={"GOTRACE_FORMAT": "go1.23"}).ok()
    return wire.read_v2(trace.read_bytes())


@pytest.mark.parametrize("name, do, said", RULES, ids=[f"{name}-{said.split()[-1]}" for name, _, said in RULES])
def test_rules(tmp_path, recorded, name, do, said):
    """Each is reported with its place, and the real Go refuses the same file."""
    header, batches = wire.read_v2(wire.write_v2(*recorded))
    trace = tmp_path / "t.out"
    batch, i = next((batch, i) for batch in batches for i, item in enumerate(batch.items) if item.name == name)
    do(batch.items, i)
    trace.write_bytes(wire.write_v2(header, batches))
    taken, text = check(trace)
    assert not taken and re.search(said, text) and ", generation " in text and "byte " in text, text
    assert refused([trace], "go1.23")
    info = proc.run([GOTRACE, "info", trace])
    assert "file         whole" not in info.stdout, info.stdout


def test_a_label_that_is_not_there(tmp_path):
    """Go's reader of v1 takes the file, and breaks down when the label is read."""
    trace = tmp_path / "t.out"
    proc.traced([SINGLE / "thread_names/given"], trace, env={"GOTRACE_FORMAT": "go1.21"}).ok()
    header, records = wire.read_v1(trace.read_bytes())
    next(record for record in records if record.name == "GoStartLabel").args[-1] = 99999
    trace.write_bytes(wire.write_v1(header, records))
    taken, text = check(trace)
    assert not taken and "string 99999 is not there" in text, text


@pytest.mark.parametrize("frames, takes", [(128, True), (129, False)])
def test_frames_of_v1_that_profile_pages_take(tmp_path, frames, takes):
    trace = tmp_path / "t.out"
    proc.traced([PROGRAMS / "rounds"], trace, env={"GOTRACE_FORMAT": "go1.21"}).ok()
    header, records = wire.read_v1(trace.read_bytes())
    for record in records:
        if record.name == "Stack" and record.args[0]:  # its id; then how many frames of PC, function, file, line
            record.args[1:] = [frames, *record.args[2:], *(n for i in range(record.args[1], frames) for n in (i, 0, 0, 0))]
    trace.write_bytes(wire.write_v1(header, records))
    taken, text = check(trace)
    assert taken == takes and (takes or "a stack has 129 frames, and viewers take 128 at most" in text), text
    profile = proc.run([*gotools.tool(gotools.find("1.26")), "-pprof=sync", trace])
    assert (profile.returncode == 0) == takes, profile


def test_a_cut_file_is_told_apart(tmp_path, recorded):
    trace = tmp_path / "t.out"
    trace.write_bytes(wire.write_v2(*recorded)[:-5])
    taken, said = check(trace)
    assert not taken and ": cut: " in said, said


def test_what_would_be_refused_does_not_get_the_name(tmp_path, recorded):
    """symbolize copies events as they are: what it makes of a trace that Go refuses is none."""
    header, batches = wire.read_v2(wire.write_v2(*recorded))
    items = next(batch.items for batch in batches if any(item.name == "GoCreate" for item in batch.items))
    twice(items, next(i for i, item in enumerate(items) if item.name == "GoCreate"))
    (tmp_path / "t.out").write_bytes(wire.write_v2(header, batches))
    result = proc.run([GOTRACE, "symbolize", "-o", tmp_path / "new.out", tmp_path / "t.out"])
    assert result.returncode == 1 and "not written: Go's reader refuses" in result.stderr, result
    assert [path.name for path in tmp_path.iterdir()] == ["t.out"]
