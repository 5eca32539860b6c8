"""`gotrace info --json` and `gotrace top --json`: as their texts, and as all else that sums up the same trace."""

import collections
import json
import re
import shutil
import subprocess

import pytest

from lib import PROGRAMS, ROOT, SINGLE, gotools, proc
from lib.exported import export, folded, go_pprof, leaves
from lib.names import ARGUMENTS, SHOWN
from lib.reports import GOTRACE, report

EVERYTHING = ["--kind=all", "--idle=none", "-n", "1000000"]
PARTS = ["cpu_ns", "runnable_ns", "idle_ns", "blocked_ns", "calls_ns", "unseen_ns"]


def text_of(trace, command, *options):
    return proc.run([GOTRACE, command, *options, trace]).ok().stdout


def sql(trace, statement):
    return [tuple(row.values()) for row in json.loads(proc.run([GOTRACE, "sql", "--json", trace, statement]).ok().stdout)]


def record(tmp_path_factory, *argv, **env):
    return proc.traced([PROGRAMS / argv[0], *argv[1:]], tmp_path_factory.mktemp(argv[0]) / "t.out", env=env).ok().trace


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Locks, their holders, CPUs, preemption: test/prog/incidents.c."""
    return record(tmp_path_factory, "incidents", "fsync", "600", GOTRACE_SCHED="on", GOTRACE_SYSCALL_MIN="0")


@pytest.fixture(scope="module")
def truth(tmp_path_factory):
    return record(tmp_path_factory, "truth", GOTRACE_SYSCALLS="all")


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    return record(tmp_path_factory, "cpu", "1", GOTRACE_CPU_HZ="200")


@pytest.fixture(scope="module")
def deadlock(tmp_path_factory):
    """Three threads that wait for each other, up to a moment at which they do; and their numbers."""
    trace, pipe = tmp_path_factory.mktemp("deadlock") / "t.out", subprocess.PIPE
    env = proc.traced_env(trace, {"GOTRACE_HANG": "200ms"})
    child = proc.spawn([PROGRAMS / "deadlocks", "ring", "mutex", "3"], env=env, stdout=pipe, stderr=pipe, text=True)
    assert "DEADLOCK" in child.stderr.readline()
    proc.run([GOTRACE, "snapshot", child.pid]).ok()
    proc.stop(child)
    return trace, {int(line) for line in child.stdout.read().split()}


# --- as the text


def duration(ns):
    for unit, name in (1e9, "s"), (1e6, "ms"), (1e3, "us"):
        if ns >= unit:
            value = ns / unit
            return f"{value:.{3 if value < 10 else 2 if value < 100 else 1}f}{name}"
    return f"{ns}ns"


def thread(it):
    words = [str(it["tid"]) if it["tid"] else "-", it["name"], it["routine"] and f"({it['routine']})"]
    return " ".join(filter(None, words))


def percent(ns, of):
    return f"{100.0 * float(ns) / float(of) if of else 0:.1f}%"


def times(row, wide=False):
    percentiles = [duration(row[name]) for name in ("p50_ns", "p95_ns", "p99_ns")] if wide else []
    return [row["count"], duration(row["average_ns"]), duration(row["longest_ns"]), *percentiles]


END = {
    "itself": lambda row: "" if row["kind"] == "sched" else ", no waker",
    "call": lambda row: f", ended by {row['waker_place']['place']}",
    "end_of_thread": lambda row: ", ended by the end" + (f" of thread {thread(row['waker'])}" if row["waker"] else "s of threads"),
    None: lambda row: ", still waiting when the trace ends",
}


def waits(rows, all_, name="total_ns"):
    sum_ = 0
    for row in rows:
        sum_ += row[name]
        end = END[row["ended_by"]](row) if "ended_by" in row else "" if row["ended"] else END[None](row)
        yield [duration(row[name]), percent(row[name], all_), percent(sum_, all_), *times(row), row["kind"], row["place"] + end]


def of_waits(document):
    yield from waits(document["waits"], document["total_ns"])


def of_preempted(document):
    yield from waits(document["waits"], document["no_cpu_ns"], "no_cpu_ns")


def of_threads(document):
    for it in document["by_thread"]:
        yield [f"thread {thread(it['thread'])}: waited {duration(it['total_ns'])} of {duration(it['lived_ns'])}"]
        for ended in False, True:
            yield from waits([row for row in it["waits"] if row["ended"] == ended], it["total_ns"])


def of_functions(document):
    for row in document["functions"]:
        yield [duration(row["total_ns"]), percent(row["total_ns"], document["total_ns"]), *times(row), row["kind"], row["function"]]


def of_cum_samples(document):
    yield from ([row["samples"], percent(row["samples"], document["samples"]), row["function"]] for row in document["functions"])


def of_samples(document):
    sum_ = 0
    for samples, share, function in of_cum_samples(document):
        sum_ += samples
        yield [samples, share, percent(sum_, document["samples"]), function]


def of_locks(document):
    for row in document.get("waits") or document["locks"]:
        rest = [f"{row['place']}, {row['lock']}"] if "place" in row else [row["threads"], duration(row["held_ns"]), duration(row["longest_held_ns"]), row["lock"]]
        first = f", first waited for by {row['first_waiter']['place']}" if row.get("first_waiter") else ""
        yield [duration(row["total_ns"]), percent(row["total_ns"], document["total_ns"]), *times(row), *rest, first]
        if row.get("briefs") and row["briefs"] * 10 >= row["count"]:
            yield [row["briefs"], f"more wait{'s' * (row['briefs'] > 1)},", duration(row["brief_ns"]), "in all, too brief for events"]
        assert sum(it["ns"] for it in row["holders"]) == row["total_ns"], row
        shown = [it for it in row["holders"][:3] if it["ns"] * 100 >= row["total_ns"]]
        yield from (holder(it, row["total_ns"]) for it in shown)
        if left := row["holders"][len(shown) :]:
            yield [percent(sum(it["ns"] for it in left), row["total_ns"]), f"({len(left)} more)"]


def holder(it, of):
    who = thread(it["thread"]) if it["thread"] else it["name"] or "unknown holder (gotrace top --wakers: what ended the waits)"
    states = {None: "", "running": ": running", "sched": ": runnable, on no CPU"}
    doing = f": {it['at']['place']}" if it["at"] else states[it["state"]]
    return [percent(it["ns"], of), who + (f", by {it['taken_in']}" if it["taken_in"] else "") + doing]


def of_variables(document):
    for row in document["variables"]:
        yield [row[name] for name in ("waits", "signalled", "by_itself", "waiting", "signals", "vain", "variable")]
        yield from ([it["signals"], it["vain"], it["place"]] for it in row["signallers"])


def of_cpu(document):
    sum_, all_ = 0, document["cpu_ns"]
    for row in document["by_thread"]:
        sum_ += row["cpu_ns"]
        counts = ["-" if row[name] is None else row[name] for name in ("involuntary", "faults")]
        shares = [percent(row["cpu_ns"], all_), percent(sum_, all_)]
        yield [duration(row["cpu_ns"]), *shares, duration(row["runnable_ns"]), duration(row["unseen_ns"]), *counts, thread(row["thread"])]


def of_sched(document):
    yield from of_waits(document)
    all_ = sum(row["ns"] for row in document["meanwhile"])
    for row in document["meanwhile"]:
        who = thread(row["thread"]) if row["thread"] else "other processes"
        yield [duration(row["ns"]), percent(row["ns"], all_), row["cpu"], who]


def of_info(document):
    for row in document["by_thread"]:
        who = [row["thread"]["tid"], row["thread"]["name"] or "-", row["thread"]["routine"] or "-", duration(row["start_ns"])]
        parts = [percent(row[name], row["ns"]) for name in PARTS]
        yield [*who, duration(row["lived_ns"]) + ("" if row["ended"] else "+"), *parts]
    yield from ([row["count"], row["kind"]] for row in document["by_kind"])


HEAD = re.compile(r" +(waited +%|cum +%|no CPU +%|samples +%|waits +signalled|on CPU +%|tid +name|share +holder) ?.*")
WORDS = re.compile(r"Meanwhile |events by kind|idle: |  \(|\(|\d+ % of the |Install |First add |Or fetch |.* (more in run queues|ended, or while unseen|of it was)")


def lines_of(text):
    """The words of all rows, those of the first head and after."""
    lines = text.splitlines()
    while not HEAD.fullmatch(lines[0]):
        lines.pop(0)
    return [line.split() for line in lines if line and not HEAD.fullmatch(line) and not WORDS.match(line)]


@pytest.mark.parametrize(
    "program, rows, command, options",
    [
        ("server", of_info, "info", []),
        ("server", of_waits, "top", []),
        ("server", of_waits, "top", ["--kind=all", "--idle=none", "--frames=3"]),
        ("server", of_waits, "top", ["--kind=all", "-n", "2", "--from=1ms", "--thread=worker"]),
        ("server", of_threads, "top", ["--by-thread", "--kind=all", "--idle=none"]),
        ("server", of_functions, "top", ["--cum"]),
        ("server", of_waits, "top", ["--wakers", "--idle=none"]),
        ("truth", of_waits, "top", ["--wakers", *EVERYTHING]),
        ("server", of_preempted, "top", ["--preempted"]),
        ("server", of_locks, "top", ["--holders"]),
        ("server", of_locks, "top", ["--by-lock"]),
        ("server", of_variables, "top", ["--wakeups"]),
        ("server", of_sched, "top", ["--kind=sched", "-n", "1000"]),
        ("server", of_cpu, "top", ["--kind=cpu"]),
        ("samples", of_samples, "top", ["--cpu", "-n", "3"]),
        ("samples", of_cum_samples, "top", ["--cpu", "--cum"]),
    ],
)
def test_as_the_text(request, program, rows, command, options):
    """Each row is a line, with the same numbers and words, in the same order."""
    trace = request.getfixturevalue(program)
    if options[:1] in (["--preempted"], ["--kind=sched"]) and not report(trace, "info")["cpus"]:
        pytest.skip("perf_event_open(2) is not allowed here")
    document, text = report(trace, command, *options), text_of(trace, command, *options)
    assert document["version"] == 1 and document["trace"] == str(trace)
    its = [" ".join(map(str, row)).split() for row in rows(document)]
    assert its == lines_of(text) and (its or options == ["--preempted"]), text


def test_lengths_of_waits(server):
    """Percentiles to 1 %, and how many of each power of ten, as the database has them; --wide shows both, other reports neither."""
    percentiles = {row[:2]: row[2:] for row in sql(server, "SELECT kind, place, count, p50_ns, p95_ns, p99_ns FROM wait_percentiles")}
    lengths = collections.defaultdict(list)
    for kind, place, from_ns, count in sql(server, "SELECT kind, place, from_ns, count FROM wait_lengths"):
        lengths[kind, place].append({"from_ns": from_ns, "count": count})
    rows = [row for row in report(server, "top", *EVERYTHING)["waits"] if row["stack"] and row["kind"] != "syscall"]
    rows = [row for row in rows if row["count"] == percentiles[row["kind"], row["place"]][0]]  # all of these are over
    assert len(rows) > 10 and max(row["count"] for row in rows) > 20
    for row in rows:
        for ours, theirs in zip((row[name] for name in ("p50_ns", "p95_ns", "p99_ns")), percentiles[row["kind"], row["place"]][1:]):
            assert abs(ours - theirs) <= 0.01 * theirs + 1, row
        assert row["histogram"] == lengths[row["kind"], row["place"]], row
    wide, text = (proc.run([GOTRACE, "top", *EVERYTHING, *options, server], env={"LC_ALL": "C"}).ok().stdout for options in (["--wide"], []))
    for row in rows[:5]:
        columns = r" +".join([re.escape(str(it)) for it in times(row, wide=True)])
        (bars,) = re.findall(rf" {columns}  (.{{9}})  {row['kind']} +{re.escape(row['place'])}", wide)
        least = [0, *(10**i for i in range(3, 11))]
        assert {least[i] for i in range(9) if bars[i] != " "} == {it["from_ns"] for it in row["histogram"]}, (bars, row)
    assert " p95 " in wide and " p95 " not in text


SLEEPS = """
#include <unistd.h>
int main(void) { for (int i = 0; i < 100; i++) usleep(i % 10 ? 2000 : 30000); return 0; }
"""


def test_rare_and_long_waits(tmp_path):
    """Of a hundred waits ten take 30 ms and the others 2 ms: the program's own lengths."""
    trace = proc.traced([proc.compile(SLEEPS, tmp_path / "prog")], tmp_path / "t.out").ok().trace
    (row,) = report(trace, "top", "--idle=none", "--kind=sleep")["waits"]
    assert row["count"] == 100 and 2e6 <= row["p50_ns"] < 10e6 and 29.7e6 <= row["p95_ns"] <= row["p99_ns"] <= row["longest_ns"], row
    few = {it["from_ns"]: it["count"] for it in row["histogram"]}
    assert few.keys() <= {10**6, 10**7, 10**8} and abs(few[10**6] - 90) <= 5, few


