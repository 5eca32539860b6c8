"""`gotrace info` and `gotrace top`: against what programs know of themselves, and against Go's own profiles."""

import collections
import dataclasses
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import time

import pytest

from lib import PROGRAMS, ROOT, SANITIZER, SINGLE, UNIT_TESTS, gotools, proc, truth
from lib.reports import ns_of, report, table
from lib.seeds import seeded

GOTRACE = ROOT / "scripts/gotrace"
TOOL = ROOT / "build/gotrace"
SANITIZED = ROOT / "build/asan/gotrace"
TOLERANCE = 0.05
SLEEPS = {"usleep", "nanosleep", "clock_nanosleep"}


@dataclasses.dataclass
class Row:
    ns: float
    count: int
    longest: float
    kind: str
    what: str
    site: str
    file: str
    line: int
    thread: int


def kind_and_place(row):
    return row["kind"], row["what"], row["function"], row["file"] and os.path.basename(row["file"]), row["line"]


def top(trace, *options):
    """The rows of `gotrace top`, all of them, idle threads' too, and those of waits that the end of the trace cuts."""
    document = report(trace, "top", "--idle=none", "-n", "1000000", *options)
    if "functions" in document:
        return [Row(row["total_ns"], row["count"], row["longest_ns"], row["kind"], row["function"], *[None] * 4) for row in document["functions"]], []
    waits = [(row, None) for row in document.get("waits", [])]
    for it in document.get("by_thread", []):
        waits += [(row, it["thread"]["tid"]) for row in it["waits"] if row["ended"]]
    rows = [Row(row["total_ns"], row["count"], row["longest_ns"], *kind_and_place(row), tid) for row, tid in waits]
    cut = [Row(row["ns"], 1, row["ns"], *kind_and_place(row), row["thread"]["tid"]) for row in document["waiting"]]
    return rows, cut


def sums(rows, key=lambda row: row.what):
    total = collections.Counter()
    for row in rows:
        total[key(row)] += row.ns
    return total


def record(traced, format, *argv, **env):
    return traced([PROGRAMS / argv[0], *argv[1:]], env={"GOTRACE_FORMAT": format} | env).ok()


# --- top


@pytest.mark.measured
@pytest.mark.parametrize("format", gotools.some("go1.5"))
def test_truth(traced, format):
    """Blocked time by call, call site and thread, of the program that knows it."""
    result = record(traced, format, "truth")
    least, most, waiters = collections.Counter(), collections.Counter(), collections.Counter()
    for hook, waiter, _, ns, arranged in map(str.split, result.stdout.splitlines()):
        least[hook] += int(arranged)
        most[hook] += int(ns)
        waiters[hook, int(waiter)] += int(arranged)
    rows, _ = top(result.trace, "--kind=sync,sleep")
    found = sums(rows)
    for hook in most:
        assert (1 - TOLERANCE) * least[hook] <= found[hook] <= (1 + TOLERANCE) * most[hook], (hook, rows)
    for row in rows:
        if row.what.startswith("pthread_"):
            assert row.file == "truth.c" and row.line > 1 and re.search("_waiter|_timeout|main|sleeper|busy|barge|with_cond", row.site)
    by_thread = sums(top(result.trace, "--kind=sync,sleep", "--by-thread")[0], lambda row: (row.what, row.thread))
    for waiter, ns in waiters.items():
        assert by_thread[waiter] >= (1 - TOLERANCE) * ns, (waiter, by_thread)


@pytest.mark.measured
@pytest.mark.parametrize("format", gotools.some("go1.22", "go1.26"))
@pytest.mark.parametrize("program", ["truth", "rounds"])
def test_profiles(traced, format, program):
    """The same sums as in the profiles of `go tool trace`."""
    result = record(traced, format, program)
    readers = gotools.readers_of(format)
    go = readers[max(readers)]
    for kind, name in [("sync", "sync"), ("net", "network"), ("syscall", "syscall")]:
        theirs, ours = gotools.pprof(result.trace, kind, go=go), sums(top(result.trace, f"--kind={name}")[0])
        for leaf, ns in theirs.leaf_ns().items():
            assert abs(ours[leaf] - ns) <= TOLERANCE * ns + 20_000, (kind, leaf, ours[leaf], ns)
        assert abs(sum(ours.values()) - theirs.total_ns) <= TOLERANCE * theirs.total_ns + 20_000


@pytest.mark.measured
@pytest.mark.parametrize("format", gotools.some(of=["go1.21", "go1.23", "go1.26"]))
def test_scheduler_profile(tmp_path, format):
    trace = tmp_path / "t.out"
    proc.run([UNIT_TESTS / "stress", 500, format, trace], timeout=60).ok()
    ours = sum(row.ns for row in top(trace, "--kind=sched")[0])
    theirs = gotools.pprof(trace, "sched").total_ns
    assert theirs > 0 and abs(ours - theirs) <= TOLERANCE * theirs


