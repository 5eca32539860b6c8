"""`gotrace sql`: against what programs know of themselves, and against the other reports."""

import collections
import contextlib
import csv
import io
import json
import os
import pathlib
import pty
import re
import resource
import select
import shutil
import signal
import sqlite3
import subprocess

import pytest

from lib import LIBRARY, PROGRAMS, ROOT, SOURCES, UNIT_TESTS, gotools, proc
from lib.reports import GOTRACE, report

PAGE = (ROOT / "scripts/man/gotrace-sql.1.md").read_text()
TOLERANCE = 0.05
KINDS = ["sched", "sync", "network", "syscall", "sleep", "other", "unseen"]
NAMED = [f for f in gotools.FORMATS if int(f.split(".")[1]) >= 11]  # these have logs and annotations
formats = pytest.mark.parametrize("format", gotools.some("go1.5"))


def ask(trace, statement, *options, **run):
    return proc.run([GOTRACE, "sql", *options, trace, statement], timeout=60, **run)


def sql(trace, statement):
    """The rows of the answer."""
    return json.loads(ask(trace, statement, "--json").ok().stdout)


def record(traced, format, *argv, **env):
    return traced([PROGRAMS / argv[0], *argv[1:]], env={"GOTRACE_FORMAT": format} | env).ok()


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """One that is only read."""
    return proc.traced([PROGRAMS / "truth"], tmp_path_factory.mktemp("sql") / "t.out").ok().trace


@pytest.fixture
def copy(trace, tmp_path):
    """One in a directory of its own."""
    (tmp_path / "own").mkdir()
    return shutil.copy(trace, tmp_path / "own/t.out")


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """One whose import takes some time: two million events."""
    path = tmp_path_factory.mktemp("large") / "t.out"
    proc.run([UNIT_TESTS / "stress", 500, "go1.23", path], timeout=60).ok()
    return path


def left(directory):
    return sorted(os.listdir(directory))


# --- what is true


@pytest.mark.measured
@formats
def test_waits(traced, format):
    """Those of test/prog/truth.c: by thread and call, how long, and who ended them."""
    result = record(traced, format, "truth")
    rows = sql(
        result.trace,
        """SELECT what, threads.tid AS waiter, waker.tid AS waker, waits.ns, delay_ns FROM waits
           JOIN threads ON threads.id = thread_id JOIN stacks ON stacks.id = waits.stack_id
           LEFT JOIN threads AS waker ON waker.id = waker_id WHERE kind IN ('sync', 'sleep') ORDER BY waits.begin_ns""",
    )
    found = {(row["what"], row["waiter"]): row for row in rows}
    assert len(found) == len(rows)
    known = [line.split() for line in result.stdout.splitlines()]
    assert len(known) == 14, known
    for hook, waiter, waker, ns, arranged in known:
        row = found[hook, int(waiter)]
        assert (1 - TOLERANCE) * int(arranged) <= row["ns"] <= (1 + TOLERANCE) * int(ns), (hook, row)
        assert row["waker"] == (int(waker) or None) and row["delay_ns"] is not None, (hook, row)
    wakeups = sql(result.trace, "SELECT count(*) AS n FROM wakeups JOIN wait_pieces USING (wait_id, waker_id) WHERE at_ns = begin_ns + ns")
    assert wakeups[0]["n"] >= sum(waker != "0" for _, _, waker, _, _ in known)


@pytest.mark.parametrize("sched", ["off", "on"])
@pytest.mark.parametrize("program", ["truth", "rounds", "unended"])
@pytest.mark.parametrize("format", gotools.some("go1.5", of=["go1.5", "go1.21", "go1.23", "go1.26"]))
def test_sums(traced, format, program, sched):
    """Those of each kind, of `gotrace top`: as many, and their time to the nanosecond."""
    trace = record(traced, format, program, GOTRACE_SCHED=sched, GOTRACE_SYSCALLS="all").trace
    ours = {
        row["kind"]: row
        for row in sql(
            trace,
            """SELECT kind, count(*) AS n, sum(ns) AS ns FROM waits GROUP BY kind
               UNION ALL SELECT 'syscall', count(*), coalesce(sum(ns), 0) FROM calls""",
        )
    }
    for kind in KINDS + ["all"]:
        top = report(trace, "top", "--idle=none", f"--kind={kind}")
        rows = [row for name, row in ours.items() if kind in (name, "all")]
        assert sum(row["n"] for row in rows) == top["count"] and sum(row["ns"] for row in rows) == top["total_ns"], (kind, ours)
    times = sql(trace, "SELECT * FROM thread_time")
    for kind in KINDS:
        assert sum(row[f"{kind}_ns"] for row in times) == (ours[kind]["ns"] if kind in ours else 0), kind
    running = sql(trace, "SELECT sum(ns) AS ns FROM running")[0]["ns"]
    assert sum(row["running_ns"] for row in times) == running
    assert sql(trace, "SELECT sum(running * ns) AS ns FROM parallelism")[0]["ns"] == running
    for row in times:
        assert sum(row[f"{kind}_ns"] for kind in ["running", *KINDS]) == row["lived_ns"], row


