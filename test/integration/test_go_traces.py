"""Traces that Go programs write of themselves, by each version of Go that is here, and every command: beside what those
programs know, and what Go's own tool makes of the same file. And files that are no traces."""

import collections
import functools
import json
import os
import re
import socket
import subprocess

import pytest

from lib import PROGRAMS, ROOT, SANITIZER, SOURCES, gotools, proc
from lib.exported import Perfetto, export, folded, go_pprof
from lib.seeds import seeded
from test_cut import FUZZ, SLACK, check_readers, convert, cut_ns, differences, sums, window

GOTRACE = ROOT / "build/gotrace"
SANITIZED = ROOT / "build/asan/gotrace"
PROGRAM = ROOT / "test/apps/everything"

# "everything" is built with the machine's Go; the others with those that scripts/get-go gets.
RECORDINGS = ["everything", "profiled", "experiment", *(f"{name}-1.{n}" for n in gotools.VERSIONS for name in ("busy", "itself"))]

recordings = pytest.mark.parametrize("name", RECORDINGS)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A function: the trace of that name, recorded once, and what its program printed."""
    directory = tmp_path_factory.mktemp("recorded")

    @functools.cache
    def everything():
        return gotools.build(PROGRAM, directory / "app")

    @functools.cache
    def record(name):
        trace, env = directory / f"{name}.out", {}
        if "-1." in name:
            program, version = name.split("-")
            argv = [gotools.program(gotools.find(version), program), trace]
        else:
            argv = [everything(), trace, *(["profile"] if name == "profiled" else [])]
            env = {"GODEBUG": "traceallocfree=1"} if name == "experiment" else {}
        return trace, proc.run(argv, env=env, timeout=60).ok().stdout

    return record


def format_of(trace):
    return re.match(rb"(go) (1\.\d+) trace", trace.read_bytes()[:16]).expand(rb"\1\2").decode()


def sql(trace, statement):
    return json.loads(proc.run([GOTRACE, "sql", "--json", trace, statement], timeout=60).ok().stdout or "[]")


# --- What they did

KINDS = {"sync": "sync", "network": "net", "syscall": "syscall", "sched": "sched"}


def by_leaf(trace, kind):
    """Function → (how often, ns) of the waits or calls that are over, but for what a goroutine did before it ran for the
    first time, as Go's profiles have it."""
    where = "calls" if kind == "syscall" else "waits"
    rows = sql(
        trace,
        f"""WITH ran AS (SELECT thread_id, min(begin_ns) AS at FROM running GROUP BY thread_id)
            SELECT function AS leaf, count(*) AS n, sum(ns) AS ns FROM {where} AS w JOIN ran USING (thread_id)
            LEFT JOIN stack_frames AS s ON s.stack_id = w.stack_id AND depth = 0 LEFT JOIN frames ON frames.id = frame_id
            WHERE ended AND begin_ns >= ran.at {"" if kind == "syscall" else f"AND kind = '{kind}'"} GROUP BY function""",
    )
    return {row["leaf"] or "": (row["n"], row["ns"]) for row in rows}


@pytest.mark.measured
@pytest.mark.limit(200)
@recordings
def test_sums(recorded, name):
    """Those of Go's own profiles, by place. Where someone waits for a CPU is in those where it was woken."""
    trace, _ = recorded(name)
    wrong = []
    for kind, profile in KINDS.items():
        theirs, ours = gotools.pprof(trace, profile), by_leaf(trace, kind)
        if kind == "sched":
            total, n = sum(ns for _, ns in ours.values()), theirs.total_count
            assert abs(total - theirs.total_ns) <= 0.001 * theirs.total_ns + n, (total, theirs.total_ns)
            continue
        ns, counts = theirs.leaf_ns(), theirs.leaf_count()
        for leaf in ours.keys() | ns.keys():
            n, own = ours.get(leaf, (0, 0))
            # What took no time by the program's clock they do not count. Times are rounded to a nanosecond; in v1 it is
            # not told how long a short call takes, which is one there.
            if abs(n - counts[leaf]) > 1 + n // 50 or abs(own - ns[leaf]) > 0.001 * ns[leaf] + n:
                wrong.append((kind, leaf, n, counts[leaf], own, ns[leaf]))
    assert len(wrong) <= 1, wrong  # Go's reader may show a call longer: see "Written anew"