@pytest.mark.measured
@pytest.mark.parametrize("format", gotools.some("go1.5"))
def test_wakers(traced, format):
    """Who ended a wait of test/prog/truth.c, and that nobody ended those that ran out."""
    result = record(traced, format, "truth")
    report = proc.run([GOTRACE, "top", "--idle=none", "--wakers", "--kind=sync,sleep", result.trace]).ok().stdout
    ends = collections.defaultdict(set)
    for what, end in re.findall(r" (\w+) <- .*?, (?:ended by (\w+)|no waker)", report):
        ends[what].add(end)
    # By itself: woken, and another one had taken the mutex meanwhile.
    assert "pthread_mutex_unlock" in ends["pthread_mutex_lock"] <= {"pthread_mutex_unlock", ""}
    signals = {"pthread_cond_signal", "pthread_cond_broadcast"}
    assert ends["pthread_cond_wait"] & signals and ends["pthread_cond_wait"] <= signals | {"pthread_mutex_unlock"}
    assert ends["nanosleep"] | ends["usleep"] | ends["clock_nanosleep"] == {""}
    assert re.search(r"pthread_mutex_lock <- lock_waiter \(truth.c:\d+\), ended by \w+ <- \w+ \(truth.c:\d+\)", report)


@pytest.mark.measured
@pytest.mark.parametrize("format", gotools.some(of=["go1.19", "go1.21", "go1.22", "go1.23", "go1.25", "go1.26"]))
def test_cpu(traced, format):
    """A program that says how much of its time it spends in which function."""
    result = record(traced, format, "cpu", "1", GOTRACE_CPU_HZ="200")
    count = lambda *options: {
        row["function"]: row["samples"] for row in report(result.trace, "top", "--cpu", "-n", "1000", *options)["functions"]
    }
    flat, cumulative = count(), count("--cum")
    assert 0.65 <= flat["three_quarters"] / (flat["three_quarters"] + flat["one_quarter"]) <= 0.85, flat
    # All but a sample or two of how the process begins and ends, our own libraries' destructors among that.
    assert abs(cumulative["burner"] - sum(flat.values())) <= 0.02 * sum(flat.values()) and sum(flat.values()) > 100


@pytest.mark.measured
@pytest.mark.parametrize("format", gotools.some(of=["go1.19", "go1.21", "go1.23", "go1.26"]))
def test_cpu_of_late_threads(traced, format):
    """All samples count, also of a thread made while the main thread has nothing to tell."""
    program = SINGLE / "reports/late_threads"
    trace = traced([program], env={"GOTRACE_FORMAT": format, "GOTRACE_CPU_HZ": "100"}).ok().trace
    head = proc.run([GOTRACE, "top", "--cpu", trace]).ok().stdout.splitlines()[0]
    assert 40 <= int(re.search(r"(\d+) CPU samples", head)[1]) <= 60, head


@pytest.mark.measured
@pytest.mark.parametrize("format", gotools.some("go1.22"))
def test_what_was_so_before(traced, format):
    """Of a recording that begins late: each thread is where test/prog/control.c says."""
    env = {"GOTRACE_FORMAT": format, "GOTRACE_START": "manual"}
    result = traced([PROGRAMS / "control", "late"], env=env).ok()
    fields, _, threads = info(result.trace)
    shares = {t[0]: t[-1] for t in threads}
    assert "damage" not in fields
    for hook, waiter, _, state in map(str.split, result.stdout.splitlines()):
        cpu, queue, _, sync, _, syscall, sleep, other, _ = shares[int(waiter)]
        share = {"Running": cpu + queue, "Syscall": syscall, "Waiting": other + sync + sleep}[state]
        assert share > 0, (hook, state, shares[int(waiter)])
        assert state == "Running" or cpu + queue < 90, (hook, shares[int(waiter)])
    if gotools.FORMATS[format][0] >= 23:
        report = proc.run([GOTRACE, "top", "--idle=none", "--kind=all", "--by-thread", result.trace]).ok().stdout
        assert re.search(r"sync +sem_wait <- wait_sem \(control.c:\d+\)", report), report


@pytest.mark.measured
def test_every_kind_of_wait(traced):
    """Each primitive under its own name."""
    result = traced([PROGRAMS / "waits"], timeout=50).ok()
    known = truth.truths(result)
    expected, most = collections.Counter(), collections.Counter()
    for t in known:
        expected[t.hook] += t.arranged
        most[t.hook] += t.ns
    assert len(expected) > 10
    found = collections.Counter()
    for what, ns in sums(top(result.trace)[0]).items():
        found[truth.name(what)] += ns
    for hook in expected:
        assert found[hook] >= (1 - TOLERANCE) * expected[hook], (hook, found[hook], expected[hook])


def test_still_waiting(traced):
    result = traced([PROGRAMS / "unended"]).ok()
    rows, cut = top(result.trace)
    whats = {row.what for row in cut}
    assert {"sync", "syscall"} <= {row.kind for row in cut} and not whats & {"(no stack)"}, cut
    assert all(row.ns > 0 and row.count >= 1 for row in cut)


@pytest.fixture(scope="session")
def idle():
    """Waits for a mutex in one thread, while the other sleeps so many ms, and then ends as told."""
    return SINGLE / "reports/idle"


ENDS = {
    "exit": (["400"], {}),
    "duration": (["700"], {"GOTRACE_DURATION": "0.4"}),
    "recorder": (["400"], {"GOTRACE_RING": "1M"}),
    "recorder of one that dies": (["400", "dies"], {"GOTRACE_RING": "1M"}),
    "recorder that stops": (["700"], {"GOTRACE_RING": "1M", "GOTRACE_DURATION": "0.4"}),
}