def test_places(trace):
    """As `gotrace top` prints them."""
    places = {row["place"] for row in sql(trace, "SELECT place FROM waits_by_place WHERE kind = 'sync'")}
    rows = report(trace, "top", "--idle=none", "--kind=sync", "-n", "1000")["waits"]
    assert rows and places == {row["place"] for row in rows}
    lines = sql(trace, "SELECT DISTINCT function, file FROM stack_lines WHERE function = 'lock_waiter'")
    assert [row["file"].endswith("truth.c") for row in lines] == [True], lines


@pytest.mark.measured
@pytest.mark.parametrize("format", gotools.some("go1.11", of=["go1.11", "go1.23", "go1.26"]))
def test_holds(tmp_path, format):
    """How long locks were held, each within 5 %, by whom and from where; and whose they were when waits began."""
    env = {"GOTRACE_FORMAT": format, "GOTRACE_SYSCALLS": "none", "GOTRACE_HEAP": "off", "GOTRACE_HOLD_MIN": "100us"}
    result = proc.traced([PROGRAMS / "locks", "400"], tmp_path / "t.out", env=env, timeout=120).ok()
    known, told = collections.defaultdict(list), collections.defaultdict(list)
    waits = collections.defaultdict(list)
    for lock, holder, waiter, ns in map(str.split, result.stdout.splitlines()):
        known[lock, int(holder)].append(int(ns))
        waits[lock, int(waiter)].append(int(holder))
    rows = sql(
        result.trace,
        """SELECT locks.name AS lock, tid, ns, function FROM holds JOIN locks ON locks.id = lock_id
           JOIN threads ON threads.id = thread_id WHERE function LIKE '%lock%' OR function = 'try' ORDER BY holds.id""",
    )
    for row in rows:
        told[row["lock"], row["tid"]].append(row["ns"])
    found = 0
    for key, times in known.items():
        rest = list(told[key])  # among them holds that nobody waited for
        for ns in times:
            near = [one for one in rest if abs(one - ns) < TOLERANCE * ns + 20_000]
            found += bool(near)
            if near:
                rest.remove(near[0])
    assert found > 200, (found, len(rows))
    rows = sql(
        result.trace,
        """SELECT locks.name AS lock, threads.tid AS waiter, owner.tid AS holder FROM waits JOIN locks ON locks.id = lock_id
           JOIN threads ON threads.id = thread_id JOIN threads AS owner ON owner.id = holder_id
           ORDER BY begin_ns""",
    )
    right = sum(row["holder"] in waits[row["lock"], row["waiter"]] for row in rows)
    assert right == len(rows) > 200, (right, len(rows))


@pytest.mark.measured
@pytest.mark.parametrize("format", gotools.some(of=NAMED))
def test_annotations(traced, format):
    """Tasks, regions and logs of test/prog/annotations.c: how many, and how long."""
    result = record(traced, format, "annotations")
    rows = sql(
        result.trace,
        """SELECT 'task' AS kind, name, count(*) AS n, sum(ns) AS ns, min(ended) AS ended FROM tasks GROUP BY name
           UNION ALL SELECT 'region', name, count(*), sum(ns), min(ended) FROM regions GROUP BY name""",
    )
    found = {(row["kind"], row["name"]): row for row in rows}
    known = [line.split("\t") for line in result.stdout.splitlines()]
    assert len(found) == len(known) == 6
    for kind, name, n, least, most in known:
        row = found[kind, name]
        assert row["n"] == int(n) and row["ended"] == 1
        assert 0.999 * int(least) - 10_000 <= row["ns"] <= 1.001 * int(most) + 10_000, (kind, name, row)
    parents = sql(result.trace, "SELECT p.name AS parent, t.name FROM tasks AS t JOIN tasks AS p ON p.id = t.parent_id")
    assert parents == [{"parent": "request", "name": "query"}] * 5
    ends = sql(result.trace, "SELECT DISTINCT thread_id, ender_id FROM tasks WHERE name = 'request'")
    assert ends == [{"thread_id": 1, "ender_id": 2}]
    logs = sql(result.trace, "SELECT category, message, name FROM logs JOIN tasks ON tasks.id = task_id")
    assert logs == [{"category": "answer", "message": "ready", "name": "request"}] * 5


