"""`gotrace merge`: traces of several processes on one timeline."""

import collections
import json
import os
import re
import shutil

import pytest

from lib import BUILD, PROGRAMS, ROOT, SINGLE, gotools, proc, reports
from lib.spans import SLACK, check_readers, differences, event_counts, sums, window
from lib.seeds import seeded

GOTRACE = ROOT / "build/gotrace"
SANITIZED = ROOT / "build/asan/gotrace"
FUZZ = BUILD / "test/fuzz/schedules"
MERGES = int(os.environ.get("FUZZ_MERGES", "4"))  # of each format; test/README.md says how many it were last
FIRST = int(os.environ.get("FUZZ_FIRST", "1"))
CLOCK = 50_000  # ns between our clock and the program's, at most, where nothing comes between

formats = pytest.mark.parametrize("format", gotools.some("go1.5", "go1.22", "go1.26"))


def merge(traces, merged, *options, **env):
    return proc.run([GOTRACE, "merge", *options, *traces, "-o", merged], timeout=300, env=env)


def merged_of(traces, merged, *options):
    merge(traces, merged, *options).ok()
    return merged


def minor(format):
    return int(format.removeprefix("go1."))


def totals(spans):
    """(kind, function) → ns, of all goroutines."""
    found = collections.Counter()
    for key, ns in spans.items():
        if key is not None:
            found[key[1:]] += ns
    return found


# --- Known truth


class Family:
    """A run of prog/family.c: the traces of its processes, the parent's first, and what it says of itself."""

    def __init__(self, where, format, *ahead):
        result = proc.run([PROGRAMS / "family", *ahead], env=proc.traced_env(where / "%p.out", {"GOTRACE_FORMAT": format}))
        if result.returncode == 77:
            pytest.skip("needs the right to make a time namespace")
        said = result.ok().stdout
        lines = [line.split() for line in said.splitlines()]
        self.steps = {name: (int(pid), int(before), int(after)) for kind, name, pid, before, after in
                      (line for line in lines if line[0] == "at")}  # fmt: skip
        ((waiter, *wait),) = (line[1:] for line in lines if line[0] == "wait")
        self.wait = tuple(map(int, wait))
        self.parent, self.waiter = self.steps["parent-begins"][0], int(waiter)
        self.reader = self.steps["child-read"][0]
        self.pids = self.parent, self.waiter, self.reader
        self.traces = [where / f"{pid}.out" for pid in self.pids]


@pytest.fixture(scope="module")
def family(tmp_path_factory):
    known = {}

    def run(format):
        if format not in known:
            known[format] = Family(tmp_path_factory.mktemp("family"), format)
        return known[format]

    return run


def logs(events, category):
    return [e for e in events if e.kind == "Log" and e.fields["Category"] == category]


def check_steps(family, steps, slack):
    """There is one shift between the merged trace's clock and the program's with which every log is where it was."""
    assert steps.keys() == family.steps.keys()
    least = max(before - steps[name] for name, (_, before, _) in family.steps.items())
    most = min(after - steps[name] for name, (_, _, after) in family.steps.items())
    assert least <= most + slack, f"off by {least - most} ns: {steps} {family.steps}"


def told_by_all(found):
    """Without what only a merge tells: what a process does before it is recorded, and when the mutex was given up."""
    told = collections.Counter({key: ns for key, ns in found.items() if key[0] != "unseen"})
    told["sched", "-"] += told.pop(("sync", "pthread_mutex_lock"))
    return told