@pytest.mark.measured
@pytest.mark.parametrize(
    "format, end", [(f, end) for f in gotools.some("go1.5", "go1.26") for end in ENDS if f in ("go1.21", "go1.23") or end == "exit"]
)
def test_a_recording_ends_when_it_was_ended(traced, idle, format, end):
    """Not at its last event: what waits then has waited until the end."""
    argv, env = ENDS[end]
    result = traced([idle, *argv], env={"GOTRACE_FORMAT": format, "GOTRACE_HEAP": "off"} | env)
    assert result.returncode == (-signal.SIGTERM if "dies" in argv else 0), result
    fields, _, threads = info(result.trace)
    assert fields["file"] == WHOLE
    assert 0.39e9 < ns_of(fields["duration"]) < 0.39e9 + 1e9 * result.seconds - 0.3e9
    (wait,) = (row for row in top(result.trace)[1] if "mutex" in row.what)
    assert 0.3e9 < wait.ns <= ns_of(fields["duration"])  # a busy machine lets it begin late
    for go in gotools.readers_of(format).values():
        gotools.check(result.trace, go=go)
    if gotools.FORMATS[format][1] is None:
        times = [e.time for e in gotools.parse(result.trace)]
        assert 0.39e9 < max(times) - min(times) < ns_of(fields["duration"]) + 1e6


@pytest.mark.measured
@pytest.mark.parametrize("ring", ["", "1M"])
@pytest.mark.parametrize("format", gotools.some("go1.5", of=["go1.5", "go1.21", "go1.23", "go1.26"]))
def test_commands_bring_the_file_up_to_now(tmp_path, idle, format, ring):
    trace = tmp_path / "t.out"
    env = {"GOTRACE_FORMAT": format, "GOTRACE_RING": ring, "GOTRACE_HEAP": "off"}
    begin = time.monotonic()
    child = proc.spawn([idle, "60000"], env=proc.traced_env(trace, env), stderr=subprocess.DEVNULL)
    proc.until(lambda: proc.run([GOTRACE, "snapshot", child.pid]).returncode == 0)
    files = {"snapshot": tmp_path / "t.out.2" if ring else trace, "stop": tmp_path / "t.out.3" if ring else trace}
    for command, file in files.items():
        time.sleep(0.5)  # waits go on, and nothing happens
        ns = 1e9 * (time.monotonic() - begin)
        proc.run([GOTRACE, command, child.pid]).ok()
        fields, _, _ = info(file)
        assert fields["file"] == WHOLE
        assert 0.8 * ns < ns_of(fields["duration"]) < 1e9 * (time.monotonic() - begin)
        (wait,) = (row for row in top(file)[1] if "mutex" in row.what)
        assert wait.ns > 0.8 * ns
        gotools.check(file, go=gotools.readers_of(format)[max(gotools.readers_of(format))])
    proc.stop(child)


@pytest.mark.parametrize("format", gotools.some("go1.5"))
def test_one_that_was_killed_has_no_end(tmp_path, idle, format):
    trace = tmp_path / "t.out"
    child = proc.spawn([idle, "60000"], env=proc.traced_env(trace, {"GOTRACE_FORMAT": format}))
    proc.until(lambda: trace.exists() and trace.stat().st_size)
    assert proc.stop(child, sig=signal.SIGKILL) == -signal.SIGKILL
    fields, _, _ = info(trace)
    assert fields["file"] == NO_END


@pytest.mark.measured
def test_cumulative(traced):
    """Each function has the time of all waits below it, once, and never more than all there is."""
    trace = traced([PROGRAMS / "truth"]).ok().trace
    flat, cumulative = sums(top(trace, "--kind=sync")[0]), sums(top(trace, "--kind=sync", "--cum")[0])
    theirs = gotools.pprof(trace, "sync").cumulative_ns()
    for function, ns in theirs.items():
        assert abs(cumulative[function] - ns) <= TOLERANCE * ns + 20_000, function
    assert max(cumulative.values()) <= 1.001 * sum(flat.values())


def test_rows_and_order(traced):
    trace = traced([PROGRAMS / "truth"]).ok().trace
    rows, _ = top(trace, "--kind=all")
    assert [r.ns for r in rows] == sorted((r.ns for r in rows), reverse=True)
    two = proc.run([GOTRACE, "top", "--idle=none", "-n", "2", "--kind=all", trace]).ok().stdout
    assert len(table(two, "waited", "what <- where")) == 2
    assert all(row.longest <= 1.001 * row.ns and row.count >= 1 for row in rows)


def test_wrappers_are_not_the_place(traced):
    """A lock of std::mutex was taken by whoever called it."""
    program = SINGLE / "reports/wrapped"
    rows, _ = top(traced([program]).ok().trace, "--kind=sync")
    (row,) = [row for row in rows if row.what == "pthread_mutex_lock"]
    assert row.site == "take()" and row.file == "wrapped.cc" and row.line == 8