def near(one, other):
    return all(abs(one[key] - other[key]) <= 0.001 * other[key] + 1000 for key in one.keys() | other.keys())


@pytest.mark.limit(100)
@pytest.mark.parametrize("format", ["go1.11", "go1.23"])
def test_all_say_the_same(tmp_path, format):
    """Where threads waited, in a trace of ours: top, sql, pprof, folded stacks, Perfetto's, and Go's totals."""
    trace = proc.traced([PROGRAMS / "rounds"], tmp_path / "t.out", env={"GOTRACE_FORMAT": format}).ok().trace
    profile, in_perfetto = export(trace, "pprof"), collections.Counter()
    for slice_ in Perfetto(export(trace, "perfetto")).slices:
        in_perfetto[slice_["category"][0]] += slice_["duration"]
    for kind, of_go in KINDS.items():
        top = json.loads(proc.run([GOTRACE, "top", "--json", "--idle=none", "-n1000000", f"--kind={kind}", trace]).ok().stdout)
        rows = sql(trace, f"""SELECT function AS leaf, sum(ns) AS ns FROM {"calls" if kind == "syscall" else "waits"} AS w
                              LEFT JOIN stack_frames AS s ON s.stack_id = w.stack_id AND depth = 0
                              LEFT JOIN frames ON frames.id = frame_id
                              {"" if kind == "syscall" else f"WHERE kind = '{kind}'"} GROUP BY function""")  # fmt: skip
        in_sql = collections.Counter({row["leaf"] or "": row["ns"] for row in rows})
        in_top = collections.Counter()
        for row in top["waits"]:
            in_top[row["stack"][0]["function"] if row["stack"] else ""] += row["total_ns"]
        assert in_sql and near(in_top, in_sql), (kind, in_top, in_sql)
        in_folded = collections.Counter()
        for frames, ns in folded(trace, f"--kind={kind}"):
            in_folded[next((f for f in reversed(frames) if not f.startswith("[")), "")] += ns
        in_pprof = go_pprof(profile, f"-sample_index={kind}")
        total = in_sql.total()
        for found in (in_folded.total(), in_pprof.total(), in_perfetto[kind], top["total_ns"]):
            assert abs(found - total) <= 0.001 * total + 1000, (kind, in_folded, in_pprof, in_perfetto, in_sql)
        if kind != "sched":
            theirs, ours = gotools.pprof(trace, of_go).total_ns, sum(ns for _, ns in by_leaf(trace, kind).values())
            assert abs(ours - theirs) <= 0.001 * theirs + 1000 * top["count"], (kind, ours, theirs)


@recordings
def test_nothing_is_odd(recorded, name):
    """Each event was possible when it was told, and each command has a result."""
    trace, _ = recorded(name)
    info = proc.run([GOTRACE, "info", trace]).ok().stdout
    assert "damage" not in info and "cut:" not in info and "by a Go program" in info, info
    for argv in (["top", "--kind=all", "--idle=none"], ["top", "--by-thread"], ["why", "--json"]):
        assert proc.run([GOTRACE, *argv, trace]).ok().stdout, argv
    for to in "pprof", "folded", "flame", "perfetto", "firefox", "chrome":
        output = trace.with_suffix(f".{to}")
        proc.run([GOTRACE, "export", f"--to={to}", "-o", output, trace]).ok()
        assert output.stat().st_size > 100
    proc.run([GOTRACE, "report", trace, "-o", trace.with_suffix(".html")]).ok()


