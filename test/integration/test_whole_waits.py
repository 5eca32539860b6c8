"""A thread that is woken for a mutex, and finds it taken again, sleeps on: every report counts that as one wait."""

import collections
import json
import re

import pytest

from lib import SINGLE, gotools, proc
from lib.exported import export, go_pprof
from lib.reports import GOTRACE, report

# How the program waits, and by which call. "often": in a format of Go's older family several pages end between two sleeps of one wait.
CALLS = dict.fromkeys(("plain", "often", "left"), "pthread_mutex_lock") | {"timed": "pthread_mutex_timedlock"}
CALLS |= dict.fromkeys(("condition", "signalled"), "pthread_cond_wait")
Run = collections.namedtuple("Run", "trace format call slept waited left")
SYNC = "--idle=none", "--kind=sync", "-n", "1000"


def sql(trace, statement):
    return json.loads(proc.run([GOTRACE, "sql", "--json", trace, statement]).ok().stdout)


def record(trace, how, format="go1.23", sched="off"):
    """slept, waited: how many calls slept, and how many found the lock taken. left: how many still wait when the program ends."""
    result = proc.traced([SINGLE / "whole_waits/retaken", how], trace, env={"GOTRACE_FORMAT": format, "GOTRACE_SCHED": sched}).ok()
    return Run(trace, format, CALLS[how], *map(int, result.stdout.split()), 4 if how in ("left", "signalled") else 0)


SETTINGS = [*((format, "off") for format in gotools.some("go1.5")), ("go1.23", "on")]


@pytest.fixture(params=[(how, *its) for how in CALLS for its in SETTINGS], ids=" ".join)
def run(request, tmp_path):
    return record(tmp_path / "t.out", *request.param)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return record(tmp_path_factory.mktemp("plain") / "t.out", "plain")


def count(rows, call):
    return sum(row["count"] for row in rows if row["what"] == call)


def test_each_wait_counts_once(run):
    """In top, the database, profiles and flame graphs, in each the same: as the program counts them."""
    document, by_thread = report(run.trace, "top", *SYNC), report(run.trace, "top", *SYNC, "--by-thread")
    all_rows = [row for thread in by_thread["by_thread"] for row in thread["waits"]]
    told = count(all_rows, run.call)
    assert run.slept <= told <= run.waited, all_rows  # a lock that comes free within a moment is no wait
    assert document["count"] == by_thread["count"] == sum(row["count"] for row in all_rows)
    assert count(document["waits"], run.call) == told - run.left
    for row in all_rows:
        assert row["longest_ns"] <= row["total_ns"] and sum(it["count"] for it in row["histogram"]) == row["count"], row
    waits = f"FROM waits JOIN stacks ON stacks.id = stack_id WHERE what = '{run.call}' AND kind = 'sync'"
    assert sql(run.trace, f"SELECT count(*) AS n, sum(NOT ended) AS left {waits}") == [{"n": told, "left": run.left}]
    (most,) = sql(run.trace, f"SELECT max(ns) AS ns {waits} AND ended")
    assert max(row["longest_ns"] for row in document["waits"] if row["what"] == run.call) == most["ns"]
    for options, expected in ([], told - run.left), (["--unended"], told):
        assert go_pprof(export(run.trace, "pprof", *options), "-sample_index=sync_count")[run.call] == expected, options
    flame = export(run.trace, "flame", "--kind=sync", "--unended").read_text()
    assert int(re.search(r" in (\d+) waits", flame)[1]) == document["count"]


@pytest.mark.parametrize("how", ["condition", "signalled"])
def test_idle_waits(tmp_path, how):
    """A follower's wait for the next round is idle, also if the mutex is not free then; but not if it has no mutex when the program ends."""
    run = record(tmp_path / "t.out", how)
    all_idle, other_idle = (report(run.trace, "top", f"--kind={kinds}")["idle"] for kinds in ("all", "sleep"))
    told = report(run.trace, "info")["idle"]
    (found,) = sql(run.trace, "SELECT count(*) AS count, sum(ns) AS total_ns FROM idle_waits")
    assert [(its["count"], its["total_ns"]) for its in (told, found)] == 2 * [(all_idle["count"], all_idle["total_ns"])]
    assert all_idle["count"] - other_idle["count"] == run.waited - run.left