@pytest.mark.parametrize(
    "argv", [["top"], ["info"], ["top", "--kind=x", "t"], ["top", "-n", "0", "t"], ["top", "--cum", "--by-thread", "t"]]
)
def test_wrong_use(argv):
    result = proc.run([GOTRACE, *argv])
    assert result.returncode == 2 and result.stdout == "" and result.stderr.startswith("gotrace: "), result

# --- their words, and the manual pages


MODES = [[], ["--cum"], ["--preempted"], ["--holders"], ["--by-lock"], ["--wakeups"], ["--cpu"], ["--kind=cpu"], ["--kind=sched"]]
ROW_BEGINS = re.compile(r" +[\d.]+([mun]?s|%)? ")


def heads(text):
    """Lines above rows. They have no digit but in "p95", "p99" and "1us...10s"; a row or another line of heads follows."""
    lines, found = text.splitlines() + [""], set()
    for line, after in reversed(list(zip(lines, lines[1:]))):
        if re.match(r" +[a-z%]", line, re.I) and not re.search(r"\d|: ", re.sub(r"p9[59]|1us\.\.\.10s", "", line.split(": what it")[0])) and (ROW_BEGINS.match(after) or after in found):
            found.add(line)
    return found


def test_manual_pages_show_the_heads_of_today(traced):
    """The heads of examples are lines that the tool prints, and gotrace-top(1) and gotrace-info(1) explain each column."""
    trace = record(traced, "go1.23", "incidents", "fsync", "600", GOTRACE_SCHED="on", GOTRACE_CPU_HZ="500").trace
    argvs = [["info"], ["info", "--wide"], ["why"], ["top", "--wide"], *(["top", *mode] for mode in MODES)]
    printed = {" ".join(argv): heads(proc.run([GOTRACE, *argv, trace]).stdout) for argv in argvs}
    busy = record(traced, "go1.23", "cpu", "1", GOTRACE_CPU_HZ="200").trace  # the other program may get no CPU sample
    printed["top --cpu"] = heads(proc.run([GOTRACE, "top", "--cpu", busy]).stdout)
    known = set().union(*printed.values())
    pages = {path.name: path.read_text() for path in sorted((ROOT / "scripts/man").glob("gotrace*.md"))}
    shown = {(name, head) for name, text in pages.items() for block in re.findall(r"^```\n(.*?)^```", text, re.M | re.S) for head in heads(block)}
    assert len(shown) >= 8 and {head for _, head in shown} <= known, {it for it in shown if it[1] not in known}
    for page, reports in (("gotrace-top.1.md", "top"), ("gotrace-info.1.md", "info")):
        named = re.findall(r"^(\*\*.*\*\*)\n:", re.search(r"(?:# COLUMNS|add up to its time:)\n(.*?)(?:\n# |\nOn a)", pages[page], re.S)[1], re.M)
        names = [name for line in named for name in re.findall(r"\*\*(.*?)\*\*", line)]
        names += "tid name routine from lived sync network syscall sleep other".split() if reports == "info" else ["what <- where, lock"]
        names.sort(key=len, reverse=True)
        its = {head for argv, heads_ in printed.items() if argv.split()[0] == reports for head in heads_}
        for head in its:
            rest = head
            for name in names:
                rest = re.sub(rf"(?<!\S){re.escape(name)}(?!\S)", "", rest)
            assert not rest.strip(), (page, head, rest)
        missing = [name for name in names if not any(name in head for head in its)]
        assert not missing, (page, missing)


# --- info


WHOLE = "whole: no part of it is missing"
NO_END = "without a mark of its end: up to a second may be missing there"


def info(trace):
    text = proc.run([GOTRACE, "info", "--wide", "--idle=none", trace]).ok().stdout
    fields = dict(re.findall(r"^  (format|duration|began|size|events|file|damage) +(.*)$", text, re.M))
    kinds = {name: int(n) for n, name in re.findall(r"^ +(\d+)  (\w+)$", text.split("events by kind:")[1], re.M)}
    document, threads = report(trace, "info", "--idle=none"), []
    first = ["cpu_ns", "runnable_ns"] if document["accounts"] else ["running_ns", "sched_ns"]
    for row in document["by_thread"]:
        names = [*first, "idle_ns", "sync_ns", "network_ns", "calls_ns", "sleep_ns", "other_ns", *(["unseen_ns"] if document["accounts"] else [])]
        its = row["thread"]
        if row["ns"]:
            threads.append((its["tid"], its["name"], its["routine"], row["start_ns"], row["lived_ns"], [100 * row[name] / row["ns"] for name in names]))
    return fields, kinds, threads


