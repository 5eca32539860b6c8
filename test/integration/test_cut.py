"""`gotrace cut`, `convert` and the part that `view` shows: parts of a trace, and traces in other formats."""

import collections
import os
import random
import re
import shlex
import shutil
import signal
import subprocess

import pytest

from lib import BUILD, PROGRAMS, ROOT, SOURCES, gotools, proc, reports
from lib.pprof import varint
from lib.spans import SLACK, check_readers, differences, event_counts, sums, window
from lib.seeds import seeded

GOTRACE = ROOT / "build/gotrace"
SANITIZED = ROOT / "build/asan/gotrace"
FUZZ = BUILD / "test/fuzz/schedules"
CUTS = int(os.environ.get("FUZZ_CUTS", "12"))  # of each format; test/README.md says how many it were last
FIRST = int(os.environ.get("FUZZ_FIRST", "1"))
BATCH = 100

formats = pytest.mark.parametrize("format", gotools.some("go1.5"))


def cut(trace, part, *options):
    return proc.run([GOTRACE, "cut", *options, trace, "-o", part], timeout=120)


def cut_ns(trace, part, start, end):
    assert "contradict" not in cut(trace, part, f"--from={start}ns", f"--to={end}ns").ok().stderr
    return part


def convert(trace, format, new):
    result = proc.run([GOTRACE, "convert", f"--format={format}", trace, "-o", new], timeout=120).ok()
    assert "contradict" not in result.stderr
    return new


def states(trace, start=0, end=1 << 62, reasons=True):
    """(goroutine, state, reason) → ns in that window, by Go's own reader of the format."""
    events = [e for e in gotools.parse(trace) if e.kind != "Sync"]
    zero, now, spans = events[-1].time - sums(trace)[None], {}, collections.Counter()

    def add(goid, until):
        state, reason, since = now[goid]
        ns = min(until - zero, end) - max(since - zero, start)
        if ns > 0 and state != "NotExist":
            spans[goid, state, reason if reasons else ""] += ns

    for e in events:
        if e.goid is None or (e.goid in now and e.old == e.new):
            continue
        if e.goid in now:
            add(e.goid, e.time)
        now[e.goid] = e.new, e.reason if e.new == "Waiting" else "", zero if e.old == "Undetermined" else e.time
    for goid in now:
        add(goid, max(e.time for e in events))
    return spans