@formats
def test_heap(traced, format):
    result = record(traced, format, "heap", "curve")
    live = int(re.search(r"^end (\d+)$", result.stdout, re.M)[1])
    rows = sql(result.trace, "SELECT at_ns, bytes FROM heap WHERE kind = 'live' ORDER BY id")
    assert abs(rows[-1]["bytes"] - live) <= 4096, (rows[-1], live)
    assert max(row["bytes"] for row in rows) >= max(map(int, re.findall(r"^step (\d+)$", result.stdout, re.M))) - (128 << 10)
    assert [row["at_ns"] for row in rows] == sorted(row["at_ns"] for row in rows)
    assert sql(result.trace, "SELECT count(*) AS n FROM heap WHERE kind = 'goal' AND bytes > 0")[0]["n"] > 0


@pytest.mark.measured
@pytest.mark.parametrize("format", gotools.some("go1.19", of=["go1.19", "go1.23", "go1.26"]))
@pytest.mark.long
def test_samples(traced, format):
    """As many as `gotrace top --cpu` counts, and in the functions that test/prog/cpu.c computes in."""
    trace = record(traced, format, "cpu", "0.5", GOTRACE_CPU_HZ="200").trace
    head = proc.run([GOTRACE, "top", "--cpu", trace]).ok().stdout.splitlines()[0]
    found = {row["function"]: row["samples"] for row in sql(trace, "SELECT * FROM samples_by_function")}
    assert sum(found.values()) == int(re.search(r"(\d+) CPU samples", head)[1]) > 100
    assert 0.65 <= found["three_quarters"] / (found["three_quarters"] + found["one_quarter"]) <= 0.85, found


@pytest.mark.measured
def test_shares(traced):
    """As `gotrace info` prints them; and of what they are the sum."""
    trace = traced([PROGRAMS / "truth"]).ok().trace
    threads = report(trace, "info")["by_thread"]
    rows = sql(trace, "SELECT tid, shares.* FROM shares JOIN threads ON threads.id = thread_id")
    assert len(rows) == len(threads) > 10
    for row in rows:
        parts = [row[f"{name}_ns"] for name in ("cpu", "queue", "sync", "network", "syscall", "sleep", "other", "unseen")]
        assert abs(sum(parts) - row["ns"]) <= 0.001 * row["ns"] + 10, row
    told = {(its["thread"]["tid"], its["ns"], its["cpu_ns"], its["runnable_ns"], its["unseen_ns"]) for its in threads}
    assert told == {tuple(row[f] for f in ("tid", "ns", "cpu_ns", "queue_ns", "unseen_ns")) for row in rows}
    assert not sql(trace, "SELECT * FROM shares JOIN threads ON threads.id = thread_id WHERE ns > end_ns - start_ns")
    used = sql(trace, "SELECT sum(cpu_ns) AS cpu, (SELECT sum(cpu_ns) FROM shares) AS shares FROM accounts WHERE thread_id NOT NULL")[0]
    assert 0 < used["shares"] <= used["cpu"]  # an account's own numbers may be more than were possible


@pytest.fixture(scope="module")
def go_trace(tmp_path_factory):
    """What a Go program says of itself."""
    directory = tmp_path_factory.mktemp("go")
    shutil.copy(SOURCES / "sql/main.go", directory)
    (directory / "go.mod").write_text("module app\n")
    proc.run([gotools.build(directory, directory / "app"), directory / "t.out"]).ok()
    return directory / "t.out"