@pytest.mark.measured
@pytest.mark.parametrize("format", gotools.some("go1.5", "go1.26"))
def test_info(traced, format):
    result = record(traced, format, "threads", "4")
    fields, kinds, threads = info(result.trace)
    assert fields["format"].startswith(f"{format}, read by go tool trace of Go 1.{format[4:]} ")
    assert fields["file"] == WHOLE and "damage" not in fields
    assert int(fields["size"].split()[0]) == result.trace.stat().st_size
    if gotools.FORMATS[format][1] is None:
        times = [e.time for e in gotools.parse(result.trace) if e.kind != "Sync"]
        ns = max(times) - (0 if gotools.FORMATS[format][0] < 22 else min(times))  # it counts v1 from the first event
        assert abs(ns_of(fields["duration"]) - ns) <= 0.02 * ns + 50_000
    assert sum(kinds.values()) == int(fields["events"].split(",")[0])
    assert kinds["GoCreate"] in (4, 5)  # v1 creates the main thread too
    assert len(threads) == 5 and len({t[0] for t in threads}) == 5
    for _, _, _, begin, lived, shares in threads:
        assert abs(sum(shares) - 100) < 1 and begin + lived <= 1.01 * ns_of(fields["duration"])
    assert ("began" in fields) == (format in ("go1.25", "go1.26"))


def test_info_counts_what_the_tool_reads(traced):
    trace = traced([PROGRAMS / "truth"]).ok().trace
    _, kinds, threads = info(trace)
    events = gotools.parse(trace)
    changes = collections.Counter((e.old, e.new) for e in events if e.goid is not None)
    assert kinds["GoUnblock"] == changes["Waiting", "Runnable"]
    assert kinds["GoCreate"] == changes["NotExist", "Runnable"]
    assert {t[0] for t in threads} == {e.m for e in events if e.goid is not None and e.new == "Running"}
    assert {t[2] for t in threads} >= {"main", "lock_waiter", "cond_waiter"}


def test_info_names_threads(traced):
    for format in "go1.21", "go1.23":
        _, _, threads = info(traced([SINGLE / "reports/named", "worker-7"], env={"GOTRACE_FORMAT": format}).ok().trace)
        assert [t[2] for t in threads] == ["main", "thread"]
        assert format == "go1.21" or threads[1][1] == "worker-7"  # v1: with the next start only


def test_names_do_not_control_the_terminal(traced):
    program = SINGLE / "reports/red"
    for format in "go1.21", "go1.23":
        trace = traced([program], env={"GOTRACE_FORMAT": format}).ok().trace
        for command in ["info"], ["top", "--by-thread", "--kind=all"]:
            text = proc.run([GOTRACE, *command, trace]).ok().stdout
            assert "?[31mred?" in text and "\033" not in text, text