@pytest.mark.parametrize("name", ["everything", "profiled"])
def test_what_it_knows(recorded, name):
    """Its goroutines, also those that were there before, and coroutines; what it says of itself; samples."""
    trace, printed = recorded(name)
    # The goroutine that writes the profile may have been in a call, too, which then lasts as long as the trace.
    calls = sql(trace, "SELECT ns FROM calls WHERE begin_ns = 0 AND ended")
    assert any(call["ns"] >= int(printed) for call in calls), calls
    waits = sql(trace, "SELECT reason, count(*) AS n FROM waits GROUP BY reason")
    assert {"chan send", "chan receive", "select", "sync", "sync.(*Cond).Wait", "network", "sleep"} <= {w["reason"] for w in waits}
    assert sql(trace, "SELECT name, ended FROM tasks") == [{"name": "request", "ended": 1}]
    regions = sql(trace, "SELECT name, count(*) AS n, min(ended) AS ended FROM regions GROUP BY name ORDER BY name")
    assert regions == [{"name": "inner", "n": 20, "ended": 1}, {"name": "part", "n": 20, "ended": 1}]
    assert sql(trace, "SELECT category, message, count(*) AS n FROM logs") == [{"category": "step", "message": "here", "n": 20}]
    (crowd,) = sql(trace, "SELECT count(*) AS n FROM threads WHERE routine LIKE 'main.spawn%' AND ended")
    assert crowd["n"] >= 500
    if gotools.minor_of(gotools.compiler()) >= 23:
        (coroutines,) = sql(trace, "SELECT count(*) AS n, min(ended) AS ended FROM threads WHERE routine = 'runtime.corostart'")
        assert coroutines == {"n": 10, "ended": 1}
    samples = sql(trace, "SELECT count(*) AS n FROM samples")
    assert (samples[0]["n"] > 0) == (name == "profiled")


# --- Written anew
#
# Tests that compare times are measured here. The thread that takes a P from one in a system call may note it late, when
# the call is long over. Go's readers put the end of the call behind that, and so does a trace written anew: there the call
# is longer, by 17 µs once in some 200 recordings on two busy CPUs.


def by_state(found):
    states = collections.Counter()
    for key, ns in found.items():
        states[key and (key[0], key[1] if key[1] in ("running", "sched", "syscall") else "waits")] += ns
    return states


def assert_same(one, other, reasons=False, slack=SLACK):
    """What goroutines did; reasons: also what they waited for, and where, which is not told of who did when it began."""
    assert not differences(*((one, other) if reasons else map(by_state, (one, other))), slack)