def test_deadlocks(deadlock):
    trace, tids = deadlock
    text = text_of(trace, "top")
    for command in ["top"], ["top", "--holders"], ["top", "--cum"], ["top", "--wakeups"], ["info"]:
        document = report(trace, *command)
        (found,) = document["deadlocks"]
        its = found["threads"]
        assert found["kind"] == "cycle" and {row["thread"]["tid"] for row in its} == tids
        assert [row["holder"]["tid"] for row in its] == [row["thread"]["tid"] for row in its[1:] + its[:1]]
        for row in its:
            wait = f"thread {thread(row['thread'])}: {row['place']}, {row['lock']}, held by {thread(row['holder'])}"
            assert f"{duration(row['ns']):>10}  {wait}\n" in text
            assert command == ["info"] or f"{duration(row['ns']):>10}  sync     {wait}\n" in text
    (main,) = (row for row in report(trace, "top")["waiting"] if row["thread"]["tid"] not in tids)
    assert not main["idle"] and main["what"] == "pthread_join" and main["holder"]["tid"] in tids and not main["lock"]


# --- as everything else


def test_as_the_database(truth):
    """Each place: how often, how long in all, at most; and the whole stack."""
    places = sql(truth, """SELECT kind, place, count(*), sum(ns), sum(ns) / count(*), max(ns) FROM waits
        JOIN stacks ON stacks.id = stack_id WHERE ended GROUP BY 1, 2
        UNION ALL SELECT 'syscall', place, count(*), sum(ns), sum(ns) / count(*), max(ns) FROM calls
        JOIN stacks ON stacks.id = stack_id WHERE ended GROUP BY 1, 2""")  # fmt: skip
    rows = [row for row in report(truth, "top", *EVERYTHING)["waits"] if row["stack"]]
    names = ("kind", "place", "count", "total_ns", "average_ns", "longest_ns")
    assert sorted(tuple(row[name] for name in names) for row in rows) == sorted(places) and len(rows) > 10
    stacks = collections.defaultdict(list)
    for stack, *frame in sql(truth, "SELECT stack_id, function, file, line FROM stack_lines ORDER BY stack_id, depth"):
        stacks[stack].append(frame)
    for row in rows:
        assert [[frame[name] for name in ("function", "file", "line")] for frame in row["stack"]] in stacks.values()
        assert row["what"] == row["stack"][0]["function"]
        assert row["function"] in [frame["function"] for frame in row["stack"]] + [None]
    modules = {frame["function"]: frame["module"] for row in rows for frame in row["stack"]}
    assert modules["lock_waiter"] == str(PROGRAMS / "truth") and modules["pthread_mutex_lock"] is None