@pytest.mark.parametrize("format", gotools.some(of=["go1.21", "go1.22", "go1.23", "go1.25", "go1.26"]))
def test_cut(traced, tmp_path, format):
    """Wherever the file ends: whole generations, which Go's tool takes as a trace, are reported, and the rest is counted."""
    data = record(traced, format, "rounds").trace.read_bytes()
    cut = tmp_path / "cut"
    at_an_end = checked = 0
    explained = set()
    for size in range(17, len(data), max(1, len(data) // 60)):
        cut.write_bytes(data[:size])
        fields, kinds, _ = info(cut)
        if fields["file"] == NO_END:
            at_an_end += 1
        else:
            lost = int(re.search(r"last (\d+) bytes", fields["file"])[1])
            assert 0 < lost < size
            cut.write_bytes(data[: size - lost])
            rest, same, _ = info(cut) if size - lost > 16 else ({"file": NO_END}, kinds, None)
            # A v1 file is filled up behind its end; another batch may need what the file lacks there.
            v1 = format == "go1.21" and (rest["file"] == WHOLE or rest["file"].startswith("refused by Go's reader: "))
            assert same == kinds and (rest["file"] == NO_END or v1), (size, lost, rest["file"])
            if format != "go1.21" and size - lost > 16 and checked < 3:
                gotools.check(cut)
                checked += 1
        cut.write_bytes(data[:size])
        top, why = proc.run([GOTRACE, "top", cut]).ok().stdout, proc.run([GOTRACE, "why", cut])
        warning = "" if fields["file"] == NO_END else f"The file is cut: its last {lost} of {size} bytes cannot be read"
        locks = proc.run([GOTRACE, "top", "--holders", cut]).ok().stdout
        for page in [top, locks, why.stdout][: 2 + (why.returncode == 0)]:
            assert page.startswith(warning or f"{cut}: "), (size, page[:200])
        explained.add(bool(warning and why.stdout))
    assert at_an_end < 20 and True in explained


def test_not_a_trace(tmp_path):
    for content in b"", b"go 1.23", b"x" * 100:
        (tmp_path / "f").write_bytes(content)
        for command in "info", "top":
            result = proc.run([GOTRACE, command, tmp_path / "f"])
            assert result.returncode == 1 and "is not a Go execution trace" in result.stderr


@pytest.mark.chance
@pytest.mark.long
def test_damaged_files_are_survived(traced, tmp_path):
    """Bytes changed at random: a message or a report, never a touch of what is not its own. `make asan`."""
    chosen = seeded("FUZZ_FIRST", 7)
    for format in "go1.5", "go1.21", "go1.23", "go1.26":
        data = record(traced, format, "rounds").trace.read_bytes()
        for i in range(60):
            bad = bytearray(data)
            for _ in range(chosen.randrange(1, 6)):
                bad[chosen.randrange(16, len(bad))] = chosen.randrange(256)
            (tmp_path / "bad").write_bytes(bad)
            options = [["--json"], ["--holders", "--json"], []][i % 3]
            result = proc.run([SANITIZED, "top", *options, tmp_path / "bad"], env=SANITIZER)
            assert result.returncode in (0, 1), result


def varint(n):
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)


def generation(*batches):
    """A trace of one, in format go1.25, from lists of numbers and texts."""
    trace = b"go 1.25 trace".ljust(16, b"\0")
    for batch in batches:
        data = b"".join(item if isinstance(item, bytes) else varint(item) for item in batch)
        trace += varint(1) + varint(1) + varint(7) + varint(1000) + varint(len(data)) + data
    return trace


NOWHERE = (1 << 64) - 1
EVENTS = [25, 0, 1, 7, 2, 25, 0, 2, NOWHERE, 4, 21, 0, 2, 1, 1]  # g1 runs, g2 waits, g1 wakes it with stack 1
CLOCK = [50, 8, 1_000_000, 51, 0, 0, 1000, 0]


@pytest.mark.parametrize("command", [["info"], ["top", "--wakers", "--kind=all"], ["symbolize", "-o", "out"]])
@pytest.mark.parametrize(
    "batches, refused",
    [
        ([EVENTS, [2, 3, 1, 0], CLOCK], False),
        ([EVENTS, [50, 8, 1, 51, 0, 0, 1 << 63, 1 << 63]], True),  # and stack 1 is missing
        ([EVENTS, [4, 5, 0, 100_000, b"x" * 100_000], [2, 3, 1, 1, 4096, 0, 0, 0], CLOCK], True),
    ],
    ids=["a stack without frames", "a time beyond the calendar", "a long text as string 0"],
)
def test_odd_files_are_read(tmp_path, command, batches, refused):
    """What no writer makes: reports read it, also where Go does not; what Go refuses is not written anew."""
    trace = tmp_path / "odd"
    trace.write_bytes(generation(*batches))
    result = proc.run([SANITIZED, *command, trace], env=SANITIZER, cwd=tmp_path)
    assert result.returncode == (refused and command[0] == "symbolize"), result
    assert ("not written: Go's reader refuses" in result.stderr) == (refused and command[0] == "symbolize")
    assert command[0] != "info" or ("file         refused by Go's reader: " in result.stdout) == refused
    assert command[0] != "top" or "1 wait, " in result.stdout


MISSING = varint(777) + varint(1 << 40)  # ids that no table has
GO_STATUS = [25, 0, 1, 7, 2]


@pytest.mark.parametrize("command", [["info"], ["top", "--kind=all"], ["symbolize", "-o", "out"]])
@pytest.mark.parametrize(
    "damage",
    [
        lambda: generation([b"\x14\0" + MISSING] * 1_000_000, CLOCK),  # GoBlock: reason, stack
        # stacks of 50 frames each: PC, function, file, line
        lambda: generation(GO_STATUS, [2, *[b"\3\1\x32" + (varint(1 << 50) + MISSING + b"\0") * 50] * 20_000], CLOCK),
        lambda: b"go 1.21 trace".ljust(16, b"\0") + b"\x41\0\1" + b"\x59\0\x89\x06" * 2_000_000,  # GoBlockSync: stack
    ],
    ids=["reasons and stacks", "texts of frames", "v1"],
)
def test_missing_ids_take_no_memory(tmp_path, command, damage):
    trace = tmp_path / "damaged"
    trace.write_bytes(damage())
    # beside the file, which is mapped
    result = proc.run(["prlimit", f"--data={24 << 20}", TOOL, *command, trace], cwd=tmp_path)
    if command[0] == "symbolize":  # Go refuses the file, and would refuse what is made of it
        assert result.returncode == 1 and "not written: Go's reader refuses" in result.stderr, result
    else:
        assert result.returncode == 0, result


def without_names(text):
    """The sentence about it in a report, in one line: the part of the time, the modules, and what to do."""
    found = re.search(r"^(\d+) % of the (?:time above|critical path) is in functions without names \((.*?)\)\.\n(.*)", text, re.M)
    return found and (int(found[1]), found[2], found[3])


def part_without_names(command, trace):
    """The rows of such functions in what the command adds up, in percent."""
    document = json.loads(proc.run([GOTRACE, *command, "--json", trace]).ok().stdout)
    rows = document["path"]["rows"] if command == ["why"] else document["waits"]
    weights = [(row.get("ns", row.get("total_ns")), "+0x" in row["function"]) for row in rows]
    return 100 * sum(ns for ns, without in weights if without) / sum(ns for ns, _ in weights)


@pytest.fixture
def stripped(tmp_path):
    program = tmp_path / "stripped"
    proc.run(["strip", "-o", program, PROGRAMS / "truth"]).ok()
    return program


@pytest.mark.parametrize("what", ["--holders", "--by-lock", "--by-thread", "--wakers"])
def test_locks_without_names(traced, stripped, what):
    """Each report that shows addresses says so at its end."""
    trace = traced([stripped]).ok().trace
    assert without_names(proc.run([GOTRACE, "top", what, trace]).ok().stdout)[1] == "stripped"
    named = traced([PROGRAMS / "truth"]).ok().trace
    assert not without_names(proc.run([GOTRACE, "top", what, named]).ok().stdout)


@pytest.mark.parametrize("command", [["top", "--kind=sync"], ["why"]])
def test_modules_without_names(traced, tmp_path, stripped, command):
    """A report says how much is in them, and where the names come from; a format that is given none later is recorded again."""
    build = "Build stripped with -g, do not strip it, and record again."
    for program, format in (stripped, "go1.23"), (stripped, "go1.5"), (PROGRAMS / "truth", "go1.23"):
        trace = traced([program], env={"GOTRACE_FORMAT": format}).ok().trace
        text, part = proc.run([GOTRACE, *command, trace]).ok().stdout, part_without_names(command, trace)
        told = without_names(text)
        assert (part > 0) == (program == stripped) and (told is not None) == (part >= 9.5), (part, text)
        if told:
            assert abs(told[0] - part) <= 0.5 and told[1:] == ("stripped", build), (part, text)
            assert (f"\nOr, where DIR has that file as it was before it was stripped: gotrace symbolize --debug-dir=DIR {trace}\n" in text) == (format == "go1.23"), text


def test_names_from_before_a_program_was_stripped(traced, tmp_path, stripped):
    """The advice leads to names."""
    trace = traced([stripped]).ok().trace
    (tmp_path / "before").mkdir()
    shutil.copy(PROGRAMS / "truth", tmp_path / "before/stripped")
    assert without_names(proc.run([GOTRACE, "top", trace]).ok().stdout)
    proc.run([GOTRACE, "symbolize", f"--debug-dir={tmp_path}/before", trace]).ok()
    assert not without_names(proc.run([GOTRACE, "top", trace]).ok().stdout)


def test_a_module_that_is_another_build_by_now(traced, stripped):
    """Its package would have other names."""
    trace = traced([stripped]).ok().trace
    proc.run(["strip", "-o", stripped, PROGRAMS / "threads"]).ok()
    advice = without_names(proc.run([GOTRACE, "top", trace]).ok().stdout)[2]
    assert advice == f"Install their debug symbols (packages called -dbgsym or -debuginfo), then: gotrace symbolize {trace}"


DIVERTED = "{by} from: /FILE\n{by} to: /FILE.real\n"


@pytest.mark.parametrize(
    "answers, package",
    [
        ({"dpkg": "memcached: /FILE"}, "memcached-dbgsym"),
        ({"dpkg": "libc6:amd64: /FILE"}, "libc6-dbg"),
        ({"dpkg": "python3.11-minimal: /FILE"}, "python3.11-dbg"),
        ({"dpkg": "libpython3.11-stdlib:amd64: /FILE"}, "python3.11-dbg"),
        ({"dpkg": "mawk, gawk: /FILE"}, "mawk-dbgsym"),
        ({"dpkg": DIVERTED.format(by="diversion by parallel") + "parallel: /FILE"}, "parallel-dbgsym"),
        ({"dpkg": DIVERTED.format(by="local diversion") + "pigz: /FILE"}, "pigz-dbgsym"),
        ({"dpkg": "", "rpm": "nginx-core"}, "nginx-core-debuginfo"),
    ],
)
def test_debug_packages(traced, tmp_path, stripped, answers, package):
    trace = traced([stripped]).ok().trace
    for command, answer in answers.items():
        (tmp_path / command).write_text(f"#!/bin/sh\ncat <<END | sed /./!d\n{answer}\nEND\n")
        (tmp_path / command).chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "DEBUGINFOD_URLS": ""}
    text = proc.run([GOTRACE, "top", trace], env=env).ok().stdout
    assert without_names(text)[2] == f"Install {package}, then: gotrace symbolize {trace}", text
    assert re.search(rf"\nOr fetch the names from a server: DEBUGINFOD_URLS=\S+.* gotrace symbolize --debuginfod {trace}\n", text), text
    assert "\nFirst add their archive" not in text or package.endswith("-dbgsym"), text
    text = proc.run([GOTRACE, "top", trace], env=env | {"DEBUGINFOD_URLS": "http://localhost"}).ok().stdout
    assert f"\nOr fetch the names from a server: gotrace symbolize --debuginfod {trace}\n" in text, text