@pytest.mark.measured
@pytest.mark.limit(150)
def test_go_programs(go_trace):
    """The traces that Go programs write of themselves."""
    assert sql(go_trace, "SELECT name, ended FROM tasks") == [{"name": "work", "ended": 1}]
    (region,) = sql(go_trace, "SELECT name, ns FROM regions")
    assert region["name"] == "hold" and region["ns"] >= 50e6
    assert {"category": "key", "message": "value"} in sql(go_trace, "SELECT category, message FROM logs")
    (wait,) = sql(
        go_trace,
        """SELECT waits.ns, w.routine AS waker FROM waits JOIN threads ON threads.id = thread_id
           LEFT JOIN threads AS w ON w.id = waker_id WHERE threads.routine = 'main.waiter' AND kind = 'sync' AND waits.ns > 1000000""",
    )
    assert wait["ns"] >= 0.9 * 50e6 and "main" in wait["waker"], wait


@pytest.mark.measured
def test_every_go(tmp_path):
    """The same of each version, by a program that knows how long it waited for its locks."""
    for version, go in gotools.versions().items():
        trace = tmp_path / f"1.{version}.trace"
        locks = int(proc.run([gotools.program(go, "itself"), trace]).ok().stdout.split()[1])
        (row,) = sql(
            trace,
            """SELECT sum(ns) AS ns, count(waker_id) AS woken FROM waits WHERE kind = 'sync' AND stack_id IN
               (SELECT stack_id FROM stack_lines WHERE function = 'sync.(*Mutex).Lock')""",
        )
        assert (1 - TOLERANCE) * locks <= row["ns"] <= (1 + TOLERANCE) * locks and row["woken"] == 10, (version, row, locks)


# --- the database


def test_used_again(copy):
    """Until the trace changes, or another version has made it."""
    database = f"{copy}.db"
    ask(copy, "SELECT 1").ok()
    first = os.stat(database)
    assert first.st_mode & 0o777 == os.stat(copy).st_mode & 0o777
    ask(copy, "SELECT 1").ok()
    assert os.stat(database).st_ino == first.st_ino
    os.utime(copy)
    ask(copy, "SELECT 1").ok()
    second = os.stat(database)
    assert second.st_mtime_ns != first.st_mtime_ns
    with sqlite3.connect(database) as db:
        db.execute("PRAGMA user_version = 0")
        db.execute("DROP VIEW wakers")
    db.close()
    assert sql(copy, "SELECT * FROM wakers")
    assert left(os.path.dirname(copy)) == ["t.out", "t.out.db"]


def test_nameless_threads(trace):
    """Are known by their routines in a list of the longest waits, waiters and wakers alike."""
    rows = sql(trace, "SELECT thread, waker_tid, waker FROM longest_waits WHERE tid NOT NULL")
    assert {"lock_waiter", "cond_waiter"} <= {row["thread"] for row in rows}
    assert all(row["waker"] for row in rows if row["waker_tid"]), rows


def test_made_anew_by_other_rules(copy, tmp_path):
    """For places are by the user's rules, too."""
    rules, database = tmp_path / "rules", f"{copy}.db"

    def asked(text):
        """Whether that function is a place, and which file said so."""
        rules.write_text(text)
        statement = "SELECT DISTINCT function FROM stacks WHERE function = 'with_cond'"
        rows = json.loads(ask(copy, statement, "--json", env={"GOTRACE_FRAMES": str(rules)}).ok().stdout)
        return len(rows), os.stat(database).st_mtime_ns

    (with_it, first), (without, second) = asked(""), asked("skip function ^with_cond$")
    assert (with_it, without) == (1, 0) and second != first
    assert asked("# a remark\nskip function ^with_cond$") == (0, second)
    assert asked("")[0] == 1


def test_one_of_ours_that_is_damaged(copy):
    """Cut behind its header, it is made anew."""
    ask(copy, "SELECT 1").ok()
    os.truncate(f"{copy}.db", 5000)
    assert sql(copy, "SELECT count(*) AS n FROM waits")[0]["n"] > 10