# --- Known truth


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A function: a trace of that program in that format, recorded once; what it printed."""
    known = {}

    def record(format, program="truth", *args, **env):
        key = format, program, args, tuple(env.items())
        if key not in known:
            trace = tmp_path_factory.mktemp(program) / f"{format}.out"
            env = {"GOTRACE_FORMAT": format} | env
            known[key] = trace, proc.traced([PROGRAMS / program, *args], trace, env=env).ok().stdout
        return known[key]

    return record


@formats
def test_parts_of_known_waits(recorded, tmp_path, format):
    """Every thread has done in a part what it did in that time of the whole, by our reader and by Go's; so has a part of
    a part; and the parts make the whole."""
    trace, _ = recorded(format)
    length = sums(trace)[None]
    first, last = length // 3, length * 3 // 4
    part = cut_ns(trace, tmp_path / "part.out", first, last)
    again = cut_ns(part, tmp_path / "again.out", length // 10, length // 5)
    rest = [cut_ns(trace, tmp_path / f"{a}.out", a, b) for a, b in ((0, first), (last, length))]
    check_readers(format, part, again, *rest)
    expected = window(trace, first, last)
    assert not differences(sums(part), expected), "a part"
    expected = window(trace, first + length // 10, first + length // 5)
    assert not differences(sums(again), expected), "a part of a part"
    together = sum((sums(file) for file in (part, *rest)), collections.Counter())
    assert not differences(together, sums(trace), 3 * SLACK), "all parts"
    if gotools.FORMATS[format][1] is None:  # which Go's newest reader prints
        assert not differences(states(part), states(trace, first, last), 2 * SLACK)


@pytest.mark.parametrize("format", gotools.some("go1.11", "go1.22", of=["go1.11", "go1.22", "go1.26"]))
def test_a_part_that_begins_before_a_thread_does(recorded, tmp_path, format):
    """A thread that was made and has not begun: where it will, and who made it or nobody; also in a part of that part."""
    trace, _ = recorded(format)
    events = gotools.parse(trace)
    made = {e.goid: e for e in events if e.goid and e.old == "NotExist" and e.new == "Runnable"}
    begun = {e.goid: e.time for e in reversed(events) if e.new == "Running" and e.goid in made}
    first, parts = events[0].time, []
    for goid, begins in begun.items():
        start, room = (made[goid].time + begins) // 2 - first, (begins - made[goid].time) // 2
        part = cut_ns(trace, tmp_path / f"{goid}.part.out", start, start + room + 50_000_000)
        again = cut_ns(part, tmp_path / f"{goid}.again.out", room // 2, room + 40_000_000)
        parts += [part, again]
        for file in (part, again):
            (told,) = (e for e in gotools.parse(file) if e.goid == goid and e.old == "NotExist")
            assert told.transition_stack[0].func == made[goid].transition_stack[0].func, (file, told)
            assert told.g in (made[goid].g, -1), (file, told, made[goid])
    assert len(parts) >= 10
    check_readers(format, *parts)


@formats
def test_convert(recorded, tmp_path, format):
    """Into every other format and back: read by every Go that reads it, and the same threads did the same."""
    trace, _ = recorded(format)
    own, own_states = sums(trace, where=False), None
    for other in gotools.some("go1.5", "go1.11", "go1.22", "go1.26"):
        new = convert(trace, other, tmp_path / f"{other}.out")
        back = convert(new, format, tmp_path / f"{other}.back.out")
        check_readers(other, new)
        check_readers(format, back)
        for file in (new, back):
            assert not differences(sums(file, where=False), own, 2 * SLACK), (other, file)
        if gotools.FORMATS[format][1] is None and gotools.FORMATS[other][1] is None:
            own_states = own_states or states(trace, reasons=False)
            # Each time is rounded to the format's unit.
            assert not differences(states(new, reasons=False), own_states, 4 * SLACK), other


def test_convert_says_what_is_lost(recorded, tmp_path):
    trace, _ = recorded("go1.26")
    result = proc.run([GOTRACE, "convert", "--format=go1.10", trace, "-o", tmp_path / "t.out"]).ok()
    assert re.search(r"go1\.10 cannot say: .*annotations.*CPU samples.*time of day", result.stderr), result
    result = proc.run([GOTRACE, "convert", "--format=go1.26", tmp_path / "t.out", "-o", tmp_path / "u.out"]).ok()
    assert "cannot say" not in result.stderr, result


# --- What a part says at its beginning


@pytest.fixture
def middle(recorded, tmp_path):
    """A function: 40 ms before and after what is in the middle of parts.c, of a trace in that format."""

    def make(format):
        trace, printed = recorded(format, "parts")
        part = tmp_path / "part.out"
        cut(trace, part, "--around=log:middle", "--margin=40ms").ok()
        return trace, part, [int(n) for n in printed.split()[:3]]

    return make


@pytest.mark.parametrize("format", gotools.some(of=[f for f in gotools.FORMATS if int(f.split(".")[1]) >= 11]))
def test_who_waits_all_the_time(middle, format):
    """Names, routines, reasons and stacks of waits that are open at both ends, and what lock that is for."""
    _, part, (boss, worker, reader) = middle(format)
    check_readers(format, part)
    rows = reports.shares(part)
    assert set(rows) == {boss, worker, reader}
    if int(format.split(".")[1]) >= 22:  # before, the trace has a name when its thread begins to run again
        assert [rows[tid].name for tid in (boss, worker, reader)] == ["boss", "worker", "reader"]
    text = proc.run([GOTRACE, "info", part]).ok().stdout
    assert re.search(rf"^ +{worker}  \S+ +worker ", text, re.M), text  # where it began
    found = sums(part)
    length = found.pop(None)
    assert length == 80_000_000
    waits = {(kind, leaf): ns for (_, kind, leaf), ns in found.items() if ns > 0.99 * length}
    assert {("sync", "pthread_mutex_lock"), ("syscall", "read"), ("running", "-")} == set(waits), found
    holders = proc.run([GOTRACE, "top", "--holders", part]).ok().stdout
    assert "table_lock" in holders, holders


@pytest.mark.parametrize("format", gotools.some("go1.22", of=["go1.11", "go1.21", "go1.22", "go1.26"]))
def test_open_tasks_and_regions(middle, format):
    _, part, _ = middle(format)
    kinds = event_counts(part)
    events = gotools.parse(part)
    first = min(e.time for e in events if e.kind != "Sync")
    begun = [e for e in events if e.kind in ("RegionBegin", "TaskBegin")]
    assert all(e.time - first < 1_000_000 for e in begun), begun
    assert sorted(e.fields["Type"] for e in begun) == ["inner", "outer", "request"], begun
    assert [e.fields["Type"] for e in begun if e.kind == "RegionBegin"] == ["outer", "inner"]
    assert not kinds.get("UserTaskEnd") and not kinds.get("UserRegionEnd")


def test_only_these_threads(recorded, tmp_path):
    for format in ("go1.11", "go1.23", "go1.26"):
        trace, printed = recorded(format, "parts")
        part = tmp_path / f"{format}.out"
        worker = int(printed.split()[1])
        cut(trace, part, "--threads=^worker$").ok()
        check_readers(format, part)
        assert list(reports.shares(part)) == [worker]
        (g,) = {key[0] for key in sums(part) if key}
        whole = {key: ns for key, ns in sums(trace).items() if key and key[0] == g and key[1] != "sched"}
        some = {key: ns for key, ns in sums(part).items() if key and key[1] != "sched"}
        assert not differences(collections.Counter(whole), collections.Counter(some)), format
        refused = cut(trace, tmp_path / "none.out", "--threads=nobody")
        assert refused.returncode == 1 and "no such thread" in refused.stderr, refused


@pytest.mark.measured
@pytest.mark.parametrize("format", gotools.some("go1.7", "go1.19", of=["go1.7", "go1.19", "go1.23", "go1.26"]))
def test_accounts_and_samples(recorded, tmp_path, format):
    """What the kernel counted and sampled: of three parts, together that of the whole."""
    trace, _ = recorded(format, "parts", GOTRACE_CPU_HZ="1000")
    length = sums(trace)[None]
    times = [0, length // 4, length // 2, length]
    parts = [cut_ns(trace, tmp_path / f"{a}.out", a, b) for a, b in zip(times, times[1:])]
    check_readers(format, *parts)

    def used(file):
        return sum(row.lived * row.cpu / 100 for row in reports.shares(file).values())

    assert abs(sum(map(used, parts)) - used(trace)) < 0.02 * used(trace) + 1e6
    if int(format.split(".")[1]) >= 19:
        counts = [event_counts(file).get("CPUSample", 0) for file in (trace, *parts)]
        assert counts[0] > 5 and abs(counts[0] - sum(counts[1:])) <= 1, counts


def test_end_of_the_whole(recorded, tmp_path):
    """Who waits when the trace ends stands in a part that reaches that, and in no other."""
    trace, _ = recorded("go1.23", "unended")
    length = sums(trace)[None]
    marks = {}
    for name, end in (("whole", 2 * length), ("before", length * 9 // 10)):
        part = cut_ns(trace, tmp_path / f"{name}.out", length // 2, end)
        check_readers("go1.23", part)
        marks[name] = b"gotrace-waits " in part.read_bytes(), "whole: no part" in proc.run([GOTRACE, "info", part]).stdout
    assert marks["before"] == (False, True) and marks["whole"][1], marks
    assert marks["whole"][0] == (b"gotrace-waits " in trace.read_bytes())


# --- Around something


def test_around(recorded, tmp_path):
    trace, printed = recorded("go1.23", "parts")
    before, after = map(int, printed.split()[3:])
    part = tmp_path / "part.out"
    said = cut(trace, part, "--around=longest").ok().stderr
    assert re.search(r"longest is from \S+ to \S+", said), said
    assert before + after < sums(part)[None] < 1.2 * sums(trace)[None]
    cut(trace, part, "--around=task:request").ok()
    assert before + after < sums(part)[None]
    cut(trace, part, "--around=task:inner", "--margin=1ms").ok()
    assert before + after < sums(part)[None]
    cut(trace, part, "--around=log:middle", "--margin=1ms").ok()
    (log,) = (e for e in gotools.parse(part) if e.fields.get("Message") == "middle")
    assert log.kind == "Log" and 1e6 < sums(part)[None] < 3e6
    for what in ("task:nothing", "log:nothing"):
        refused = cut(trace, tmp_path / "none.out", f"--around={what}")
        assert refused.returncode == 1 and "nothing like" in refused.stderr, refused


def test_from_the_end(recorded, tmp_path):
    trace, _ = recorded("go1.23")
    length = sums(trace)[None]
    part = tmp_path / "part.out"
    cut(trace, part, "--from=-100ms", "--to=-20ms").ok()
    assert sums(part)[None] == 80_000_000
    assert not differences(sums(part), window(trace, length - 100_000_000, length - 20_000_000))


# --- Random schedules


@pytest.mark.parametrize("format", gotools.some("go1.22", of=[f for f in gotools.FORMATS if int(f.split(".")[1]) >= 22]))
def test_nobody_is_there_but_who_has_not_begun(tmp_path, format):
    """Generations in which all threads have ended but one that is to begin: each says of that one that it is there."""
    proc.run([FUZZ, format, 20335, 1, tmp_path]).ok()
    check_readers(format, cut_ns(tmp_path / f"{format}-20335.trace", tmp_path / "part.out", 198490355, 310877199))


@pytest.mark.parametrize("format", gotools.some("go1.22", of=[f for f in gotools.FORMATS if int(f.split(".")[1]) >= 22]))
def test_a_part_that_begins_in_a_call_that_has_taken_a_p(tmp_path, format):
    """Who tells something in a call takes a P for that, which it may keep until the call is over: no other thread takes it away."""
    proc.run([FUZZ, format, 190, 20, tmp_path], timeout=60).ok()
    parts = []
    for trace in sorted(tmp_path.glob("*.trace")):
        events = gotools.parse(trace, go=gotools.find("1.26"))
        first, calling, taken = events[0].time, set(), []
        for e, after in zip(events, events[1:]):
            if e.goid:
                (calling.add if e.new == "Syscall" else calling.discard)(e.m)
            takes = e.procid is not None and (e.old, e.new) == ("Idle", "Running")
            if takes and e.m in calling and after.time - e.time > SLACK:
                taken.append((e.time + after.time) // 2 - first)
        for start in taken[-3:]:
            end = sums(trace)[None]
            parts.append(cut_ns(trace, tmp_path / f"{trace.name}.{start}", start, end))
            assert not (wrong := differences(sums(parts[-1]), window(trace, start, end))), (trace, start, wrong)
    assert len(parts) >= 5
    check_readers(format, *parts)


@pytest.mark.chance
@pytest.mark.limit(3600)
@pytest.mark.parametrize("format", gotools.some("go1.5", "go1.22", "go1.26"))
def test_random_cuts(tmp_path, format):
    """Two cuts of each random schedule, at random places: none is refused, and everybody did the same as in the whole."""
    for first in range(FIRST, FIRST + CUTS // 2, BATCH):
        count = min(BATCH, FIRST + CUTS // 2 - first)
        proc.run([FUZZ, format, first, count, tmp_path], timeout=600).ok()
        chance, parts = random.Random(first), []
        for trace in sorted(tmp_path.glob("*.trace")):
            length = sums(trace)[None]
            for i in range(2 if length > 10 else 0):
                start = chance.randrange(length * 9 // 10 + 1)
                end = start + chance.randrange(1, length * 6 // 10 + 2)
                parts.append(cut_ns(trace, tmp_path / f"{trace.name}.{i}", start, end))
                expected = window(trace, start, end)
                wrong = differences(sums(parts[-1]), expected)
                assert not wrong, f"{trace} {start} {end}; repeat: {FUZZ} {format} {first} {count} .\n{wrong}"
        check_readers(format, *parts)
        for file in tmp_path.iterdir():
            file.unlink()


# --- Large files


def encoded(number):
    text = bytearray()
    while number >= 0x80:
        text.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*text, number])


def batches(data):
    """Generation → its batches, each as (head up to the time, time, the rest)."""
    pos, found = 16, collections.defaultdict(list)
    while pos < len(data):
        gen, p = varint(data, pos + 1)
        thread, p = varint(data, p)
        time, p = varint(data, p)
        size, q = varint(data, p)
        found[gen].append((encoded(thread), time, data[p : q + size], data[q]))
        pos = q + size
    return found


def repeat_generation(trace, new, size):
    """A file of that size: a generation again and again, each later, in which nobody begins, ends or changes state."""
    data = trace.read_bytes()
    found = batches(data)
    numbers = list(found)
    begin = {gen: min(t for _, t, _, kind in found[gen] if t and kind not in (2, 4, 6, 8)) for gen in numbers}
    body = max(numbers[1:-1], key=lambda gen: sum(len(b[2]) for b in found[gen]))
    length = begin[body + 1] - begin[body]
    with open(new, "wb") as file:
        file.write(data[:16])
        number, shift = numbers[0], 0
        for gen in [g for g in numbers if g < body] + [None]:
            while gen is None and file.tell() < size or gen is not None:
                of = body if gen is None else gen
                for head, time, rest, _ in found[of]:
                    file.write(b"\1" + encoded(number) + head + encoded(time + shift if time else 0) + rest)
                number += 1
                shift += length if gen is None else 0
                if gen is not None:
                    break


@pytest.fixture(scope="module")
def storm(tmp_path_factory):
    """A trace with more events than the viewer can show."""
    where = tmp_path_factory.mktemp("storm")
    program = proc.compile(SOURCES / "cut/storm.c", where / "storm", "-O2")
    proc.traced([program], where / "t.out", timeout=60).ok()
    return where / "t.out"


@pytest.mark.long
def test_out_of_a_large_file(storm, tmp_path):
    """Of what is before little is read, and yet the part says the same."""
    large = tmp_path / "large.out"
    repeat_generation(storm, large, 240 << 20)
    length = sums(large)[None]
    start = length - 1_500_000_000
    times = f"--from={start}ns", f"--to={start + 200_000_000}ns"
    said = cut(large, tmp_path / "quick.out", *times).ok().stderr
    assert (found := re.search(r"of the (\d+) MiB before .* are looked for in (\d+)", said)), said
    assert int(found[2]) < int(found[1]) / 2
    said = cut(large, tmp_path / "thorough.out", "--thorough", *times).ok().stderr
    assert "looked for in" not in said, said
    check_readers("go1.23", tmp_path / "quick.out", tmp_path / "thorough.out")
    expected = window(large, start, start + 200_000_000)
    for name in ("quick", "thorough"):
        assert not differences(sums(tmp_path / f"{name}.out"), expected), name


def test_a_terminal_sees_how_far_it_is(storm, tmp_path):
    """What takes long says so: the part that was read, then what is done with that; a file has one line."""
    large = tmp_path / "large.out"
    repeat_generation(storm, large, 70 << 20)
    why = [GOTRACE, "why", large]
    on_terminal = proc.run(["script", "-qec", shlex.join(map(str, why)), "/dev/null"], timeout=60).ok().stdout
    shares = [int(share) for share in re.findall(r"\ngotrace: reading \S+: +(\d+) %", on_terminal)]  # \r, as text
    assert shares == sorted(shares) and len(shares) > 50 and shares[0] < 5 and shares[-1] > 95, shares
    assert "gotrace: trying what would help\n\x1b[K" in on_terminal[on_terminal.rindex("reading") :]
    result = proc.run(why, timeout=60).ok()
    assert re.fullmatch(r"gotrace: reading \S+, 7\d MiB\n", result.stderr)


def shown(trace, *options):
    """What `gotrace view` says before the viewer is there."""
    argv = [GOTRACE, "view", "--no-browser", f"--go={gotools.find()}", *options, trace]
    viewer = proc.spawn(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert viewer.stdout.readline().startswith("http://"), viewer.stderr.read()
        assert proc.stop(viewer, sig=signal.SIGINT) == 0
        return viewer.stderr.read()
    finally:
        proc.kill_group(viewer)


def test_the_viewer_gets_what_it_can_show(storm, recorded, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    trace, _ = recorded("go1.23")
    assert "more events" in (said := shown(storm)) and f"reading {tmp_path}" in said, said
    assert "more events" not in (said := shown(storm, "--from=1s", "--to=1.1s")) and f"reading {tmp_path}" in said, said
    assert f"reading {trace} " in shown(trace)
    assert not list(tmp_path.iterdir())
    said = shown(storm, "--at=1.5s")
    part = re.search(r"this is ([\d.]+)(m?s) to ([\d.]+)(m?s) of it;", said)
    begin, end = (float(part[i]) * {"s": 1, "ms": 0.001}[part[i + 1]] for i in (1, 3))
    assert begin <= 1.5 <= end <= begin + 1.001, said
    assert proc.run([GOTRACE, "view", "--whole", "--from=1s", trace]).returncode == 2
    assert proc.run([GOTRACE, "view", "--at=1h", trace]).returncode == 2


# --- Bad input


def test_bad_input(recorded, tmp_path):
    """A clear message, an exit status, and no output."""
    trace, _ = recorded("go1.23")
    part = tmp_path / "part.out"
    (tmp_path / "empty").touch()
    (tmp_path / "foreign").write_bytes(b"\x7fELF" + bytes(1000))
    os.mkfifo(tmp_path / "fifo")
    for file, status in ((tmp_path / "missing", 1), (tmp_path / "empty", 1), (tmp_path / "foreign", 1), ("/dev/zero", 1)):
        for argv in (["cut", file, "-o", part], ["convert", "--format=go1.26", file, "-o", part]):
            result = proc.run([GOTRACE, *argv])
            assert result.returncode == status and result.stderr.startswith("gotrace: "), result
    for options in (
        ["--from=2s", "--to=1s"],
        ["--from=x"],
        ["--around=it"],
        ["--around=longest", "--from=1s"],
        ["--margin=1s"],
        ["--threads=["],
    ):
        result = cut(trace, part, *options)
        assert result.returncode == 2 and result.stderr.startswith("gotrace: "), result
    assert cut(trace, part, "--from=1h").returncode == 1
    assert cut(trace, trace).returncode == 2, "output = input"
    link = tmp_path / "link"
    link.symlink_to(trace)
    assert cut(trace, link).returncode == 2
    assert cut(trace, tmp_path / "fifo").returncode == 1
    assert cut(trace, tmp_path / "no/such/directory").returncode == 1
    assert proc.run([GOTRACE, "convert", "--format=go1.99", trace, "-o", part]).returncode == 2
    assert not part.exists() and not list(tmp_path.glob("part.out*"))


@pytest.mark.parametrize("format", ["go1.5", "go1.11", "go1.26"])
@pytest.mark.parametrize("kilobytes", [0, 1, 4])
@pytest.mark.parametrize("ignored", [True, False])
def test_no_room(recorded, tmp_path, format, kilobytes, ignored):
    """A file that cannot be as large, be the signal for that ignored: what stands there stays, and nothing beside it."""
    trace, _ = recorded("go1.23")
    (tmp_path / "o").write_text("mine")
    script = "trap '' XFSZ;" if ignored else ""
    script += f'ulimit -f {kilobytes}; exec "$0" convert --format={format} "$1" -o "$2"'
    result = proc.run(["bash", "-c", script, GOTRACE, trace, tmp_path / "o"])
    assert result.returncode == (1 if ignored else -signal.SIGXFSZ), result
    assert not ignored or "File too large" in result.stderr, result
    assert os.listdir(tmp_path) == ["o"] and (tmp_path / "o").read_text() == "mine"


@pytest.mark.chance
@pytest.mark.limit(600)
@pytest.mark.parametrize("format", gotools.some("go1.5", "go1.11", of=["go1.5", "go1.11", "go1.23", "go1.26"]))
@pytest.mark.long
def test_damaged_input(recorded, tmp_path, format):
    """Cut off anywhere, or with wrong bytes: a message or a result, and nothing read that is not there."""
    trace, _ = recorded(format)
    data, chance = trace.read_bytes(), seeded("FUZZ_FIRST", 1)
    command = SANITIZED if SANITIZED.exists() else GOTRACE
    bad, part = tmp_path / "bad.out", tmp_path / "part.out"
    for i in range(60):
        wrong = bytearray(data[: chance.randrange(16, len(data))] if i % 2 else data)
        for _ in range(chance.randrange(0, 8) if i % 2 else 8):
            wrong[chance.randrange(16, len(wrong))] = chance.randrange(256)
        bad.write_bytes(wrong)
        for argv in (["cut", "--from=50ms", "--to=200ms"], ["convert", "--format=go1.23"]):
            result = proc.run([command, *argv, bad, "-o", part], timeout=60, env={"ASAN_OPTIONS": "detect_leaks=0"})
            assert result.returncode in (0, 1), result
            assert part.exists() == (result.returncode == 0), result
            part.unlink(missing_ok=True)


def beginnings(trace, directory, parts, of):
    """(i, a file with the first i of so many parts of the trace), one after the other; go1.5's has its ELF file beside it."""
    bad, elf, data = directory / "bad.out", trace.with_name(f"{trace.name}.elf"), trace.read_bytes()
    if elf.exists():
        shutil.copy(elf, f"{bad}.elf")
    for i in parts:
        bad.write_bytes(data[: len(data) * i // of])
        yield i, bad


@formats
def test_cut_off(recorded, tmp_path, format):
    """A trace whose end is missing: its whole generations."""
    trace, _ = recorded(format)
    parts = []
    for i, bad in beginnings(trace, tmp_path, range(3, 10), 10):
        parts.append(tmp_path / f"part{i}.out")
        cut(bad, parts[-1], "--from=20ms").ok()
    check_readers(format, *parts)


@pytest.mark.parametrize("format", gotools.some("go1.5", of=[f for f in gotools.FORMATS if int(f.split(".")[1]) < 22]))
def test_cut_off_and_converted(recorded, tmp_path, format):
    """A v1 trace whose end is missing lacks the last events of some Ps. The command mends what contradicts itself."""
    trace, _ = recorded(format, "waits")
    parts = []
    for i, bad in beginnings(trace, tmp_path, range(1, 60), 60):
        parts.append(tmp_path / f"part{i}.out")
        proc.run([GOTRACE, "convert", "--format=go1.23", bad, "-o", parts[-1]]).ok()
    check_readers("go1.23", *parts)


@pytest.mark.parametrize("format", gotools.some("go1.5", of=[f for f in gotools.FORMATS if int(f.split(".")[1]) < 22]))
@pytest.mark.parametrize("schedule", [4, 43])
def test_mended_events_are_counted(tmp_path, format, schedule):
    """The command prints how many events it mended. Some cuts of these two schedules leave such events."""
    proc.run([FUZZ, format, schedule, 1, tmp_path]).ok()
    trace = tmp_path / f"{format}-{schedule}.trace"
    data, parts, said = trace.read_bytes(), [], ""
    for i in range(3, 30):
        trace.write_bytes(data[: len(data) * i // 30])
        parts.append(tmp_path / f"part{i}.out")
        said += proc.run([GOTRACE, "convert", "--format=go1.23", trace, "-o", parts[-1]]).ok().stderr
    assert re.search(f"{trace}: damaged: [1-9]\\d* events contradict others, and are left out or mended\n", said), said
    check_readers("go1.23", *parts)


@pytest.mark.chance
@pytest.mark.parametrize("format", gotools.some("go1.5", of=[f for f in gotools.FORMATS if int(f.split(".")[1]) < 22]))
def test_schedules_cut_off_and_converted(tmp_path, format):
    """Each random schedule ends somewhere in its second half, twice: in calls, collections, waits, in many threads."""
    proc.run([FUZZ, format, FIRST, 3 * CUTS, tmp_path], timeout=60).ok()
    chance, parts = seeded("FUZZ_FIRST", 1), []
    for trace in sorted(tmp_path.glob("*.trace")):
        data = trace.read_bytes()
        for n in range(2):
            trace.write_bytes(data[: chance.randrange(len(data) // 2, len(data))])
            parts.append(tmp_path / f"{trace.name}.part{n}")
            proc.run([GOTRACE, "convert", "--format=go1.23", trace, "-o", parts[-1]]).ok()
    check_readers("go1.23", *parts)