@pytest.mark.measured
@pytest.mark.needs("pigz", "dpkg")
def test_packages_with_the_names(traced, tmp_path):
    """Those of the distribution's modules, if they are on this machine."""
    (tmp_path / "in").write_bytes(os.urandom(1 << 20))
    trace = traced(["pigz", "-kp", "2", tmp_path / "in"]).ok().trace
    percent, modules, advice = without_names(proc.run([GOTRACE, "why", trace]).ok().stdout)
    assert percent > 10 and "pigz" in modules.split(", ") and re.match("Install (.*, )?pigz-dbgsym(,| )", advice), (modules, advice)


@pytest.mark.measured
@pytest.mark.limit(180)
@pytest.mark.long
def test_speed(traced):
    """Millions of events take seconds."""
    trace = traced([PROGRAMS / "yields", "8", "200000"], env=proc.EVERY_YIELD, timeout=100).ok().trace
    result = proc.run([GOTRACE, "info", trace], timeout=60).ok()
    events = int(re.search(r"^  events +(\d+)", result.stdout, re.M)[1])
    assert events > 1_000_000 and result.seconds < 1 + events / 1_000_000, (events, result.seconds)


def test_progress(traced):
    """How far reading a large file is: on a terminal a percentage that goes away again, else one line."""
    trace = traced([PROGRAMS / "truth"]).ok().trace
    os.truncate(trace, 300 << 20)  # what follows the trace is no generation
    result = proc.run([GOTRACE, "top", trace]).ok()
    assert result.stderr == f"gotrace: reading {trace}, 300 MiB\n"
    terminal, its = pty.openpty()
    child = subprocess.run([GOTRACE, "top", trace], stdout=subprocess.PIPE, stderr=its, timeout=30)
    os.close(its)
    assert child.returncode == 0
    shown = os.read(terminal, 10000).decode()
    os.close(terminal)
    assert shown.endswith("\r\x1b[K"), shown