@pytest.mark.parametrize("what", ["text", "empty", "database", "trace", "directory", "fifo"])
def test_what_is_not_ours_stays(copy, what):
    database = f"{copy}.db"
    if what == "database":
        with contextlib.closing(sqlite3.connect(database)) as db:
            db.execute("CREATE TABLE mine (x)")
    elif what == "trace":
        shutil.copy(copy, database)
    elif what == "directory":
        os.mkdir(database)
    elif what == "fifo":
        os.mkfifo(database)
    else:
        pathlib.Path(database).write_text("mine\n" * 100 if what == "text" else "")
    before = os.stat(database)
    result = ask(copy, "SELECT 1")
    assert result.returncode == 1 and result.stderr.startswith(f"gotrace: {database} is no database of gotrace's"), result
    assert os.stat(database)[:-3] == before[:-3] and not result.stdout
    assert ask(copy, "SELECT 1 AS x", "-o", f"{copy}.other").ok().stdout == "x\n1\n"
    result = ask(copy, "SELECT 1", "-o", copy)
    assert result.returncode == 1 and "is no database" in result.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_directory_that_is_not_writable(copy, tmp_path):
    """In a temporary place, where no file stays."""
    directory, temporary = os.path.dirname(copy), tmp_path / "tmp"
    temporary.mkdir()
    script = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
    argv = [GOTRACE, "sql", "--csv", copy, "SELECT count(*) > 10 FROM waits"]
    result = proc.run(["unshare", "--mount", "sh", "-c", script, directory, *argv], env={"TMPDIR": temporary}).ok()
    assert result.stdout.endswith("\n1\n") and "temporary place" in result.stderr and f"{copy}.db" in result.stderr
    assert left(temporary) == [] and left(directory) == ["t.out"]


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_full_disk(large, tmp_path):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "none", tmp_path], check=True)
    try:
        result = ask(large, "SELECT 1", "-o", tmp_path / "t.db")
        assert result.returncode == 1 and re.search(r"full|disk I/O", result.stderr), result
        assert result.stderr.count("\n") == 1 and left(tmp_path) == []
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_ended_by_a_limit(large, tmp_path):
    """A signal in the middle of the import: no half database stays."""
    proc.run([GOTRACE, "sql", "-o", tmp_path / "whole.db", large, "SELECT 1"], timeout=50).ok()
    half = (tmp_path / "whole.db").stat().st_size // 2
    (tmp_path / "whole.db").unlink()
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (half, half))
    child = proc.spawn([GOTRACE, "sql", "-o", tmp_path / "t.db", large, "SELECT 1"], preexec_fn=limit)
    assert child.wait(50) == -signal.SIGXFSZ
    assert left(tmp_path) == []


def test_ctrl_c(large, tmp_path):
    """In the middle of the import, whose file has another name then."""
    ends = []
    while -signal.SIGINT not in ends and len(ends) < 20:  # it may be done before we come to it
        child = proc.spawn([GOTRACE, "sql", "-o", tmp_path / "t.db", large, "SELECT 1"], stdout=subprocess.DEVNULL)
        proc.until(lambda: child.poll() is not None or left(tmp_path), pause=0.001)
        ends.append(proc.stop(child, sig=signal.SIGINT))
        assert ends[-1] in (0, -signal.SIGINT) and left(tmp_path) in ([], ["t.db"]), ends
        if left(tmp_path):
            assert sql_of(tmp_path / "t.db", "SELECT count(*) FROM trace") == [(1,)]
            os.unlink(tmp_path / "t.db")
    assert ends[-1] == -signal.SIGINT, ends


def sql_of(database, statement):
    db = sqlite3.connect(database)
    rows = db.execute(statement).fetchall()
    db.close()
    return rows


def test_many_rows(large, tmp_path):
    """Whatever is written many at a time is all there, in its order; and SQLite finds it sound."""
    ask(large, "SELECT 1", "-o", tmp_path / "t.db").ok()
    db = tmp_path / "t.db"
    assert sql_of(db, "PRAGMA integrity_check") == [("ok",)]
    for table in "waits", "running":
        n, last = sql_of(db, f"SELECT count(*), max(id) FROM {table}")[0]
        assert n == last > 1000
    (lost,) = sql_of(db, "SELECT count(*) FROM waits LEFT JOIN stacks ON stacks.id = stack_id WHERE stack_id NOT NULL AND place IS NULL")[0]
    assert lost == 0


# --- bad input


def test_no_trace(tmp_path):
    """What is none is said to be none, at once, and leaves nothing."""
    (tmp_path / "text").write_text("SELECT" * 100)
    (tmp_path / "empty").touch()
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "directory").mkdir()
    before = left(tmp_path)
    for path in [*(tmp_path / name for name in before), "/dev/zero", "/dev/null"]:
        result = ask(path, "SELECT 1")
        assert (result.returncode, result.stdout) == (1, ""), result
        assert result.stderr.startswith(f"gotrace: {path}: it is not a Go execution trace") and result.stderr.count("\n") == 1
    assert ask(tmp_path / "nowhere", "SELECT 1").stderr == f"gotrace: {tmp_path}/nowhere: No such file or directory\n"
    assert left(tmp_path) == before and not os.path.exists("/dev/zero.db")


