"""`gotrace why`: locks on files, which processes have one after the other."""

import json

import pytest

from lib import SINGLE, proc
from test_why import GOTRACE, page, why

pytestmark = [pytest.mark.measured, pytest.mark.urgent]

WAYS = {"flock": "flock", "fcntl": "fcntl", "ofd": "fcntl", "lockf": "fcntl", "close": "flock", "threads": "flock"}
WORKERS, ROUNDS, WORK_NS = 3, 10, 2_000_000  # as in file_locks.c


def recorded(way, file, directory):
    """The report, how long the program says that the lock was held and all took, and how often another worker had it."""
    trace = directory / "t.out"
    argv = [GOTRACE, "-f", "-o", trace, "--", SINGLE / "why/file_locks", way, file]
    held, took, waits = map(int, proc.run(argv, timeout=60).ok().stdout.split())
    return why(trace), page(trace), held, took, waits


@pytest.mark.limit(120)
@pytest.mark.parametrize("way", WAYS)
def test_the_path_goes_to_who_has_the_lock(tmp_path, way):
    """The path is in the lock's holders, and what the lock costs is known: the workers' holds, one after the other."""
    lock = f"{WAYS[way]} {tmp_path / 'journal'}"
    report, shown, held, took, waits = recorded(way, tmp_path / "journal", tmp_path)
    alone = held / WORKERS + ROUNDS * WORK_NS
    row = report["path"]["rows"][0]
    assert (row["function"], row["what"], row["lock"]) == ("commit_record", "usleep", lock), row
    assert abs(row["ns"] - held) < 0.1 * held and row["count"] == WORKERS * ROUNDS, (row, held)
    assert not report["inferred_wakers"], report["inferred_wakers"]
    (change,) = [c for c in report["what_if"] if c["change"] == "free_lock"]
    assert change["lock"] == lock and abs(change["gain"] - (1 - alone / took)) < 0.1, (change, alone, took)
    (finding,) = [f for f in report["findings"] if f["finding"] == "lock_held_across_io"]
    assert any(f" threads waited for it {n} times" in finding["text"] for n in range(waits - 2, waits + 3)), (finding, waits)
    assert f"Lock held across I/O: {lock}, taken in " in " ".join(shown.split())


def test_the_end_of_a_process_gives_its_lock_up(tmp_path):
    """A process that ends with a lock ends the next one's wait: the path goes through the holds of more than one worker."""
    report, *_ = recorded("ends", tmp_path / "journal", tmp_path)
    rows = [row for row in report["path"]["rows"] if row["function"] == "commit_record" and row["what"] == "usleep"]
    assert rows and rows[0]["lock"] == f"flock {tmp_path / 'journal'}" and rows[0]["count"] > 1.5 * ROUNDS, report["path"]
    assert rows[0]["threads"] == rows[0]["count"] and not report["inferred_wakers"], rows


def test_the_holders_of_a_file_lock(tmp_path):
    """top --holders counts the calls that waited for the lock, and the holds of the other workers meanwhile."""
    trace = tmp_path / "t.out"
    held, took, wanted = map(int, proc.run([GOTRACE, "-f", "-o", trace, "--", SINGLE / "why/file_locks", "flock", tmp_path / "journal"], timeout=60).ok().stdout.split())
    rows = json.loads(proc.run([GOTRACE, "top", "--holders", "--json", trace]).ok().stdout)["waits"]
    (row,) = [row for row in rows if row["lock"] == f"flock {tmp_path / 'journal'}"]
    # A call that did not have to wait may have lost its CPU.
    assert row["what"] == "flock" and wanted - 1 <= row["count"] <= WORKERS * ROUNDS, (row, wanted)
    # Each worker waits whenever it neither holds the lock nor works; the last ones to end wait for fewer others.
    assert 0.8 * held < row["total_ns"] < WORKERS * took - held, (row, held, took)
    by_commit = sum(it["ns"] for it in row["holders"] if it["at"] and "usleep" in it["at"]["place"])
    assert by_commit > 0.8 * row["total_ns"], row["holders"]