@pytest.mark.parametrize("name, shown", [(b"a\x9b31mb", "a\ufffd31mb"), (b"a\xffb", "a\ufffdb"), ("a\u009bb".encode(), "a??b"), ("é\nb".encode(), "é?b"), ("a\u202eb".encode(), "a???b"), ("a\u2066b".encode(), "a???b")])
def test_names_that_are_no_text(tmp_path, name, shown):
    """Nothing that controls a terminal, whichever characters that takes; all else as it is."""
    program = SINGLE / "reports/named"
    trace = proc.traced([program, os.fsdecode(name)], tmp_path / "t.out").ok().trace
    for command in (["info"], ["top", "--by-thread"], ["why"]):
        out = subprocess.run([GOTRACE, *command, trace], capture_output=True, check=True, timeout=20).stdout.decode()
        assert not [c for c in out if ord(c) < 32 and c != "\n" or 127 <= ord(c) < 160], out
        assert command == ["why"] or shown in out, out


@pytest.mark.parametrize("character", "xé€")
def test_columns_of_characters(tmp_path, character):
    """Names are cut between characters, and columns have as many of those, however many bytes each takes."""
    size = len(character.encode())
    program, traces = tmp_path / (30 * character), [tmp_path / "1.out", tmp_path / "2.out"]
    name, process = 15 // size * character, min(30, 32 // size) * character  # a thread's name has 15 bytes, a trace's program 32
    shutil.copy(SINGLE / "reports/named", program)
    for trace in traces:
        proc.traced([program, name], trace).ok()
    proc.run([GOTRACE, "merge", "-o", tmp_path / "both.out", *traces]).ok()
    one, both = [], []
    for trace, rows in (traces[0], one), (tmp_path / "both.out", both):
        rows += table(proc.run([GOTRACE, "info", trace]).ok().stdout, "tid", "name", "routine", "lived", "unseen")
    assert [row["name"] for row in one] == ["-", name] and [row["routine"] for row in one + both] == ["main", "thread", "main", "thread", "-", "thread"]
    whole = [f"{process}.{row['tid']}/main" for row in both[::2]]
    assert [row["name"] for row in both[::2]] == [text[:40] for text in whole]
    narrow = table(proc.on_terminal([GOTRACE, "info", tmp_path / "both.out"], columns=80).stdout, "tid", "name or routine", "lived", "unseen")
    assert [row["name or routine"] for row in narrow[::2]] == [text[:15] for text in whole]
    for now, before in zip(narrow, both):
        assert now["tid"] == before["tid"] and now["lived"] == before["lived"]


# --- what others wrote

# What turns the terminal's text around, what colours it, what ends lines, and what is no UTF-8.
EVIL = "a\u202eb\u2066c\u200fd\u2028e\u061cf\x1b[31mg\nh\x7f\u009bi\udcff-é"
SHOWN = re.compile(r"[^\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]*")


def test_what_others_named_controls_no_terminal(tmp_path):
    """A trace's path, threads, functions: reports are lines of their own; JSON and SQL have the path as it is."""
    program = SINGLE / "reports/evil"
    trace = tmp_path / EVIL
    said = proc.run([GOTRACE, "-o", trace, program]).ok().stderr
    assert trace.exists()
    bad = tmp_path / f"bad{EVIL}"
    bad.write_bytes(trace.read_bytes()[:-9])
    nothing = tmp_path / f"none{EVIL}"
    texts = [said]
    for command in ["info"], ["info", "--check"], ["top"], ["top", "--by-thread"], ["top", "--wakers"], ["why"]:
        texts.append(proc.run([GOTRACE, *command, trace]).ok().stdout)
        assert "a???b???c" in texts[-1], (command, texts[-1])
        for file in bad, nothing:
            result = proc.run([GOTRACE, *command, file])
            texts += [result.stdout, result.stderr]
    texts.append(proc.run([GOTRACE, "sql", trace, "select name from threads union select path from trace"]).ok().stdout)
    for text in texts:
        assert SHOWN.fullmatch(text), text
        assert not [line for line in text.splitlines() if line.startswith("h")], text
    assert "x???y\ufffdz-é" in texts[1], texts[1]
    for command in "info", "top", "why":
        found = json.loads(proc.run([GOTRACE, command, "--json", trace]).ok().stdout)
        assert found["trace"].startswith(str(tmp_path / "a\u202eb\u2066c\u200fd\u2028e\u061cf\x1b[31mg\nh\x7f\u009bi")), found["trace"]