@pytest.mark.parametrize("kind", ["sync", "sched", "syscall"])
def test_as_the_exports(server, kind):
    """By call, in folded stacks, to the nanosecond; in a profile, as it rounds."""
    rows = report(server, "top", "--idle=none", f"--kind={kind}", "-n", "1000000")["waits"]
    ours = collections.Counter()
    for row in rows:
        ours[row["what"]] += row["total_ns"]
    assert leaves(folded(server, f"--kind={kind}")) == ours and ours
    profile = go_pprof(export(server, "pprof"), f"-sample_index={kind}")
    assert abs(profile.total() - ours.total()) <= 0.001 * ours.total() + 1000


def test_threads_as_the_database(server):
    """Each thread's shares; and where idle waits are."""
    names = "ns", "cpu_ns", "runnable_ns", "calls_ns", "sync_ns", "unseen_ns"
    shares = sql(server, "SELECT thread_id, ns, cpu_ns, queue_ns, syscall_ns, sync_ns, unseen_ns FROM shares")
    rows = report(server, "info", "--idle=none")["by_thread"]
    assert len(rows) > 4 and {row["thread"]["id"]: [row[name] for name in names] for row in rows} == {id_: its for id_, *its in shares}
    idle = report(server, "info")
    ours = sum(row["idle_ns"] for row in idle["by_thread"])
    assert sum(place["total_ns"] for place in idle["idle"]["places"]) == idle["idle"]["total_ns"] and ours <= idle["idle"]["total_ns"]