@pytest.mark.parametrize("format", gotools.some(of=["go1.11", "go1.21", "go1.22", "go1.23", "go1.26"]))
def test_cut(traced, format):
    trace = record(traced, format, "truth").trace
    whole = sql(trace, "SELECT whole, lost_bytes, (SELECT count(*) FROM waits) AS waits FROM trace")[0]
    assert (whole["whole"], whole["lost_bytes"]) == (1, 0)
    os.truncate(trace, trace.stat().st_size - 7)
    cut = sql(trace, "SELECT whole, lost_bytes, (SELECT count(*) FROM waits) AS waits FROM trace")[0]
    assert cut["whole"] == 0 and cut["lost_bytes"] > 0 and cut["waits"] <= whole["waits"]


@pytest.mark.parametrize("format", ["go1.5", "go1.21", "go1.26"])
def test_damaged(traced, format, tmp_path):
    """A line that says so, or what can be read; nothing else, and no half database."""
    good = record(traced, format, "truth").trace.read_bytes()
    os.mkdir(tmp_path / "d")
    for i in range(40):
        at = 16 + (len(good) - 16) * i // 40
        path = tmp_path / f"d/{i}"
        path.write_bytes(good[:at] + bytes(255 - b for b in good[at : at + 3]) + good[at + 3 :])
        result = ask(path, "SELECT count(*) FROM waits")
        assert result.returncode in (0, 1), result
        if result.returncode:
            assert result.stderr.count("\n") == 1 and "damaged" in result.stderr, result
        assert os.path.exists(f"{path}.db") == (result.returncode == 0)
    assert all(re.fullmatch(r"\d+(\.db)?", name) for name in left(tmp_path / "d"))


# --- statements and answers


def test_answers(trace):
    """As a table, as JSON, as CSV."""
    statement = """SELECT 1 AS n, 'a "b", c' AS "the text", NULL AS empty, 2.5 AS x UNION ALL SELECT 22, 'é' || char(10), '', -1"""
    table = ask(trace, statement).ok().stdout.splitlines()
    assert table == [" n  the text  empty    x", ' 1  a "b", c         2.5', "22  é?                -1"]
    rows = sql(trace, statement)
    first, second = {"n": 1, "the text": 'a "b", c', "empty": None, "x": 2.5}, {"n": 22, "the text": "é\n", "empty": "", "x": -1}
    assert rows == [first, second]
    lines = list(csv.reader(io.StringIO(ask(trace, statement, "--csv").ok().stdout)))
    assert lines == [["n", "the text", "empty", "x"], ["1", 'a "b", c', "", "2.5"], ["22", "é\n", "", "-1"]]
    assert sql(trace, "SELECT 1 WHERE 0") == [] and ask(trace, "SELECT 1 AS x WHERE 0").ok().stdout == "x\n"
    assert sql(trace, "SELECT CAST(x'ff41' AS TEXT) AS x, 9e999 AS y") == [{"x": "\ufffdA", "y": None}]
    many = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 2500) SELECT x FROM n"
    assert ask(trace, many).ok().stdout.split() == ["x", *map(str, range(1, 2501))]


@pytest.mark.parametrize(
    "statement, message",
    [
        ("SELEC 1", 'near "SELEC": syntax error'),
        ("SELECT nowhere FROM waits", "no such column: nowhere"),
        ("DELETE FROM waits", "attempt to write a readonly database"),
        ("SELECT abs(-9223372036854775807 - 1)", "integer overflow"),
        ("SELECT 'a", "unrecognized token"),
    ],
)
def test_errors(trace, statement, message):
    """One line, and no answer."""
    for option in "--json", "--csv":
        result = ask(trace, statement, option)
        assert (result.returncode, result.stdout) == (1, "") and result.stderr.count("\n") == 1, result
        assert result.stderr.startswith("gotrace: sql: ") and message in result.stderr, result


def test_usage(trace):
    for argv in [], [trace, "SELECT 1", "SELECT 2"], ["--xml", trace]:
        assert proc.run([GOTRACE, "sql", *argv]).returncode == 2