@formats
def test_known_family(family, tmp_path, format):
    """Read by every Go that reads the format; each moment is where it was; so is every state; a child is its parent's."""
    its = family(format)
    all = merged_of(its.traces, tmp_path / "all.out")
    check_readers(format, all)
    expected = sum((totals(sums(trace)) for trace in its.traces), collections.Counter())
    found = totals(sums(all))
    assert not differences(told_by_all(found), told_by_all(expected), 10 * SLACK)
    ((least, most),) = [its.wait]
    locked = sum(ns for (kind, what), ns in found.items() if what == "pthread_mutex_lock" and kind == "sync")
    assert format == "go1.5" or least - CLOCK <= locked <= most + CLOCK, (least, locked, most)
    if minor(format) < 11:
        return
    events = gotools.parse(all)
    check_steps(its, {e.fields["Message"]: e.time for e in logs(events, "step")}, CLOCK)
    (held,) = [e for e in logs(events, "held by") if "/main, shared " in e.fields["Message"]]
    holder = re.fullmatch(rf"G(\d+) family\.{its.parent}/main, .*", held.fields["Message"])
    assert holder, held
    assert {e.m for e in events if e.g == int(holder[1]) and e.m in its.pids} == {its.parent}
    first = {}  # goroutine → who made it; thread → its first goroutine
    for e in events:
        if e.is_go("NotExist", "Runnable"):
            first.setdefault(e.goid, e.m)
    of = {e.m: e.g for e in logs(events, "step")}
    assert [first.get(of[pid]) for pid in (its.waiter, its.reader)] == [its.parent] * 2


@pytest.mark.measured
def test_names_and_accounts(family, tmp_path):
    """Threads have their process' name and their own, are known by the kernel's number, and have used as much CPU."""
    its = family("go1.23")
    all = merged_of(its.traces, tmp_path / "all.out")
    rows = reports.shares(all)
    assert {rows[pid].name for pid in its.pids} == {f"family.{pid}/main" for pid in its.pids}
    names = collections.Counter(row.name for row in rows.values())
    assert all_of(names, [f"family.{pid}/helper" for pid in its.pids]), names
    for trace in its.traces:
        for tid, row in reports.shares(trace).items():
            one, other = row.cpu * row.lived, rows[tid].cpu * rows[tid].lived  # percent of ns
            assert abs(one - other) < 0.1 * (row.lived + rows[tid].lived) + 100e3, (tid, row, rows[tid])


def all_of(found, names):
    return all(found[name] == 1 for name in names)


def test_heap_is_the_sum(family, tmp_path):
    its = family("go1.23")
    all = merged_of(its.traces, tmp_path / "all.out")

    def live(trace):
        return [int(re.search(r"\d+", e.fields["Value"].rpartition("(")[2])[0]) for e in gotools.parse(trace)
                if e.kind == "Metric" and "/memory/classes/heap/objects" in e.fields["Name"]]  # fmt: skip

    alone, together = [live(trace) for trace in its.traces], live(all)
    assert together[0] == alone[0][0], "the parent is there first"
    assert together[-1] == alone[0][-1], "and last, when the children's heaps are gone"
    assert max(together) > max(map(max, alone)), "while they were there it was more than any"