# --- as the program knows


@pytest.fixture(scope="module")
def lives():
    return SINGLE / "json/lives"


@pytest.mark.measured
@pytest.mark.parametrize("sched", ["off", "on"])
@pytest.mark.parametrize("format", gotools.some("go1.5", "go1.22", of=["go1.5", "go1.22", "go1.26"]))
def test_sums(traced, lives, format, sched):
    """On a CPU, runnable, idle, blocked, in calls and unseen: a thread's life, to a thousandth; and that is what it lived."""
    result = traced([lives], env={"GOTRACE_FORMAT": format, "GOTRACE_SCHED": sched, "GOTRACE_SYSCALLS": "all"}).ok()
    document = report(result.trace, "info")
    rows = {row["thread"]["tid"]: row for row in document["by_thread"]}
    known = {name: list(map(int, its)) for name, *its in map(str.split, result.stdout.splitlines())}
    assert len(known) == len(rows) == 5 and document["accounts"] and (sched == "on" or not document["cpus"])
    for tid, wall, cpu in known.values():
        row = rows[tid]
        assert abs(sum(row[name] for name in PARTS) - row["lived_ns"]) <= 0.001 * row["lived_ns"], row
        assert row["ns"] + row["unknown_ns"] == row["lived_ns"] >= 0.999 * wall, (row, wall)
        assert row["start_ns"] + row["lived_ns"] <= document["duration_ns"]
        assert sum(row[f"{kind}_ns"] for kind in ("sync", "network", "sleep", "other")) == row["blocked_ns"]
        assert abs(row["cpu_ns"] - cpu) <= 0.02 * row["lived_ns"], (row, cpu)
    assert rows[known["runs"][0]]["cpu_ns"] >= 0.95 * 200e6
    reads = "calls_ns" if format == "go1.5" else "network_ns"  # from a pipe, whose writer later formats know
    for name, part in ("sleeps", "sleep_ns"), ("waits", "sync_ns"), ("calls", reads):
        row, (_, wall, cpu) = rows[known[name][0]], known[name]
        rest = row["runnable_ns"] + row["unseen_ns"]  # it may have had to wait for a CPU
        assert 0.95 * (wall - cpu) - rest <= row[part] + row["idle_ns"] <= row["lived_ns"], (name, row, wall)


