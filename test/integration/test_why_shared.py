"""`gotrace why`: threads that share their work, or what they need for it."""

import json
import re

import pytest

from lib import PROGRAMS, ROOT, SINGLE, proc

pytestmark = pytest.mark.measured

GOTRACE = ROOT / "build/gotrace"


def why(trace):
    return json.loads(proc.run([GOTRACE, "why", "--json", trace], timeout=60).ok().stdout)


def page(trace):
    return proc.run([GOTRACE, "why", trace], timeout=60).ok().stdout


def test_workers_that_wait_for_work_one_behind_the_other(traced):
    """They wait for each other only because the next piece is not there: what feeds them sets the pace."""
    trace = traced([SINGLE / "why/gate"]).ok().trace
    report = why(trace)
    found = {its["finding"] for its in report["findings"]}
    assert not {"serialised_pool", "holder_without_cpu"} & found, report["findings"]
    assert re.search(r"^Limited by usleep <- feed ", page(trace), re.M)


def test_a_queue_for_slots_is_no_rest(traced):
    """Of threads that come together, the first ones get a slot without waiting: what they give back wakes the others."""
    trace = traced([SINGLE / "why/surge"]).ok().trace
    assert not why(trace)["loops"]
    top = proc.run([GOTRACE, "top", trace]).ok().stdout
    assert re.search(r"pthread_cond_wait <- render", top) and "idle:" not in top, top


@pytest.mark.parametrize("name", ["rounds", "counter"])
def test_what_saves_most_comes_first(traced, name):
    """The CPUs that other processes have come last."""
    changes = why(traced([PROGRAMS / "whys", name]).ok().trace)["what_if"]
    own = [its["gain"] for its in changes if its["change"] != "cpus"]
    assert len(own) > 1 and own == sorted(own, reverse=True), changes
    assert "cpus" not in [its["change"] for its in changes[:-1]], changes


def test_names_stay_whole(traced):
    """A line that is full ends between two names; and one thread is not "threads"."""
    text = page(traced([SINGLE / "why/names"]).ok().trace)
    answer = text[: text.index("Critical path")]
    assert re.match(r"\S+: \S+, 1 thread, ", answer), answer
    assert re.search(r"^Limited by usleep <- wait_for_the_device \(names.c:6\)\n  < read_the_index_of_all_regions \(names.c:11\):$", answer, re.M), answer


def test_slots_without_a_name(traced):
    """Where the semaphore is on a stack, the function that takes a slot names it."""
    text = page(traced([SINGLE / "why/pool"]).ok().trace)
    assert re.search(r" 0x[0-9a-f]+, taken in check_out, had one slot more \(now 2\)$", text, re.M), text


@pytest.mark.urgent
def test_pieces_are_shared_by_who_is_free(traced):
    """With half of a place, threads that take the next piece of work take another number of pieces than in the trace."""
    taken = lambda look, execute: 1 / execute + 3 / (look + execute)  # pieces a ms, by the source
    known = {"look": 1 - taken(12, 3) / taken(6, 3), "execute": 1 - taken(12, 3) / taken(12, 1.5)}
    trace = traced([SINGLE / "why/steal"]).ok().trace
    halves = {its["name"].split()[2]: its for its in why(trace)["what_if"] if its["change"] == "half"}
    assert known.keys() <= halves.keys() and all(abs(halves[its]["gain"] - gain) < 0.05 for its, gain in known.items()), (known, halves)
    assert all(halves[its]["basis"] == "shared" for its in known), halves
    assert re.search(r"^ +-[\d.]+% .* shared    row \d+ took half as long$", page(trace), re.M)
    assert "\n  shared: " in page(trace)
