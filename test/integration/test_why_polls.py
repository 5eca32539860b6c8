"""`gotrace why` of several threads that poll: single/why/polls.c counts their waits, and says what they ask for."""

import json
import re

import pytest

from lib import SINGLE, SOURCES, proc
from test_why import GOTRACE, findings, page, why

pytestmark = pytest.mark.measured


def polling(traced, mode, program="polls"):
    """What is said of polling, or "", how often the threads waited as they counted, and the trace."""
    result = traced([SINGLE / "why" / program, mode]).ok()
    return findings(result.trace).get("polling", {"text": ""})["text"], int(result.stdout), result.trace


@pytest.mark.parametrize(
    "mode, who, place, asked",
    [
        ("several", 3, r"usleep <- await_part", r"Before (\d+) % of the looks that found something, another thread ended\n  usleep <- make_part "),
        ("expires", 3, r"pthread_cond_timedwait <- expect_part", r"Before (\d+) % of the looks that found something, another thread ended\n  usleep <- make_part "),
        ("retries", 4, r"usleep <- get_table", r"Before (\d+) % of these waits a try for table_lock, taken in try_table, failed:\n  another thread held it\."),
        ("files", 4, r"usleep <- get_table", r"At (\d+) % of the looks that found nothing, another thread (?:held\n  flock \S+/polls\.|was in\n  usleep <- change_table )"),
        ("refused", 4, r"usleep <- back_off", r"The (waits) grow, as those of a thread that tries again\."),
    ],
)
def test_several_threads_that_poll(traced, mode, who, place, asked):
    """The finding counts all their waits, and names what the other thread did meanwhile. No replay knows that."""
    text, waits, trace = polling(traced, mode)
    said = re.match(rf"Polling: {who} threads wait again and again, (\d+) times for \S+, in\n  {place} \(polls.c:\d+\).*\.\n  (?:If they ask |A call that waits for the lock)", text)
    part = re.search(asked, text)
    assert said and part and 0.97 * waits <= int(said[1]) <= waits and (part[1] == "waits" or int(part[1]) >= 75), (text, waits)
    assert "the run takes as long" not in page(trace) and "t does not know what threads poll for" in page(trace)
    assert not any(re.search(place, change["name"]) for change in why(trace)["what_if"])


@pytest.mark.urgent
@pytest.mark.parametrize("mode", ["works", "rises", "meets", "serves"])
def test_several_threads_that_work(traced, mode):
    """Sleeps that stand for work are no polling: in several threads alike, where another one is done each time before the last of them, or was told to wait for them."""
    text, _, trace = polling(traced, mode)
    piece = "climber" if mode == "rises" else "do_piece"
    assert not text and f"usleep <- {piece}" in why(trace)["what_if"][0]["name"], (text, why(trace)["what_if"])


def test_the_busy_handler_of_sqlite(traced, tmp_path):
    """Threads that find the database locked sleep in a function of SQLite, longer each time."""
    found = findings(traced(["/usr/bin/python3", SOURCES / "why/busy_timeout.py", tmp_path / "rows.db"]).ok().trace)
    text = found.get("polling", {"text": ""})["text"]
    assert re.search(r"^Polling: 4 threads wait .*\n  \w+ <- write_rows \(busy_timeout.py:\d+\).*\.\n(.*\n)*  The waits grow, as those of a thread that tries again\.", text), found


def test_children_that_are_looked_for(traced):
    """Waits that grow up to 50 ms are no work: a child of 66 ms takes as long, however long each of them is."""
    trace = traced(["/usr/bin/python3", SOURCES / "why/children.py"]).ok().trace
    text = findings(trace).get("polling", {"text": ""})["text"]
    assert re.search(r"^Polling: 2 threads wait .*\n  \S+ <- await_child \(children.py:\d+\)", text) and "The waits grow, as those of a thread that tries again." in text, text
    assert not any("sleep <- await_child" in change["name"] for change in why(trace)["what_if"])


@pytest.mark.parametrize("kind, lock", [("mutex", "document"), ("rwlock", "book"), ("semaphore", "sheet")])
def test_a_lock_that_is_tried_for(traced, kind, lock):
    """A thread that sleeps after each try for a lock in vain: which lock that is, and which thread has it, also in top --holders."""
    trace, (_, waits) = (result := traced([SINGLE / "why/tries", kind]).ok()).trace, result.stdout.split()
    text = findings(trace).get("polling", {"text": ""})["text"]
    said = re.match(r"Polling: user waits again and again, (\d+) times for \S+, in\n  usleep <- edit .*\n  A call that waits for the lock,.*\n(?:  Other threads waited .*\n)?  Before (\d+) % of these waits a try for (\w+)(, taken in lock,)? failed:\n  (.*) held it\.", text)
    assert said and said[3] == lock and said[5] in (["saver", "another thread"] if kind == "semaphore" else ["saver"]), text
    assert int(said[1]) == int(waits) and int(said[2]) >= 90, (text, waits)
    rows = json.loads(proc.run([GOTRACE, "top", "--holders", "--json", trace]).ok().stdout)["waits"]
    tried = next(row for row in rows if row["what"] == "usleep")
    assert tried["lock"] == lock and tried["count"] <= int(waits) <= tried["count"] * 1.1, rows


def test_a_child_that_is_asked_for(traced):
    """The calls that ask whether it has ended are too short to be recorded, but each round of equal sleeps begins with a child."""
    text, waits, trace = polling(traced, "asks", "nohang")
    said = re.match(
        r"Polling: main waits again and again, (\d+) times for \S+, in\n  usleep <- await_tool \(nohang.c:\d+\)\.\n"
        r"  If it asks whether a child has ended, waitpid without WNOHANG would return at once\.\n"
        r"  Before (\d+) of (\d+) rounds of these waits the thread made a child process, or waited for one\.",
        text,
    )
    assert said and 0.97 * waits <= int(said[1]) <= waits and int(said[2]) >= 0.75 * int(said[3]) >= 11, (text, waits)
    assert not any("await_tool" in change["name"] for change in why(trace)["what_if"])


def test_a_thread_that_works_beside_its_child(traced):
    """Its sleeps stand for work, and it waits for the child in the kernel: it asks nothing."""
    text, _, trace = polling(traced, "works", "nohang")
    assert not text and any("usleep <- write_page" in change["name"] for change in why(trace)["what_if"]), page(trace)