# --- whatever there is


def test_whatever_names_there_are(traced, tmp_path):
    """Threads, functions and files with them: it is JSON in UTF-8 nevertheless, without control characters."""
    program = shutil.copy(PROGRAMS / "named", tmp_path / 'a "b"\\')
    trace = traced([program, *ARGUMENTS], env={"GOTRACE_SCHED": "on"}).ok().trace
    for command in COMMANDS:
        output = subprocess.run([GOTRACE, *command, "--json", trace], capture_output=True, check=True).stdout.decode()
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", output)
        document = json.loads(output)
        if command[0] == "info":
            names = {row["thread"]["name"] for row in document["by_thread"]}
            assert names == {*SHOWN.values(), None}


COMMANDS = [["info"], *(["top", *options] for options in (
    [], ["--by-thread"], ["--cum"], ["--wakers"], ["--preempted"], ["--holders"], ["--by-lock"], ["--wakeups"], ["--kind=cpu"],
    ["--kind=sched"], ["--cpu"], ["--cpu", "--cum"], ["--cpu", "--by-thread"], ["--kind=all", "--idle=none", "--frames=2", "--wide"],
))]  # fmt: skip


def keys(value):
    """All names of members."""
    if isinstance(value, list):
        return set().union(*map(keys, value))
    return set(value).union(*map(keys, value.values())) if isinstance(value, dict) else set()


def test_man_page(server, samples, deadlock):
    """gotrace-json(5) names every member that a report prints, and each name there occurs in a report."""
    (section,) = re.findall(r"^# INFO AND TOP\n(.*?)^# WHY", (ROOT / "scripts/man/gotrace-json.5.md").read_text(), re.M | re.S)
    found = set()
    for trace in server, samples, deadlock[0]:
        for command in COMMANDS:
            result = proc.run([GOTRACE, *command, "--json", trace])
            if result.returncode == 0:
                found |= keys(json.loads(result.stdout))
            else:
                assert result.stdout == "" and result.stderr.startswith(f"gotrace: {trace}: does not say when threads lost their CPUs"), result
    named_as_code = re.findall(r"`([^`]+)`|\*\*([^*]+)\*\*", section)
    words = set(re.findall(r"[a-z][a-z0-9_]*", " ".join(code or term for code, term in named_as_code)))
    without_more = {name.removeprefix("more_") for name in found}
    assert without_more <= words, without_more - words
    named = {word for word in words if "_" in word and word not in ("_", "_ns", "end_of_thread", "more_waits")}
    of_others = {"running_ns", "sched_ns"} | ({"unknown_cpu_ns", "no_cpu_ns"} if not report(server, "info")["cpus"] else set())
    assert named - of_others <= found, named - found