def parts_of(trace, directory):
    """Of each part of the trace: its file, that of which it is a part, from when, until when. Anywhere; the last is a part of a part."""
    chance, parts, length = seeded("FUZZ_FIRST", 4711), [], sums(trace)[None]
    for i in range(6):
        start, end = sorted(chance.sample(range(length), 2))
        parts.append((cut_ns(trace, directory / f"{i}.out", start, end), trace, start, end))
    whole = parts[0][0]
    length = sums(whole)[None]
    parts.append((cut_ns(whole, directory / "part.out", length // 4, length // 2), whole, length // 4, length // 2))
    return parts


cuttable = pytest.mark.parametrize("name", [name for name in RECORDINGS if name != "experiment"])


@pytest.mark.limit(200)
@cuttable
def test_parts(recorded, tmp_path, name):
    trace, _ = recorded(name)
    check_readers(format_of(trace), *(part for part, *_ in parts_of(trace, tmp_path)))


@pytest.mark.measured
@cuttable
def test_times_in_parts(recorded, tmp_path, name):
    for part, of, start, end in parts_of(recorded(name)[0], tmp_path):
        assert_same(sums(part), window(of, start, end))


OTHER_FORMATS = gotools.some("go1.5", "go1.11", "go1.22", "go1.26")
some_recordings = pytest.mark.parametrize("name", ["everything", "profiled", "experiment", "busy-1.22", "busy-1.21", "itself-1.19"])


@pytest.mark.limit(300)
@some_recordings
@pytest.mark.long
def test_other_formats(recorded, tmp_path, name):
    """All of them are what Go's readers take, and the command says what is missing there."""
    trace, _ = recorded(name)
    own = int(format_of(trace)[4:])
    for format in OTHER_FORMATS:
        new = tmp_path / f"{format}.out"
        said = proc.run([GOTRACE, "convert", f"--format={format}", trace, "-o", new]).ok().stderr
        check_readers(format, new)
        minor = int(format[4:])
        assert ("stacks of waits" in said) == (minor < 23 <= own) and ("tasks" in said) == (minor < 11)
        assert ("experiments" in said) == (name == "experiment")


@pytest.mark.measured
@some_recordings
@pytest.mark.long
def test_times_in_other_formats(recorded, tmp_path, name):
    trace, _ = recorded(name)
    before = sums(trace)
    for format in (format for format in OTHER_FORMATS if format != "go1.5"):
        exact = int(format[4:]) >= 23
        # There nobody is created waiting: a coroutine is when it first runs.
        told = before if exact else {key: ns for key, ns in before.items() if not key or key[2] != "runtime.corostart"}
        assert_same(sums(convert(trace, format, tmp_path / f"{format}.out")), told, reasons=exact, slack=SLACK if exact else 10 * SLACK)


def test_not_by_threads(recorded, tmp_path):
    trace, _ = recorded("itself-1.26")
    result = proc.run([GOTRACE, "cut", "--threads=main", trace, "-o", tmp_path / "part.out"])
    assert result.returncode == 1 and "goroutines share threads" in result.stderr and not list(tmp_path.iterdir()), result


@pytest.mark.measured
def test_back_and_forth(recorded, tmp_path):
    """What came through v1 has the same sums in Go's profiles."""
    trace, _ = recorded("everything")
    back = convert(convert(trace, "go1.21", tmp_path / "old.out"), "go1.23", tmp_path / "back.out")
    for kind in "sync", "net", "syscall":
        one, other = gotools.pprof(trace, kind), gotools.pprof(back, kind)
        # Not the same number: one that took no time, by the program's clock, is in none of them.
        assert one.total_ns and abs(one.total_ns - other.total_ns) <= 0.001 * one.total_ns, kind


# --- Bad input


# The arguments of every command that takes a trace, without the trace; its output is `o`.
COMMANDS = [
    ["why"],
    ["top"],
    ["info"],
    ["report"],
    ["view"],
    ["sql"],
    ["export", "--to=folded", "-o", "o"],
    ["cut", "-o", "o"],
    ["convert", "--format=go1.23", "-o", "o"],
    ["merge", "-o", "o"],
    ["symbolize"],
]


def test_commands():
    """No command that takes a trace is missing above. A BOX is what a killed program has left."""
    found = re.findall(r"^ +gotrace (\w+) +(.*?TRACE.*?)(?:  |$)", proc.run([GOTRACE, "--help"]).ok().stdout, re.M)
    assert [name for name, usage in found if "BOX" not in usage] == [name for name, *_ in COMMANDS]


NO_TRACES = {
    "missing": "No such file",
    "empty": "it is empty; a program that was killed early",
    "/bin/sh": "is not a Go execution trace",
    "/dev/null": "no regular file",
    "/dev/stdin": "no regular file",
    "socket": "No such device or address",
    "text": "is not a Go execution trace",
    "packed": "compressed",
    "future": "a Go that is not known",
    "directory": "no regular file",
    "fifo": "no regular file",  # with nobody at its other end
    "endless": "no regular file",  # with somebody who writes into it for ever
    "/dev/zero": "no regular file",
}


@pytest.fixture(scope="module")
def no_traces(tmp_path_factory):
    directory = tmp_path_factory.mktemp("bad")
    (directory / "empty").touch()
    (directory / "text").write_text("hello, world\n" * 100)
    (directory / "packed").write_bytes(b"\x1f\x8b\x08" + bytes(100))
    (directory / "future").write_bytes(b"go 1.99 trace".ljust(16, b"\0") + bytes(100))
    (directory / "directory").mkdir()
    os.mkfifo(directory / "fifo")
    os.mkfifo(directory / "endless")
    writer = proc.spawn(["sh", "-c", "exec yes 1<>endless"], cwd=directory, stdout=subprocess.DEVNULL)
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(str(directory / "socket"))
        yield directory
    proc.kill_group(writer)


@pytest.mark.parametrize("argv", COMMANDS, ids=lambda argv: argv[0])
def test_no_traces(no_traces, argv):
    """At once, in little memory, a line says what it is instead; nothing is written."""
    before = sorted(os.listdir(no_traces))
    for name, what in NO_TRACES.items():
        result = proc.run(["prlimit", f"--data={64 << 20}", GOTRACE, *argv, name], cwd=no_traces)
        assert result.returncode == 1 and not result.stdout, result
        assert re.fullmatch(rf"gotrace: {name}: .*{what}.*\n", result.stderr), result
    assert sorted(os.listdir(no_traces)) == before


@pytest.mark.parametrize("argv", [["merge", "good", "-o", "o"], ["stacks"]], ids=["merge", "stacks"])
def test_no_traces_among_others(no_traces, recorded, argv):
    """Behind a good one; and where a core file is wanted."""
    argv = [recorded("itself-1.26")[0] if word == "good" else word for word in argv]
    before = sorted(os.listdir(no_traces))
    for name in NO_TRACES:
        result = proc.run([GOTRACE, *argv, name], cwd=no_traces)
        assert result.returncode == 1 and re.fullmatch(r"gotrace: .*\n", result.stderr) and not result.stdout, result
    assert sorted(os.listdir(no_traces)) == before


@pytest.mark.parametrize("format", ["go1.11", "go1.23"])
@pytest.mark.parametrize("argv", COMMANDS, ids=lambda argv: argv[0])
def test_becomes_shorter(tmp_path, argv, format):
    """While it is read: that it has been mapped is when it happens."""
    trace, places = tmp_path / "d/t.out", tmp_path / "d"
    proc.run([FUZZ, format, 193, 1, tmp_path]).ok()
    library = proc.compile(SOURCES / "go_traces/shrinks.c", tmp_path / "shrinks.so", "-shared", "-fPIC")
    places.mkdir()
    (tmp_path / f"{format}-193.trace").rename(trace)
    assert trace.stat().st_size > 8192
    result = proc.run([GOTRACE, *argv, trace], cwd=places, env={"LD_PRELOAD": str(library), "SHRINKS": str(trace)})
    assert result.returncode == 1 and not result.stdout, result
    assert f"gotrace: {trace}: it became shorter while it was read, or the disk cannot be read\n" in result.stderr, result
    assert os.listdir(places) == ["t.out"]


@pytest.mark.parametrize("format", gotools.some("go1.7", "go1.11", of=["go1.7", "go1.11", "go1.23", "go1.26"]))
def test_holes(tmp_path, format):
    """What a file system leaves at the end, or a whole file of it: read at once, however large it says that it is."""
    trace = tmp_path / "t.out"
    proc.traced([PROGRAMS / "parts"], trace, env={"GOTRACE_FORMAT": format}).ok()
    size = trace.stat().st_size
    before = sums(trace)
    for at in (size, 16):
        os.truncate(trace, at)
        os.truncate(trace, at + (32 << 20))
        proc.run(["prlimit", "--cpu=2", GOTRACE, "info", trace]).ok()
        assert at == 16 or not differences(sums(trace), before)


DAMAGES = 12


@pytest.mark.chance
@pytest.mark.limit(200)
@pytest.mark.parametrize("name", ["everything", "experiment", "itself-1.19", "itself-1.21", "busy-1.22", "itself-1.26"])
def test_damaged(recorded, tmp_path, name):
    """A message or a result, and no touch of what is not its own. More of it: DAMAGES."""
    data, chance = recorded(name)[0].read_bytes(), seeded("FUZZ_FIRST", 1, name)
    options = {"cut": ["--from=1ms", "--to=30ms"], "top": ["--kind=all", "--holders"], "why": [], "convert": ["--format=go1.21"]}
    bad, part = tmp_path / "bad.out", tmp_path / "part.out"
    for i in range(int(os.environ.get("DAMAGES", DAMAGES))):
        wrong = bytearray(data[: chance.randrange(17, len(data))] if i % 3 == 0 else data)
        for _ in range(chance.choice((1, 4, 30))):
            wrong[chance.randrange(16, len(wrong))] = chance.randrange(256)
        bad.write_bytes(wrong)
        command = chance.choice(list(options))
        output = ["-o", part] if command in ("cut", "convert") else []
        result = proc.run([SANITIZED, command, *options[command], bad, *output], timeout=60, env=SANITIZER)
        assert result.returncode in (0, 1), result
        assert not output or part.exists() == (result.returncode == 0), result
        part.unlink(missing_ok=True)


WAYS = [
    *(["info", *more] for more in ([], ["--json"])),
    *(["top", *more] for more in ([], ["--by-thread"], ["--cum"], ["--wakers"], ["--holders"], ["--by-lock"], ["--wakeups"],
                                  ["--preempted"], ["--cpu"], ["--kind=cpu"], ["--kind=all", "--idle=none"], ["--json"])),
    *(["why", *more] for more in ([], ["--json", "--timeline"])),
    ["report", "-o", "o"],
    ["sql", "-o", "o"],
    *(["export", f"--to={to}", "-o", "o"] for to in ("pprof", "folded", "flame", "perfetto", "firefox", "chrome")),
    *(["cut", *more, "-o", "o"] for more in (["--from=1ms", "--to=30ms"], ["--around=longest"], ["--threads=."])),
    *(["convert", f"--format={format}", *more, "-o", "o"] for format, *more in (["go1.5"], ["go1.11"], ["go1.22"], ["go1.26", "--holds"])),
    ["merge", "-o", "o"],
    ["symbolize", "-o", "o"],
    ["recover", "-o", "o"],
    ["stacks"],
]  # fmt: skip


def damages(data, chance):
    """What is left of a file that was cut, overwritten in places, or in part; or that says it is another format's."""
    data = bytearray(data)
    at = chance.randrange(16, len(data))
    if (kind := chance.randrange(4)) == 0:
        return data[:at]
    if kind == 1:
        for _ in range(chance.choice((1, 3, 20))):
            data[chance.randrange(16, len(data))] = chance.randrange(256)
    elif kind == 2:
        size = min(chance.choice((10, 500, 5000)), len(data) - at)
        data[at : at + size] = bytes(size) if chance.randrange(2) else 2 * data[at : at + size]
    else:
        data[:16] = f"{chance.choice(list(gotools.FORMATS)).replace('go', 'go ')} trace".encode().ljust(16, b"\0")
    return data


@pytest.mark.chance
@pytest.mark.limit(300)
@pytest.mark.parametrize("format", gotools.some("go1.5", "go1.26"))
def test_every_command_on_damaged_traces(tmp_path, format):
    """Of every kind of ours, each command in each way: a result, or a message and nothing else. More of it: DAMAGES."""
    chance, bad = seeded("FUZZ_FIRST", 1, format), tmp_path / "bad.out"
    proc.run([FUZZ, format, 193, 1, tmp_path]).ok()
    (good,) = tmp_path.glob("*.trace")
    for argv in chance.choices(WAYS, k=2 * int(os.environ.get("DAMAGES", DAMAGES))):
        bad.write_bytes(damages(good.read_bytes(), chance))
        before = set(os.listdir(tmp_path))
        result = proc.run([SANITIZED, *argv, bad], cwd=tmp_path, timeout=60, env=SANITIZER)
        assert result.returncode in (0, 1), result
        assert result.returncode == 0 or result.stderr.startswith("gotrace: "), result
        assert result.returncode == 0 or argv[0] != "report" or proc.run([SANITIZED, "info", bad], env=SANITIZER).returncode == 1, result
        made = set(os.listdir(tmp_path)) - before
        assert made <= ({"o", "o.elf"} if result.returncode == 0 else set()), (made, result)
        for name in made:
            (tmp_path / name).unlink()