def test_each_sleep_has_its_waker(run):
    """Rows by waker, and the database's pieces, have every sleep; as many as Go's profile, with as much time."""
    pieces = sql(run.trace, "SELECT wait_id, ns, ended, what FROM wait_pieces JOIN stacks ON stacks.id = stack_id WHERE kind = 'sync'")
    waits = sql(run.trace, "SELECT waits.id AS id, ns, pieces FROM waits WHERE kind = 'sync' AND stack_id")
    of = collections.defaultdict(list)
    for piece in pieces:
        of[piece["wait_id"]].append(piece["ns"])
    assert {row["id"]: (row["ns"], row["pieces"]) for row in waits} == {id_: (sum(its), len(its)) for id_, its in of.items()}
    assert len(pieces) > len(waits)
    ended = [piece for piece in pieces if piece["ended"]]
    go = max(gotools.readers_of(run.format).items())[1]
    assert gotools.pprof(run.trace, "sync", go=go).leaf_count() == collections.Counter(piece["what"] for piece in ended)
    document = report(run.trace, "top", *SYNC, "--wakers")
    assert sum(row["count"] for row in document["waits"]) == len(ended) and document["count"] == len(waits)
    assert sum(row["total_ns"] for row in document["waits"]) == sum(piece["ns"] for piece in ended)
    (wakers,) = sql(run.trace, "SELECT sum(count) AS n, (SELECT count(*) FROM wakeups) AS wakeups FROM wakers")
    woken = sum(row["count"] for row in document["waits"] if row["ended_by"] != "itself")
    assert wakers["n"] == wakers["wakeups"] == woken > 0  # a timeout has no waker


def test_locks(plain):
    """--by-lock and --holders count the same waits; holders have all of their time."""
    (lock,) = (row for row in report(plain.trace, "top", "--by-lock")["locks"] if row["lock"] == "journal")
    (row,) = (row for row in report(plain.trace, "top", "--holders")["waits"] if row["lock"] == "journal")
    (its,) = (row for row in report(plain.trace, "top", *SYNC)["waits"] if row["what"] == plain.call)
    for name in "count", "total_ns", "longest_ns", "average_ns":
        assert lock[name] == row[name] == its[name], name
    assert sum(holder["ns"] for holder in lock["holders"]) == its["total_ns"]
    pieces = "FROM wait_pieces JOIN locks ON locks.id = lock_id WHERE name = 'journal' AND kind = 'sync' AND coalesce(holder_id, holder) NOTNULL"
    # The mutex tells its holder when a thread falls asleep. Who had it when the thread slept on is known only if that hold was timed.
    (known,) = sql(plain.trace, f"SELECT count(DISTINCT wait_id) AS count, sum(ns) AS ns, sum(holder_id = thread_id) AS own {pieces}")
    assert plain.slept <= known["count"] <= plain.waited and known["own"] == 0, known
    assert sql(plain.trace, "SELECT sum(waited_ns) AS ns FROM lock_holders WHERE lock = 'journal'") == [{"ns": known["ns"]}]


@pytest.mark.parametrize("options", [[], ["--by-lock"], ["--by-thread"]])
def test_a_part_of_the_trace(plain, options):
    """A wait counts where a part of it is in the chosen time, also if that begins or ends in it."""
    pieces = sql(plain.trace, """SELECT wait_id, begin_ns AS begin, begin_ns + ns AS end FROM wait_pieces JOIN stacks ON stacks.id = stack_id
        WHERE what = 'pthread_mutex_lock' AND kind = 'sync' ORDER BY begin_ns""")  # fmt: skip
    several = [piece for piece in pieces if sum(it["wait_id"] == piece["wait_id"] for it in pieces) > 2]
    assert several
    middle = several[len(several) // 2]
    for at in (middle["begin"] + middle["end"]) // 2, middle["begin"] + 1, middle["end"] + 1:
        for option, its in ("--from", (at, 1 << 62)), ("--to", (0, at)):
            document = report(plain.trace, "top", *SYNC, *options, f"{option}={at}ns")
            rows = document.get("locks") or document.get("waits") or [row for thread in document["by_thread"] for row in thread["waits"]]
            told = sum(row["count"] for row in rows if row.get("lock") == "journal" or row.get("what") == plain.call)
            assert told == len({piece["wait_id"] for piece in pieces if piece["begin"] < its[1] and piece["end"] > its[0]}), (option, at)