def test_all_commands_read_it(family, tmp_path):
    """Parts and other formats of it, parts put together, and it put together with something else; and every report."""
    its = family("go1.23")
    all = merged_of(its.traces, tmp_path / "all.out")
    length = sums(all)[None]
    part = tmp_path / "part.out"
    for start, end in ((0, length // 2), (length // 3, length * 2 // 3), (length // 2, 2 * length)):
        proc.run([GOTRACE, "cut", f"--from={start}ns", f"--to={end}ns", all, "-o", part]).ok()
        check_readers("go1.23", part)
        assert not differences(sums(part), window(all, start, end), 2 * SLACK), (start, end)
    again = tmp_path / "again.out"
    proc.run([GOTRACE, "cut", "--from=5ms", "--to=20ms", part, "-o", again]).ok()
    parts = [tmp_path / f"{trace.stem}.part.out" for trace in its.traces]
    for trace, new in zip(its.traces, parts):
        proc.run([GOTRACE, "cut", "--from=1ms", f"--to={length}ns", trace, "-o", new]).ok()
    steps = {e.fields["Message"]: e.time for e in logs(gotools.parse(all), "step")}
    of_parts = {e.fields["Message"]: e.time for e in logs(gotools.parse(merged_of(parts, tmp_path / "parts.out")), "step")}
    shifts = {time - steps[name] for name, time in of_parts.items()}
    assert len(of_parts) >= 2 and max(shifts) - min(shifts) < 10 * SLACK, "parts of them are where they were"
    twice = merged_of([all, its.traces[2]], tmp_path / "twice.out")
    check_readers("go1.23", again, tmp_path / "parts.out", twice)
    step = collections.defaultdict(list)
    for e in logs(gotools.parse(twice), "step"):
        step[e.fields["Message"]].append(e.time)
    both = step["child-read"]
    assert len(both) == 2 and abs(both[0] - both[1]) < 10 * SLACK, "what is there twice is at one time"
    for format in ("go1.5", "go1.11", "go1.26"):
        new = tmp_path / f"{format}.out"
        proc.run([GOTRACE, "convert", f"--format={format}", all, "-o", new]).ok()
        old = merged_of(its.traces, tmp_path / f"{format}.all.out", f"--format={format}")
        mixed = merged_of([old, its.traces[1]], tmp_path / f"{format}.mixed.out", "--format=go1.23")
        check_readers(format, new, old)
        check_readers("go1.23", mixed)
    for command in (["top"], ["top", "--holders"], ["why"], ["export", "--to=perfetto", "-o", tmp_path / "p"]):
        proc.run([GOTRACE, *command, all]).ok()
    who = proc.run([GOTRACE, "top", "--holders", all]).ok().stdout
    assert re.search(rf"{its.parent} family\.{its.parent}/main .*: usleep <- main", who), who


def test_a_thousand(family, tmp_path):
    """As many as can be: all of them are there, and have done the same."""
    its, n = family("go1.23"), 1000
    one = its.traces[1]
    traces = [shutil.copy(one, tmp_path / f"{i}.out") for i in range(n)]
    all = merged_of(traces, tmp_path / "all.out")
    expected = collections.Counter({key: n * ns for key, ns in totals(sums(one)).items()})
    assert not differences(totals(sums(all)), expected, n * 10 * SLACK)
    gotools.check(all)


@pytest.mark.parametrize("ahead", [864000, 5, -3])
def test_time_namespace(tmp_path, ahead):
    """The children's CLOCK_MONOTONIC differs from the parent's by that many seconds: they are of one host, and each moment is where it was."""
    its = Family(tmp_path, "go1.26", ahead)
    assert merge(its.traces, tmp_path / "all.out").ok().stderr == ""
    check_steps(its, {e.fields["Message"]: e.time for e in logs(gotools.parse(tmp_path / "all.out"), "step")}, CLOCK)


# --- Of several hosts


def of_another_boot(trace, new):
    """As if that process had run on a host of its own, with a counter of its own."""
    data = bytearray(trace.read_bytes())
    mark = b"gotrace-origin "
    at = data.index(mark) + len(mark)
    data[at] ^= 1
    new.write_bytes(data)
    return new


def test_several_hosts(family, tmp_path):
    """By the time of day, which is said; or by a log that is at the same moment."""
    its = family("go1.23")
    other = of_another_boot(its.traces[2], tmp_path / "other.out")
    traces = [its.traces[0], its.traces[1], other]
    said = merge(traces, tmp_path / "all.out").ok().stderr
    assert re.search(rf"{other} is of another boot or host than {its.traces[0]}: placed by the time of day", said), said
    events = gotools.parse(tmp_path / "all.out")
    check_steps(its, {e.fields["Message"]: e.time for e in logs(events, "step")}, 20_000_000)  # clocks may be set meanwhile
    names = {e.fields["Label"] for e in events if e.kind == "Label"}
    assert any(re.fullmatch(rf"[\w.-]+:family\.{its.reader}/main", name) for name in names), names
    said = merge(traces, tmp_path / "marked.out", "--mark=step").ok().stderr
    assert "time of day" not in said
    first = {}
    for e in logs(gotools.parse(tmp_path / "marked.out"), "step"):
        first.setdefault(e.m, e.time)
    assert abs(first[its.parent] - first[its.reader]) <= 2, "the first log of that text"
    failed = merge(traces, tmp_path / "none.out", "--mark=never said")
    assert failed.returncode == 1 and "there is no log `never said`" in failed.stderr, failed


def test_old_files_are_placed_by_the_time_of_day(family, tmp_path):
    """Those of before `gotrace merge` have no origin: from go1.25 on they say when they began."""
    for format, status in (("go1.23", 1), ("go1.26", 0)):
        its = family(format)
        old = tmp_path / f"old.{format}.out"
        old.write_bytes(its.traces[2].read_bytes().replace(b"gotrace-origin ", b"gotrace-nothing"))
        result = merge([its.traces[0], old], tmp_path / "all.out")
        assert result.returncode == status, result
        assert f"{old}: it does not say when it was recorded" in result.stderr or status == 0, result


# --- Any traces


def check_part(of, part, start, end):
    proc.run([GOTRACE, "cut", f"--from={start}ns", f"--to={end}ns", of, "-o", part]).ok()
    assert not differences(sums(part), window(of, start, end), 2 * SLACK), (of, start, end)
    return part


@pytest.mark.parametrize("format", gotools.some("go1.5", of=["go1.5", "go1.10", "go1.21", "go1.23"]))
@pytest.mark.parametrize("seeds, start, end", [
    ((20309, 20536, 20424), 439823, 6094952),  # calls that a process' end ends go on where their thread has no P
    ((20261, 20370), 1000000, 1200000),  # and begin at the same moment
    ((20341, 20361, 20024), 1894282, 3957106),  # in v1 two processes have a goroutine that is called main
])  # fmt: skip
def test_schedules_that_were_wrong(tmp_path, format, seeds, start, end):
    for seed in seeds:
        proc.run([FUZZ, format, seed, 1, tmp_path]).ok()
    inputs = [tmp_path / f"{format}-{seed}.trace" for seed in seeds]
    all = merged_of(inputs, tmp_path / "all.out")
    expected = sum((totals(sums(trace)) for trace in inputs), collections.Counter())
    assert not differences(totals(sums(all)), expected, 10 * SLACK)
    check_readers(format, all, check_part(all, tmp_path / "part.out", start, end))


@pytest.mark.chance
@pytest.mark.limit(600)
@formats
def test_random_schedules(tmp_path, format):
    """Traces of random schedules put together, parts of that, and parts of those: none is refused, and every sum is that of
    the inputs."""
    chance = seeded("FUZZ_FIRST", 1)
    proc.run([FUZZ, format, FIRST, 2 * MERGES + 2, tmp_path], timeout=300).ok()
    traces, made = sorted(tmp_path.glob("*.trace")), []
    for i in range(MERGES):
        inputs = chance.sample(traces, chance.choice([2, 3]))
        all = merged_of(inputs, tmp_path / f"{i}.out")
        expected = sum((totals(sums(trace)) for trace in inputs), collections.Counter())
        assert not differences(totals(sums(all)), expected, 10 * SLACK), inputs
        counts, own = event_counts(all), [event_counts(trace) for trace in inputs]
        for kind in ("CPUSample", "UserLog", "UserTaskBegin", "UserRegionBegin", "UserRegion"):
            assert counts.get(kind, 0) == sum(n.get(kind, 0) for n in own), (kind, inputs)
        made.append(of := all)
        for part in (tmp_path / f"{i}.part.out", tmp_path / f"{i}.again.out"):
            start, end = sorted(chance.randrange(sums(of)[None] + 1) for _ in range(2))
            made.append(of := check_part(of, part, start, end + 1))
    check_readers(format, *made)


# --- Bad input


def test_bad_input(family, tmp_path):
    """A clear message that names the file, an exit status, and no output."""
    its = family("go1.23")
    all, one = tmp_path / "all.out", its.traces[0]
    empty, foreign, go = tmp_path / "empty", tmp_path / "foreign", tmp_path / "go.out"
    empty.touch()
    foreign.write_bytes(b"\x7fELF" + bytes(1000))
    proc.run([gotools.program(gotools.find("1.26"), "itself"), go], timeout=60).ok()
    for file in (tmp_path / "missing", empty, foreign, "/dev/zero", go):
        result = merge([one, file], all)
        assert result.returncode == 1 and f"{file}" in result.stderr, result
    link = tmp_path / "link"
    link.symlink_to(one)
    for argv in ([], [one, one], [one, link], ["--format=go1.99", one], [one] * 1001):
        assert merge(argv, all).returncode == 2, argv[:3]
    assert merge([one], link).returncode == 2, "output = input"
    assert proc.run([GOTRACE, "merge", one]).returncode == 2
    assert not all.exists() and not list(tmp_path.glob("all.out*"))


@pytest.mark.chance
@pytest.mark.parametrize("format", ["go1.11", "go1.23"])
def test_damaged_input(family, tmp_path, format):
    """Cut off anywhere, or with wrong bytes: a message or a result."""
    its, chance = family(format), seeded("FUZZ_FIRST", 1)
    command = SANITIZED if SANITIZED.exists() else GOTRACE
    bad, all = tmp_path / "bad.out", tmp_path / "all.out"
    for i in range(30):
        data = its.traces[i % 3].read_bytes()
        wrong = bytearray(data[: chance.randrange(17, len(data))] if i % 2 else data)
        for _ in range(chance.randrange(0, 8)):
            wrong[chance.randrange(16, len(wrong))] = chance.randrange(256)
        bad.write_bytes(wrong)
        result = proc.run([command, "merge", its.traces[(i + 1) % 3], bad, "-o", all], env={"ASAN_OPTIONS": "detect_leaks=0"})
        assert result.returncode in (0, 1), result
        assert all.exists() == (result.returncode == 0), result
        assert result.returncode == 0 or re.search(rf"{bad}|one of these traces: damaged|An input is damaged, or", result.stderr), result
        all.unlink(missing_ok=True)


PASSED = """
SELECT k.tid AS waker, t.tid AS waiter FROM waits JOIN locks ON locks.id = lock_id JOIN threads AS t ON t.id = thread_id
JOIN threads AS k ON k.id = waker_id WHERE locks.name LIKE 'shared%' AND waits.ended ORDER BY begin_ns + waits.ns
"""


def test_a_token_between_processes(tmp_path):
    """A semaphore that serves as a lock: each wait is ended by the process that had the token before, whoever else waits."""
    trace = tmp_path / "t.out"
    told = [int(pid) for pid in proc.run([GOTRACE, "-f", "-o", trace, SINGLE / "merge/token"], timeout=60).ok().stdout.split()]
    passed = collections.Counter((one, other) for one, other in zip(told, told[1:]) if one != other)
    rows = json.loads(proc.run([GOTRACE, "sql", "--json", trace, PASSED]).ok().stdout)
    found = collections.Counter((row["waker"], row["waiter"]) for row in rows)
    found = collections.Counter({pair: n for pair, n in found.items() if set(pair) <= set(told)})  # without the beginning
    assert len(told) == 120 and found.total() > 0.6 * passed.total(), (passed, found)
    assert (found - passed).total() <= 0.02 * passed.total(), (passed, found)


def test_children_of_a_parent_that_has_forked_before(tmp_path):
    """Each is its parent's. From the second fork on, the parent's call begins as its fork does, for all that the clock knows."""
    trace = tmp_path / "t.out"
    proc.run([GOTRACE, "-f", "-o", trace, SINGLE / "merge/children"], timeout=60).ok()
    events = gotools.parse(trace)
    made_by = {e.goid: e.m for e in events if e.is_go("NotExist", "Runnable")}
    first = {e.g: e.m for e in events if e.kind == "Label" and e.fields["Label"].endswith("/main")}
    parent, *children = first
    others = {g: made_by.get(g) for g in children if made_by.get(g) != first[parent]}
    assert len(children) == 100 and not others, (first[parent], others)