def test_standard_input(trace):
    """Several statements, on lines as they come; the last one needs no semicolon, and an error is the end."""
    text = "SELECT 1\n  AS a; SELECT 2 AS b;\n-- a comment; with one\nSELECT ';' AS c;\n\nSELECT 4 AS d"
    for argv in [trace, "-"], [trace]:
        result = proc.run([GOTRACE, "sql", "--json", *argv], stdin=text).ok()
        assert result.stdout == '[{"a":1}]\n[{"b":2}]\n[{"c":";"}]\n[{"d":4}]\n'
    result = proc.run([GOTRACE, "sql", trace, "-"], stdin="SELECT 1 AS a;\nSELECT;\nSELECT 2 AS b;\n")
    assert (result.returncode, result.stdout) == (1, "a\n1\n") and "syntax error" in result.stderr


@pytest.mark.parametrize("path", ["", pytest.param(os.environ["PATH"], marks=pytest.mark.needs("sqlite3"))])
def test_prompt(trace, path):
    """On a terminal: our own, or that of sqlite3, which may only read."""
    terminal, its = pty.openpty()
    child = proc.spawn([GOTRACE, "sql", trace], stdin=its, stdout=its, stderr=its, env={"PATH": path or "/nowhere", "TERM": "dumb"})
    os.close(its)
    shown = ""

    def until(text):
        nonlocal shown
        while text not in shown:
            select.select([terminal], [], [])
            shown += os.read(terminal, 65536).decode(errors="replace")
        shown = shown.partition(text)[2]

    until("> ")
    os.write(terminal, b"SELEC;\n")
    until("syntax error")
    os.write(terminal, b"DELETE FROM waits;\n")
    until("readonly database")
    os.write(terminal, b"SELECT 1000 +\n337;\n")
    until("1337")
    until("> ")  # or else the terminal takes the next one as sqlite3 does not read it
    os.write(terminal, b"\x04")
    assert child.wait(20) in ((0, 1) if path else (0,))  # sqlite3 tells by that of errors
    os.close(terminal)


def test_without_the_library(trace, tmp_path):
    """A line that says what to install; everything else goes without, and the traced programs' library knows nothing of it."""
    (tmp_path / "libsqlite3.so.0").write_text("none")
    env = {"LD_LIBRARY_PATH": tmp_path}
    result = ask(trace, "SELECT 1", env=env)
    assert result.returncode == 1 and "libsqlite3-0" in result.stderr and result.stderr.count("\n") == 1
    proc.run([GOTRACE, "top", trace], env=env).ok()
    for path in GOTRACE, LIBRARY:
        assert "sqlite" not in proc.run(["readelf", "-d", path]).ok().stdout
    assert b"sqlite" not in LIBRARY.read_bytes()


# --- what is said of it


def tables(trace):
    """Each table's and view's columns."""
    names = [row["name"] for row in sql(trace, "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")]
    return {name: [row["name"] for row in sql(trace, f"SELECT name FROM pragma_table_info('{name}')")] for name in names}


def test_man_page(trace):
    """Has every table and view with all columns, and those are what can be asked for."""
    said = {name: columns.split(", ") for name, columns in re.findall(r"^\*\*(\w+)\*\*\n:   `([\w, ]+)`\. ", PAGE, re.M)}
    assert said == tables(trace)
    for name in said:
        ask(trace, f"SELECT * FROM {name} LIMIT 1").ok()
    help_text = proc.run([GOTRACE, "sql", "--help"]).ok().stdout
    assert all(re.search(rf"\b{name}\b", help_text) for name in said), set(said)


def test_examples_of_the_man_page(tmp_path, slow_disk):
    """The page's statements, word for word, of a server that writes to the disk with its journal locked."""
    examples = re.findall(r"```bash\n(gotrace sql .*?)```", PAGE, re.S)
    assert len(examples) == 3
    env = slow_disk | {"GOTRACE_SYSCALL_MIN": "0"}
    proc.traced([PROGRAMS / "incidents", "fsync"], tmp_path / "t.out", env=env).ok()
    path = {"PATH": f"{GOTRACE.parent}:{os.environ['PATH']}"}
    longest, running, calls = (
        proc.run(["bash", "-ec", example], cwd=tmp_path, env=path).ok().stdout.splitlines() for example in examples
    )
    assert len(longest) == 6 and all(re.match(r"(sync|network|sleep|sched) ", line) for line in longest[1:])
    shares = [float(line.split()[1]) for line in running[1:]]
    assert 99 <= sum(shares) <= 101
    assert re.search(r"^journal_lock +fsync <- append \(incidents.c:\d+\) +\d+ +\d+$", "\n".join(calls), re.M), calls
