"""`gotrace why`: programs with a known reason, and sums that come out exactly."""

import json
import os
import re
import subprocess
import sys

import pytest

from lib import ALL, PROGRAMS, ROOT, SINGLE, SOURCES, gotools, proc
from lib.pprof import varint

GOTRACE = ROOT / "build/gotrace"
SCENARIOS = [  # as `whys` lists them: the scenario, what `gotrace why` is to name first, whether the longest wait misleads
    ("journal", "journal_lock", True),
    ("nested", "inner_lock", True),
    ("rotation", "rotate_log", True),
    ("readers", "map_lock", True),
    ("idle", "load_item", True),
    ("pool", "pool_worker", True),
    ("stages", "transform", True),
    ("turns", "compress", True),
    ("dialogue", "answer", True),
    ("limited", "query", True),
    ("straggler", "large_part", True),
    ("rounds", "slow_share", True),
    ("one_by_one", "task", True),
    ("setup", "set_up", True),
    ("settling", "settle", False),
    ("chain", "slow_source", True),
    ("serial", "prepare", True),
    ("gather", "look_up", True),
    ("batches", "linger", True),
    ("ahead", "read_block", True),
]
GAIN_OFF = 0.10
RESERVED = {"more": {"pool", "full", "rare"}, "slot": {"limited", "slots", "counter"}}  # change: where there is one to offer
formats = pytest.mark.parametrize("format", gotools.some("go1.5"))


def why(trace, *options):
    return json.loads(proc.run([GOTRACE, "why", "--json", *options, trace], timeout=60).ok().stdout)


def page(trace, *options, **env):
    return proc.run([GOTRACE, "why", *options, trace], timeout=60, env=env).ok().stdout


def words(candidate):
    return candidate["name"] if candidate else ""


def bare(name, *options):
    return min(int(proc.run([PROGRAMS / "whys", name, *options]).ok().stdout) for _ in range(2))


# --- the known reason


def attempt(traced, name, first, change=None, known=None):
    """What is wrong, or None: the first candidate, or that change, is the known one, and gains what it does gain.

    known: what it is by the devices' times alone; else, and where others disturb, it is measured.
    """
    result = traced([PROGRAMS / "whys", name]).ok()
    candidates = why(result.trace)["what_if"]
    offered = {c["change"] for c in candidates} & set(RESERVED)
    if not all(name in RESERVED[its] for its in offered):
        return f"{name}: {candidates}"
    tried = [c for c in candidates if c["change"] != "cpus"]  # that others have the CPUs is no reason of the program's
    candidate = next((c for c in tried if change in (None, c["change"])), None)
    if first not in words(candidate):
        return f"{name}: {words(candidate)!r}, not {first}"
    if known and abs(candidate["gain"] - known) <= GAIN_OFF / 2:
        return None
    gain = 1 - bare(name, "fixed") / bare(name)
    if abs(candidate["gain"] - gain) > GAIN_OFF:
        return f"{name}: {candidate['gain']:.2f} was promised, {gain:.2f} gained"
    return None


def known_gain(traced, *what):
    assert not (wrong := attempt(traced, *what)), wrong


def test_scenarios():
    """The program lists 20 scenarios. At least 10 mislead a reader who looks at the longest wait."""
    listed = proc.run([PROGRAMS / "whys"]).ok().stdout
    assert listed == "".join(f"{name} {first} {misleads:d}\n" for name, first, misleads in SCENARIOS)
    assert len(SCENARIOS) == 20 and sum(misleads for *_, misleads in SCENARIOS) >= 10


@pytest.mark.measured
@pytest.mark.limit(120)
@pytest.mark.long
@pytest.mark.parametrize("name, first", [scenario[:2] for scenario in SCENARIOS])
def test_known_reasons(traced, name, first):
    """The page names the reason first, and promises what the program gains without it."""
    known_gain(traced, name, first)


@pytest.mark.measured
@pytest.mark.urgent
@pytest.mark.limit(120)
@pytest.mark.parametrize(
    "name, change, says, known",
    [
        ("full", "more", "one thread more in the pool busy_worker (now 2)", 1 / 3),
        ("slots", "slot", "connections had one slot more (now 2)", 1 / 3),
        ("counter", "slot", "ticket_given_back had one slot more (now 3)", 1 / 4),
        ("binary", "free_lock", "nobody ever waited for store_locks", 1 - 20 * 5 / (80 * 3)),
    ],
)
def test_one_more(traced, name, change, says, known):
    """What another worker of a pool that is always busy brings, another slot, or no semaphore that is a lock."""
    known_gain(traced, name, says, change, known)


@pytest.mark.measured
@pytest.mark.limit(120)
@pytest.mark.urgent
def test_a_pool_that_never_waits_for_work(traced):
    """Its queue was full before it began: 36 pieces, 504 ms of fetching and 36 ms of storing together, of two threads that end together."""
    trace = traced([SINGLE / "why/filled", "pool"]).ok().trace
    report = why(trace)
    gains = {c["change"]: (c["gain"], c["basis"]) for c in reversed(report["what_if"])}
    assert report["stopped_by_flag"] == [] and {"more", "half"} <= set(gains), (report["stopped_by_flag"], gains)
    assert abs(gains["more"][0] - 1 / 3) < GAIN_OFF / 2 and abs(gains["half"][0] - 252 / 540) < GAIN_OFF / 2, gains
    assert gains["more"][1] == "inferred" and "more" == next(iter(reversed(gains))), gains
    first = page(trace).split("\n\n")[1]
    assert re.match(r"Limited by the pool worker: its 2 threads are always busy,\n  for \d\d % of the critical path in\n  usleep <- fetch_piece .*\.\n", first), first
    pieces = re.search(r"^  They seem to share a queue: they ended together after (\d+) to (\d+) pieces each\.\n  With one thread more, ", first, re.M)
    assert int(pieces[1]) + int(pieces[2]) == 36 and int(pieces[1]) < 18, first


@pytest.mark.measured
@pytest.mark.urgent
def test_threads_with_equal_parts_are_no_pool(traced):
    """Three threads with twelve pieces each: that one more would take some of them is not known."""
    said = why(traced([SINGLE / "why/filled", "clients"]).ok().trace)
    assert said["stopped_by_flag"] == [] and "more" not in {c["change"] for c in said["what_if"]} and "<- ask " in said["what_if"][0]["name"], said["what_if"]


@pytest.mark.measured
@pytest.mark.urgent
@pytest.mark.limit(120)
@pytest.mark.parametrize("name, says, known", [("ticks", "load_page", 1 / 3), ("beside", "scan_left", 3 / 16), ("attended", "parse_file", 1 / 3)])
def test_joins(traced, name, says, known):
    """The path holds a thread that was asked to stop only from then on, and the end of a thread only if it was waited for."""
    known_gain(traced, name, says, "half", known)


@pytest.mark.measured
@pytest.mark.urgent
@pytest.mark.limit(120)
@pytest.mark.parametrize("name", ["beats", "alike", "reloads"])
def test_a_thread_that_a_flag_stops(traced, name):
    """It sleeps in a function of its own, is named like the thread that works, or holds others up with a lock too. Only its last round is waited for, and the page says why it is so read."""
    trace = traced([SINGLE / "why/until", name]).ok().trace
    report = why(trace)
    goes_on, works, pause = {"beats": ("heartbeat", "import_row", "beat"), "alike": ("(either)", "import_row", "beat"), "reloads": ("reloader", "load_table", "reloader")}[name]
    halves = {c["section"]["function"] + c["name"]: c["gain"] for c in report["what_if"] if c["change"] == "half"}
    (gain,) = [gain for its, gain in halves.items() if f"< {works} " in its] or [0]
    paused = sum(row["ns"] for row in report["path"]["rows"] if row["kind"] == "sleep" and f"< {pause} " in row["name"])
    told = [it["thread"] for it in report["stopped_by_flag"]]
    known = 50 * 4e6 / report["path"]["ns"]  # by the devices' times
    if name == "reloads":
        whole, half = (min(int(proc.run([SINGLE / "why/until", name, mode]).ok().stdout) for _ in range(2)) for mode in ("", "half"))
        known = 1 - half / whole
    assert len(told) == 1 and told[0].endswith(goes_on) and paused < 60_000_000 and abs(gain - known) < GAIN_OFF, (told, paused, halves, known)
    assert re.search(r"^\((heartbeat|reloader|\d+ \(either\)) slept about as long in each of \d+ rounds, and ended within", page(trace), re.M)


@pytest.mark.measured
@pytest.mark.limit(120)
@pytest.mark.parametrize("where", ["thread", "main"])
def test_a_thread_that_a_flag_stops_in_python(traced, where):
    """Its 20 or more sleeps are one place, its join is a wait for a lock, and what goes on beside it until it is stopped polls nothing."""
    report = why(traced(["/usr/bin/python3", SOURCES / "whys/beats.py", where]).ok().trace)
    (gain,) = [c["gain"] for c in report["what_if"] if "<- import_row " in c["name"] and c["change"] == "half"] or [0]
    told = [it["thread"] for it in report["stopped_by_flag"] if it["sleeps"] >= 18]
    assert told == ["Thread-1 (heartbeat)"] and abs(gain - 50 * 4e6 / report["path"]["ns"]) < GAIN_OFF / 2, (told, report["what_if"])
    assert "polling" not in {f["finding"] for f in report["findings"]}, report["findings"]


@pytest.mark.measured
@pytest.mark.urgent
def test_two_parts_of_the_same_length(traced):
    """Two threads with 30 sleeps each end within one: neither is stopped by the other's end, and half of one part brings nothing."""
    report = why(traced([SINGLE / "why/until", "parts"]).ok().trace)
    gains = [c["gain"] for c in report["what_if"] if c["change"] == "half"]
    assert report["stopped_by_flag"] == [] and all(gain < 0.1 for gain in gains), report


@pytest.mark.measured
@pytest.mark.urgent
def test_a_join_of_what_waits_for_others(traced):
    """A thread that waits for input from elsewhere, and ends with it, is waited for by who joins it."""
    trace = traced([PROGRAMS / "whys", "commanded"]).ok().trace
    (row,) = [row for row in why(trace)["path"]["rows"] if row["function"] == "attendant" and row["kind"] == "network"]
    assert row["ns"] > 100_000_000, row


@pytest.mark.measured
@pytest.mark.urgent
@pytest.mark.limit(120)
@pytest.mark.parametrize(
    "name, says, known",
    [
        ("eventfds", "compute_answer", 2 / 5),
        ("sockets", "look_up_key", 0.5),
        ("pipes", "decode", 4 / 9),
        ("flocks", "append_record", 0.5),
    ],
)
def test_descriptors(traced, name, says, known):
    """Who ends waits for an eventfd, a socket, a pipe or a file lock is known by when they end."""
    known_gain(traced, name, says, "half", known)


@pytest.mark.measured
def test_a_waker_in_the_middle_of_its_call(traced):
    """The call that sends what a thread waits for goes on for milliseconds before and after that wait is over."""
    report = why(traced([SINGLE / "why/sends"]).ok().trace)
    row = report["path"]["rows"][0]
    assert row["function"] == "send_all" and row["kind"] == "sleep" and report["inferred_wakers"] >= 10, report["path"]


@pytest.mark.measured
@pytest.mark.parametrize("name, knows", [("pipes", "gotrace -f -s all …, then gotrace why again: who ended waits, for certain"), ("nested", "gotrace top --wakers")])
def test_where_to_find_wakers(traced, name, knows):
    """The page sends a reader to a command that knows the wakers: `gotrace top` knows none that is guessed."""
    further = page(traced([PROGRAMS / "whys", name]).ok().trace).partition("Further:\n")[2]
    assert knows in further and further.count("who ended") == 1, further


@pytest.mark.measured
@pytest.mark.urgent
def test_descriptors_of_others(traced):
    """What another process writes, or a timer, is nobody's here, though there are threads that do things all the time."""
    trace = traced([PROGRAMS / "whys", "timed"]).ok().trace
    report = why(trace)
    check(report)
    heard = sum(row["ns"] for row in report["path"]["rows"] if row["kind"] == "syscall" and row["function"] == "hear")
    assert heard * 2 > report["path"]["ns"], report["path"]


@pytest.mark.measured
def test_wakers_that_nobody_knows(traced):
    """Where another process sets the pace, the page names the waits, and says neither that waits elsewhere nor that changes give nothing."""
    trace = traced([SINGLE / "why/fed"]).ok().trace
    report, shown = why(trace), page(trace)
    assert not report["what_if"] and "unknown_wakers" in report, report
    its, text = report["unknown_wakers"], " ".join(shown.split())
    assert its["waits"] == 40 and its["function"] == "refill_table" and its["ns"] * 10 > report["path"]["ns"] * 9, its
    assert re.match(r"Nobody is known to end the 40 waits in read <- refill_table \(fed.c:14\).*: another thread, process, timer or device may set the pace\.", its["text"]), its
    assert f"({its['text']})" in text
    pace = r"^Limited by .*\n.*\n  Nobody is known to end these waits: what sets the pace may be elsewhere\.\n  Meanwhile 1 thread waited in usleep <- nap .* for 3\d\d\.\dms\.\n"
    assert re.search(pace, shown, re.M), shown
    assert re.search(r"^Off the path, but may be what those waits waited for:\n +3\d\d\.\dms  nap waited in usleep", shown, re.M), shown
    assert re.search(r"^  The replay cannot tell: nobody is known to end the waits of row 1\.$", shown, re.M), shown
    assert "the run takes as long" not in shown and "None of the changes" not in shown
    further = shown.partition("Further:\n")[2]
    assert "gotrace -f -s all …, then gotrace why again: who ended the waits of row 1\n" in further and "--wakers" not in further
    assert "unknown_wakers" not in why(traced([PROGRAMS / "whys", "pipes"]).ok().trace)
    proc.run([GOTRACE, "-f", "-s", "all", "-o", trace, "--", SINGLE / "why/fed"]).ok()  # as the page says
    report = why(trace)
    slept = sum(row["ns"] for row in report["path"]["rows"] if row["function"] == "feed" and row["what"] == "usleep")
    assert slept >= 300_000_000 and "unknown_wakers" not in report and not report["inferred_wakers"], report["path"]


def test_descriptors_of_too_many(traced):
    """That nobody looked who ended their waits is said."""
    trace = traced(["/usr/bin/python3", SOURCES / "why/crowd.py"]).ok().trace
    told = re.search(r"\(Who ended (\d+) waits for descriptors is not looked for: of a smaller cut it is", page(trace))
    assert told and 100 <= int(told[1]) == why(trace)["wakers_not_looked_for"]


# --- causes that are not where the wait is longest


def cause(tmp_path, name, *mode):
    """A trace of that program, with all of its processes."""
    trace = tmp_path / f"{name}.out"
    proc.run([GOTRACE, "-f", "-o", trace, "--", PROGRAMS / "causes", name, *mode], timeout=60).ok()
    return trace


def predicts(tmp_path, name, mode, change, says):
    """The change is offered, and gains what that mode of the program gains."""
    report = why(cause(tmp_path, name))
    offered = [c for c in report["what_if"] if c["change"] == change and says in c["name"]]
    assert offered, f"{name}: no {says!r} in {report['what_if']}"
    gain = 1 - took(name, mode) / took(name)
    assert abs(offered[0]["gain"] - gain) <= GAIN_OFF, f"{name}: {offered[0]['gain']:.2f} was promised, {gain:.2f} gained"


def took(*argv):
    """The shorter of two runs: others may have had the CPUs meanwhile."""
    return min(int(proc.run([PROGRAMS / "causes", *argv], timeout=60).ok().stdout) for _ in range(2))


@pytest.mark.measured
@pytest.mark.limit(120)
@pytest.mark.parametrize(
    "name, mode, change, says",
    [
        ("herd", "half", "half", "< look_for_item "),
        ("joins", "half", "half", "< fetch "),
        ("backoff", "half", "half", "< make_record "),
        ("backoff", "fixed", "no_poll", "< ask_for_record "),
        ("polled", "half", "half", "< make_record "),
        ("processes", "half", "half", "< change_table "),
        ("answers", "half", "half", "< find_answer "),
        ("parts", "half", "half", "do_part"),
        ("parts", "fixed", "even", "the 8 threads part_thread"),
        ("desks", "half", "half", "< find_price "),
        ("desks", "fixed", "across", "price_lock, taken in get_price, was not held during pthread_cond_wait <- ask_clerk "),
        ("sockets", "half", "half", "< find_price "),
        ("sockets", "fixed", "across", "price_lock, taken in get_price, was not held during read <- ask_clerk "),
    ],
)
@pytest.mark.urgent
def test_predictions(tmp_path, name, mode, change, says):
    """The change is named with the function that the user would change, and brings what it brings in fact."""
    predicts(tmp_path, name, mode, change, says)


@pytest.mark.measured
@pytest.mark.limit(120)
def test_prediction_where_others_have_the_cpu(tmp_path):
    predicts(tmp_path, "starved", "half", "half", "running in index_holder")


@pytest.mark.measured
def test_waits_for_the_mutex_after_a_signal(traced):
    """A thread that was woken and waits for the mutex waits for a lock, which has a holder: it lacks no CPU."""
    on_path = {"look": 0, "woken": 0}
    for row in why(traced([PROGRAMS / "causes", "herd"]).ok().trace)["path"]["rows"]:
        on_path["look"] += row["ns"] if "< look_for_item " in row["name"] else 0
        on_path["woken"] += row["ns"] if "pthread_cond_wait" in row["name"] else 0
    assert on_path["look"] > 2 * on_path["woken"], on_path


@pytest.mark.measured
@pytest.mark.urgent
def test_polling(tmp_path):
    """A thread that others wait for while it sleeps polls; and nothing that they do is said to cost nothing."""
    trace = cause(tmp_path, "backoff")
    told = findings(trace)["polling"]["text"]
    assert re.search(r"record_writer waits again and again.*\n.* < ask_for_record .*\n.*\n.* waited \d+ times until", told), told
    assert "does not shorten the run" not in page(trace)


@pytest.mark.measured
@pytest.mark.urgent
def test_a_worker_that_sleeps(tmp_path):
    """A thread that sleeps for each job of a queue polls nothing, though no other thread waits for it before its end."""
    program = proc.compile(SOURCES / "whys/tasks.cc", tmp_path / "tasks", "-std=c++17", compiler="g++")
    report = why(proc.traced([program, "one_worker"], tmp_path / "t.out").ok().trace)
    (half,) = [c["gain"] for c in report["what_if"] if "< resize_picture " in c["name"]] or [0]
    assert abs(half - 60 * 3e6 / report["path"]["ns"]) < GAIN_OFF, report["what_if"]
    assert "polling" not in {f["finding"] for f in report["findings"]}, report["findings"]


@pytest.mark.measured
@pytest.mark.parametrize("name, says", [("joins", "< fetch "), ("polled", "< ask_for_record"), ("starved", "index_lock")])
def test_answer(tmp_path, name, says):
    """The first thing on the page is what limits the run, where, and what a change there would bring.

    Where others have nearly all of the CPUs, a CPU is what the holder of the lock lacks most.
    """
    trace = cause(tmp_path, name)
    first = page(trace, "--wide").split("\n\n")[1]
    assert says in first, first
    answer = why(trace)["answer"]
    assert answer in page(trace, "--wide")
    if answer:
        place = r".*\n  .*, \d+ % of the critical path.*\n  .*"
        what = rf"(CPUs: .*\n  With a CPU for each of them|{place})" if name == "starved" else place
        assert re.search(rf"^Limited by {what}, the run would take .* % less: ", answer), answer


@pytest.mark.measured
def test_more_threads_for_a_pool_that_has_enough(tmp_path):
    """Where threads of the pool wait for work, one more would only wait, too: what they do takes the time."""
    report = why(cause(tmp_path, "answers"))
    assert "more" not in [c["change"] for c in report["what_if"]], report["what_if"]
    assert "< find_answer " in next(c["name"] for c in report["what_if"] if c["change"] == "half")


@pytest.mark.measured
@pytest.mark.limit(120)
def test_threads_that_are_made_one_at_a_time(traced, tmp_path):
    """Each of 30 threads, of 24 futures, or of 10 threads in Python, sleeps, and is waited for before the next one is made; but not where four are made at a time."""
    program = proc.compile(SOURCES / "whys/tasks.cc", tmp_path / "tasks", "-std=c++17", compiler="g++")
    runs = [
        ([PROGRAMS / "whys", "one_by_one"], "30 threads task", 6, "pthread_join <- run_threads"),
        ([program, "one_by_one"], "24 threads ", 12, "pthread_join <- one_by_one"),
        (["/usr/bin/python3", SOURCES / "why/loads.py"], "10 threads load", 20, "sem_wait <- module"),
    ]
    for argv, threads, ms, place in runs:
        trace = traced(argv).ok().trace
        told = findings(trace)["one_at_a_time"]["text"]
        assert re.match(rf"One at a time: main makes {threads}.*, and waits for each in {place}", told), told
        part, longest = re.search(r", (\d+) % of the critical path\.\n.* longest needs: ([\d.]+)ms\.$", told).groups()
        assert int(part) >= 60 and ms <= float(longest) < 3 * ms, told
        assert re.search(r"^\* One at a time: main makes", page(trace), re.M)
    for argv in [program, "one_by_one", "fixed"], [PROGRAMS / "whys", "straggler"], [PROGRAMS / "causes", "joins"]:
        assert "one_at_a_time" not in findings(traced(argv).ok().trace), argv


@pytest.mark.measured
def test_herd_that_queues(tmp_path):
    """Eight threads are woken for one item, and look for it one after another, with the lock held."""
    found = findings(cause(tmp_path, "herd"))
    assert "thundering_herd" in found, found
    told = found["thundering_herd"]["text"]
    assert re.search(r"pthread_cond_wait <- herd_worker .*\n.* queue for the lock .*table_lock, ", told), told
    assert "thundering_herd" not in findings(cause(tmp_path, "answers"))


def test_waits_are_counted_once(traced):
    """A waiter that is woken for a mutex, finds it taken again, and sleeps on has waited once."""
    result = traced([SINGLE / "why/retakes"]).ok()
    waited, text = int(result.stdout), findings(result.trace)["lock_held_across_io"]["text"]
    told = int(re.search(r"4 threads waited for it (\d+) times", text)[1])
    assert 0.9 * waited - 1 <= told <= waited, (waited, text)  # a lock that comes free within a moment is no wait


@pytest.mark.measured
@pytest.mark.limit(120)
@pytest.mark.parametrize("name, call", [("desks", "pthread_cond_wait"), ("sockets", "read")])
def test_a_lock_held_across_a_wait(tmp_path, name, call):
    """Who holds the lock waits for another thread for nearly all of 80 times 4 ms, and another program holds none then."""
    report = why(cause(tmp_path, name))
    found = {f["finding"]: f["text"] for f in report["findings"]}
    assert "lock_held_across_wait" in found, found
    told, first = found["lock_held_across_wait"], report["what_if"][0]
    held, part = re.search(r"across a wait: \S*price_lock, taken in get_price, is held for ([\d.]+)ms of the critical path \((\d+) %\), while", told).groups()
    assert 320 <= float(held) < 380 and float(part) >= 80, told
    assert re.search(rf" waits for \S*clerk in {call} <- ask_clerk .*\n.* 4 threads waited for it ", told), told
    assert first["change"] == "across" and first["section"]["function"] == "ask_clerk" and "price_lock" in first["lock"], first
    assert "lock_held_across_wait" not in findings(cause(tmp_path, name, "fixed"))


@pytest.mark.measured
@pytest.mark.urgent
def test_imbalance(tmp_path):
    """One of eight equal threads has three times the work: 240 ms of 20 times 5 on average."""
    told = findings(cause(tmp_path, "parts"))["imbalance"]["text"]
    works, average = re.search(r"of 8 threads part_thread, \d+ \(\S*part_thread\) works ([\d.]+)ms, all of them ([\d.]+)ms on average", told).groups()
    assert abs(float(works) - 240) < 24 and abs(float(average) - 100) < 10, told
    assert "imbalance" not in findings(cause(tmp_path, "answers"))


@pytest.mark.measured
def test_stages_of_the_same_code(traced):
    """Four threads of one function, each with a queue of its own: the page says which of them sets the pace."""
    result = traced([SINGLE / "why/stages"]).ok()
    slow = f"{result.stdout.strip()} (run)"
    row = longest_sleep(why(result.trace))
    assert row["function"] == "work" and row["most"] == slow and row["most_ns"] >= 0.9 * row["ns"], row
    shown = page(result.trace)
    assert re.search(rf"\d x run, mostly {re.escape(slow)}\n|; {re.escape(slow)}\n", shown), shown
    assert f"of 4 threads run, {slow} works" in " ".join(shown.split()), shown
    assert re.search(r"\d+ (threads|\(run\)) waited in pthread_cond_wait <- push ", shown), shown


@pytest.mark.measured
def test_one_row_for_what_looks_the_same(traced):
    """Waits off the path in two calls on one line are one row: two threads sleep 60 ms each there."""
    rows = re.findall(r"^ +([\d.]+)ms  (\d) threads waited in usleep <- nap \(twice.c:9\)$", page(traced([SINGLE / "why/twice"]).ok().trace), re.M)
    assert len(rows) == 1 and float(rows[0][0]) >= 120 and rows[0][1] == "2", rows


@pytest.mark.measured
@pytest.mark.limit(120)
def test_replay_up_to_the_end_of_one_thread(traced):
    """The holder of a lock reads with it, and another thread waits for it: that one takes its own time in a replay, too."""
    runs, times = [], 15 if ALL else 5
    for _ in range(times):  # the holder's record of a hold must be late for this to go wrong: in every tenth run or more
        result = traced([SINGLE / "why/refill"]).ok()
        took, overtaken = map(int, result.stdout.split())
        if not overtaken:  # in a replay the threads have the lock in turns
            runs.append(why(result.trace, "--thread=user")["replay"]["unchanged_ns"] / took)
    assert len(runs) >= times // 2 and all(abs(run - 1) < 0.05 for run in runs), runs


def answers(trace):
    """What limits the run by the first lines of the page: of each place the percents of the path and what half of it saves."""
    found = re.findall(r"^Limited (?:as much )?by (.*):\n  (.*)\n  If .*, the run would take (?:about )?(\d+) % less: ", why(trace)["answer"], re.M)
    return {place.split(" (")[0]: ([int(n) for n in re.findall(r"(\d+) %", parts)], int(gain)) for place, parts, gain in found}


@pytest.mark.measured
@pytest.mark.urgent
def test_two_places_that_limit_as_much(traced):
    """The feeder sleeps as long as it computes, and no other thread has a part in how long the run takes: the page names both."""
    found = answers(traced([SINGLE / "why/refill"]).ok().trace)
    assert set(found) == {"usleep <- produce", "computing in produce"}, found
    assert all(abs(sum(parts) / 2 - gain) <= 3 and 20 <= gain <= 26 for parts, gain in found.values()), found


@pytest.mark.measured
@pytest.mark.urgent
def test_the_answer_counts_the_time_without_a_cpu(traced):
    """Another process has a large part of the only CPU: what saves that much is the computing and the waiting for a CPU."""
    cpu = str(min(os.sched_getaffinity(0)))
    other = proc.spawn(["taskset", "-c", cpu, "/usr/bin/python3", SOURCES / "why/other.py"])
    try:
        trace = traced(["taskset", "-c", cpu, SINGLE / "why/refill"]).ok().trace
        parts, gain = answers(trace).get("computing in produce", ([], 0))
    finally:
        proc.stop(other)
    assert len(parts) == 2 and parts[1] > 10 and abs(sum(parts) / 2 - gain) <= 3, (parts, gain)
    text = page(trace, "--wide")
    rows = dict(re.findall(r"^ ?(\d+) +\S+ +\S+% +\d+  (runs|no CPU) +(?:in )?produce ", text, re.M))
    runs, lacks = sorted(rows, key=rows.get, reverse=True)
    assert sorted(rows.values()) == ["no CPU", "runs"] and f" rows {runs} and {lacks} took half as long\n" in text, text


@pytest.mark.measured
@pytest.mark.urgent
def test_a_semaphore_that_turns_out_to_be_a_lock(traced):
    """Its first holds are not recorded. Still the thread whose post ended a wait for the token was its holder: one place is one row."""
    program = SINGLE / "why/tokens"
    half = 1 - int(proc.run([program, "half"]).ok().stdout) / int(proc.run([program]).ok().stdout)
    said = why(traced([program]).ok().trace)
    rows = {row["name"]: row["ns"] for row in said["path"]["rows"] if row["name"].startswith("usleep <- fetch ")}
    (holding,) = [name for name in rows if name.endswith(", holding lock")]
    assert rows[holding] > 0.8 * sum(rows.values()), rows  # of 12; some holds pass the token to no thread that waits
    gain = {w["name"]: w["gain"] for w in said["what_if"]}[f"{holding} took half as long"]
    assert abs(gain - half) < 0.1, (gain, half)


@pytest.mark.measured
def test_accounts_tell_who_had_no_cpu(traced):
    """Where other processes have the CPUs, threads run as long as the kernel's account says, and no longer."""
    trace = traced([PROGRAMS / "causes", "starved"]).ok().trace
    report = why(trace)
    threads = json.loads(proc.run([GOTRACE, "info", "--json", trace]).ok().stdout)["by_thread"]
    used = sum(thread["cpu_ns"] for thread in threads) / report["path"]["ns"]
    assert abs(report["parallelism"]["running"]["average"] - used) < 0.1 * used + 0.02, (report["parallelism"], used)
    found = {f["finding"]: f["text"] for f in report["findings"]}
    (gain,) = [c["gain"] for c in report["what_if"] if c["change"] == "cpus"]
    computes = 25 * (5_000_000 + 200_000)  # index_holder, with a CPU all the time
    assert abs(gain - (1 - computes / report["path"]["ns"])) < GAIN_OFF, report["what_if"]
    assert "index_lock, taken in index_holder, was waited for" in found.get("holder_without_cpu", ""), found
    assert re.search(r"No CPU: for \d+ % of the critical path .*\n.* index_holder", found["preempted"]), found


@pytest.mark.measured
@pytest.mark.urgent
def test_one_long_piece(traced):
    """More threads do not share one long piece of work: it is what takes long."""
    known_gain(traced, "rare", "rebuild_index", None, 35 / (1 + 30 + 70))


@pytest.mark.measured
@pytest.mark.urgent
def test_not_one_more(traced):
    """Where the threads of a pool wait for what nobody knows who has, one more waits for it, too."""
    trace = traced([PROGRAMS / "whys", "futex"]).ok().trace
    report = why(trace)
    assert "more" not in [c["change"] for c in report["what_if"]], report["what_if"]
    assert re.search(r"sync +futex wait <- bare_lock_contended ", proc.run([GOTRACE, "top", trace]).ok().stdout)


@pytest.mark.measured
@pytest.mark.urgent
def test_longest_wait_misleads(traced):
    """So does `gotrace top` in these, which is why there is another command."""
    first = {name: first for name, first, misleads in SCENARIOS if misleads}
    for name in ["idle", "nested", "turns", "gather"]:
        result = traced([PROGRAMS / "whys", name]).ok()
        rows = proc.run([GOTRACE, "top", result.trace]).ok().stdout
        longest = re.search(r"^ *[\d.]+m?s +[\d.]+% +[\d.]+% .*$", rows, re.M)[0]
        assert first[name] not in longest, longest


# --- findings

NO_CPU = {"slow_wakeup", "preempted", "oversubscription"}  # others may have had the CPUs meanwhile


def findings(trace):
    return {f["finding"]: f for f in why(trace)["findings"]}


@pytest.mark.measured
def test_no_fault_in_a_healthy_program(traced):
    assert set(findings(traced([PROGRAMS / "whys", "healthy"]).ok().trace)) <= NO_CPU


@pytest.mark.measured
@pytest.mark.parametrize(
    "scenario, finding, says, alike",
    [
        ("journal", "lock_held_across_io", "journal_lock, taken in write_journal, is held .* <- write_journal .*\n.* 4 threads waited", "convoy"),
        ("nested", "lock_held_across_io", "(inner|outer)_lock, taken in \\w+, is held .*, holding (inner|outer)_lock", "convoy"),
        ("convoy", "convoy", "4 threads queue for the lock busy_lock.*\n.* mostly computing in adder", "lock_held_across_io"),
        ("idle", "false_idle", "6 threads fed_worker wait for work .* for feeder", "polling"),
        ("polling", "polling", "main waits again and again.*\n.* <- polling ", "busy_waiting"),
        ("pool", None, "", "false_idle"),
        ("paced", None, "", "false_idle"),
        ("answers", None, "", "false_idle"),
        ("settling", None, "", "polling"),
    ],
)
def test_findings(traced, scenario, finding, says, alike):
    """With its place and who it is about; and not what only looks like it."""
    result = traced([PROGRAMS / "whys", scenario]).ok()
    found = findings(result.trace)
    assert alike not in found
    if finding:
        assert re.search(says, found[finding]["text"], re.S), found
        assert found[finding]["text"].split("\n")[0] in page(result.trace, "--wide")
        assert " ".join(found[finding]["text"].split("\n")[0].split()) in " ".join(page(result.trace).split())
        proc.run([GOTRACE, *found[finding]["command"].split(), result.trace]).ok()


@pytest.mark.measured
def test_who_is_idle_is_said(traced):
    """What waits for work is known from the shape; --idle says that none does, or who does."""
    trace = traced([PROGRAMS / "whys", "idle"]).ok().trace
    for options, idle in ([], True), (["--idle=none"], False), (["--idle=fed_worker"], True):
        found = {finding["finding"] for finding in why(trace, *options)["findings"]}
        assert ("false_idle" in found) == idle, (options, found)


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """Where the kernel refuses, the page does not say which thread had which CPU."""
    trace = tmp_path_factory.mktemp("watched") / "t.out"
    if "does not let this user" in proc.traced([PROGRAMS / "threads", "2"], trace, env={"GOTRACE_SCHED": "on"}).stderr:
        pytest.skip("perf_event_open(2) is not allowed here")


def fault(traced, name, says, env):
    """The page of the program with the fault has the finding, with place and size; the page of its look-alike has not."""
    found = findings(traced([PROGRAMS / "faults", name], env=env).ok().trace)
    assert name in found and re.search(says, found[name]["text"]), found
    assert name not in findings(traced([PROGRAMS / "faults", name, "like"], env=env).ok().trace)


@pytest.mark.measured
@pytest.mark.parametrize(
    "name, says",
    [
        ("slow_wakeup", r"mostly woken from clock_nanosleep <- ticker .*\n.*[Oo]thers"),
        ("preempted", r"mostly in calculator.*\n.*[Oo]thers"),
        ("oversubscription", r"its threads shared [01]\.\d CPUs; [01]\.\d ran and [2-7]\.\d more could have"),
    ],
)
def test_no_cpu(traced, watched, name, says):
    """A CPU that others take, between waits or within work, and one that its own threads take from each other."""
    fault(traced, name, says, {"GOTRACE_SCHED": "on"})


@pytest.mark.measured
def test_others_share_the_cpus(traced):
    """A program with as many threads as CPUs has not too many, however busy other programs are."""
    others = [subprocess.Popen(["nice", "-n", "6", sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count())]
    try:
        trace = traced([SINGLE / "why/all_cpus"]).ok().trace
    finally:
        for other in others:
            other.kill()
            other.wait()
    assert "oversubscription" not in findings(trace), findings(trace)


def without_queues(data):
    """A trace in which the account says, with as many bytes, that no thread ever stood in a run queue."""
    data, queue = bytearray(data), 1
    later = {"system": 8 << 6, "touched": 16 << 6, "cpus": 4 << 6}  # behind the six, if the row has them
    for found in re.finditer(rb"[\x80-\xff]*[\0-\x7f](gotrace-account )", bytes(data), re.S):
        at, end = found.end(), found.start(1) + varint(data, found.start())[0]
        while at < end:
            known, at = varint(data, at)
            for field in ["g", "time", "length", *range(6), *(name for name, bit in later.items() if known & bit)]:
                start = at
                if isinstance(field, str) or known & 1 << field:
                    _, at = varint(data, at)
                if field == queue and at > start:
                    data[start:at] = b"\x80" * (at - start - 1) + b"\0"
    return data


@pytest.mark.measured
def test_slow_wakeups_are_counted(traced, watched, tmp_path):
    """The page has no more of such time than the kernel's account, whatever the events say."""
    trace = traced([PROGRAMS / "faults", "slow_wakeup"], env={"GOTRACE_SCHED": "on", "GOTRACE_FORMAT": "go1.23"}).ok().trace
    other = tmp_path / "other.out"
    other.write_bytes(without_queues(trace.read_bytes()))
    assert why(other)["path"] == why(trace)["path"]
    for its in [trace, other]:
        found = findings(its).get("slow_wakeup", {"text": "for 0 %"})
        told = int(re.search(r"for (\d+) %", found["text"])[1]) / 100 * why(its)["path"]["ns"]
        threads = json.loads(proc.run([GOTRACE, "info", "--json", its]).ok().stdout)["by_thread"]
        counted = sum(thread["runnable_ns"] for thread in threads)
        assert told <= 1.05 * counted + why(its)["path"]["ns"] / 100, (found, counted)


@pytest.mark.measured
def test_gain_of_a_cpu(traced, watched):
    """What would be if nobody took the CPU is offered, and is what the thread computes."""
    report = why(traced([PROGRAMS / "faults", "preempted"], env={"GOTRACE_SCHED": "on"}).ok().trace)
    without = [c["gain"] for c in report["what_if"] if c["change"] == "cpus"]
    none = sum(row["ns"] for row in report["path"]["rows"] if row["kind"] == "sched") / report["path"]["ns"]
    assert without and abs(without[0] - none) < 0.05, report


@pytest.mark.measured
@pytest.mark.parametrize(
    "name, says",
    [
        ("thundering_herd", r"pthread_cond_wait <- grazer .*\n  [2-6]\.\d threads are woken at a time\.(?s:.*)After [5-9]\d % of "),
        ("serialised_pool", r"of 4 threads ring_worker, 1\.[01]\d do something at a time.*\n  sem_wait <- in_turn "),
        ("busy_waiting", r"main calls sched_yield again and again, \d+ times in spin,"),
    ],
)
def test_faults_of_waits(traced, name, says):
    fault(traced, name, says, proc.EVERY_YIELD)


def hanging(tmp_path, argv):
    """The findings of a recording that ends, of a program that goes on."""
    trace = tmp_path / "hanging.out"
    env = {"GOTRACE_DURATION": "1.5", **proc.traced_env(trace)}
    child = proc.spawn(argv, env=env, stderr=subprocess.PIPE, text=True)
    assert "gotrace:" in child.stderr.readline()  # that the recording has ended
    proc.kill_group(child)
    return findings(trace)


@pytest.mark.measured
def test_lost_wakeup(tmp_path):
    """The main thread waits for a signal that came before it waited; or for one that is yet to come."""
    found = hanging(tmp_path, [PROGRAMS / "incidents", "lost"])
    assert "lost_wakeup" in found and "deadlock" not in found, found
    assert re.search("waits for all_done until the end.*\n.* finish ", found["lost_wakeup"]["text"]), found
    assert "lost_wakeup" not in hanging(tmp_path, [PROGRAMS / "faults", "no_lost_wakeup"])


@pytest.mark.measured
def test_deadlock(tmp_path):
    found = hanging(tmp_path, [PROGRAMS / "incidents", "deadlock"])
    assert "deadlock" in found and "lost_wakeup" not in found, found


# --- sums


def check(report):
    """The path is as long as the interval, to the ns, and replays end."""
    rows = report["path"]["rows"]
    assert report["path"]["ns"] == report["to_ns"] - report["from_ns"] == sum(row["ns"] for row in rows)
    assert all(row["count"] and row["longest_ns"] <= row["ns"] for row in rows)
    assert all(report["from_ns"] <= row["longest_at_ns"] < report["to_ns"] for row in rows)
    replay = report["replay"]
    length = replay["to_ns"] - replay["from_ns"]
    assert not replay["sound"] or abs(replay["unchanged_ns"] - length) <= 0.1 * length + 1, replay
    for band in ["running", "runnable", "calls", "locks", "waiting"]:
        threads = report["parallelism"][band]["threads"]
        assert len(threads) == report["parallelism"]["columns"]
        assert abs(sum(threads) / len(threads) - report["parallelism"][band]["average"]) < 0.01


@pytest.mark.measured
@formats
@pytest.mark.parametrize("program", ["truth", "rounds", "incidents"])
def test_path_is_the_interval(traced, format, program):
    argv = [PROGRAMS / program, *(["convoy"] if program == "incidents" else [])]
    result = traced(argv, env={"GOTRACE_FORMAT": format}).ok()
    check(why(result.trace))


@formats
def test_path_of_any_schedule(tmp_path, format):
    """Schedules of test/fuzz/schedules.c, with clocks that disagree, superfluous wake-ups and lost threads."""
    proc.run([ROOT / "build/test/fuzz/schedules", format, 1, 20, tmp_path], timeout=60).ok()
    traces = list(tmp_path.rglob("*.trace"))
    assert len(traces) == 20
    for trace in traces:
        result = proc.run([GOTRACE, "why", "--json", trace])
        assert proc.run([GOTRACE, "why", trace]).returncode == result.returncode
        if result.returncode == 0:
            check(json.loads(result.stdout))
        else:
            assert result.returncode == 1 and "nothing is recorded" in result.stderr, result


@pytest.mark.measured
@pytest.mark.parametrize("env", [{"GOTRACE_SCHED": "on"}, {"GOTRACE_CPU_HZ": "500"}, {"GOTRACE_RING": "64M"}, {"GOTRACE_DELAY": "0.05"}])
def test_path_of_other_recordings(traced, env):
    for scenario in ["turns", "nested", "serial"]:
        check(why(traced([PROGRAMS / "whys", scenario], env=env).ok().trace))


@pytest.mark.measured
def test_part_of_a_run(traced):
    trace = traced([PROGRAMS / "whys", "stages"]).ok().trace
    report = why(trace, "--from=50ms", "--to=0.1")
    assert (report["from_ns"], report["to_ns"]) == (50_000_000, 100_000_000)
    check(report)
    assert "50.00ms from 50.00ms on, of " in page(trace, "--from=50ms", "--to=0.1")


@pytest.mark.measured
def test_path_by_samples(traced):
    """What runs is known by the samples in it."""
    report = why(traced([PROGRAMS / "whys", "serial"], env={"GOTRACE_CPU_HZ": "1000"}).ok().trace)
    running = [row for row in report["path"]["rows"] if row["kind"] == "running"]
    assert max(running, key=lambda row: row["ns"])["function"] in {"now", "prepare", "clock_gettime", "__vdso_clock_gettime"} or (
        running[0]["function"].startswith("[vdso]")
    ), running[:3]


@pytest.mark.measured
def test_tasks(traced):
    """Of annotated tasks: the usual ones and the slow ones, each as long as its parts."""
    trace = traced([PROGRAMS / "annotations"]).ok().trace
    report = why(trace, "--task=request")
    assert report["times"] == 5 and report["p50_ns"] <= report["p99_ns"] <= report["most_ns"]
    for which in ["usual", "slow"]:
        assert report[which]["ns"] == sum(row["ns"] for row in report[which]["rows"])
        assert report[which]["ns"] >= report[f"{which}_times"] * 1000
    assert report["slow"]["ns"] == report["most_ns"] * report["slow_times"]  # one of five
    assert 'task "request", 5 times: p50 ' in page(trace, "--task=request")
    error = proc.run([GOTRACE, "why", "--task=no such", trace])
    assert error.returncode == 1 and error.stderr.endswith("no task called no such begins and ends in it; there are: request, query\n"), error


# --- what it is about


def longest_sleep(report):
    """What the program waits for most: how long it then takes to end is no matter."""
    return next(row for row in report["path"]["rows"] if row["kind"] == "sleep")


@pytest.mark.measured
def test_places(traced):
    """--frames, --skip and --wide mean what they mean for top."""
    trace = traced([PROGRAMS / "whys", "journal"]).ok().trace
    first = longest_sleep(why(trace))
    assert first["function"] == "write_journal"
    for options in [["--frames=2"], ["--frames=3", "--wide"]]:
        row = longest_sleep(why(trace, *options))
        assert row["function"] == "write_journal" and row["ns"] == first["ns"]
        assert re.search(r"<- write_journal \(whys.c:\d+\) < journal_worker \(whys.c:\d+\), holding", row["name"])
    report = why(trace, "--skip=^write_journal$")
    check(report)
    assert longest_sleep(report)["function"] == "journal_worker" and longest_sleep(report)["line"]
    taken = ", taken in write_journal,"  # the recording says that
    assert all("write_journal" not in f["text"].replace(taken, "") for f in report["findings"])


@pytest.mark.measured
def test_wrapper(traced):
    """Where one function waits for all, as long as each says, who calls it is a part of the place."""
    report = why(traced([PROGRAMS / "whys", "wrapped"]).ok().trace)
    check(report)
    called = {row["name"] for row in report["path"]["rows"] if row["function"] == "reach"}
    assert all(any(f" < {f} (" in name for name in called) for f in ["read_header", "read_body", "write_answer"]), called
    assert "reach (" in words(report["what_if"][0]) and " < write_answer (" in words(report["what_if"][0])


@pytest.mark.measured
def test_code_between_two_calls_of_one_function(traced):
    """prepare computes 40 times 5 ms, and sleeps after each. The compiler makes it a part of serial, its only caller, which computes nothing."""
    rows = {row["name"]: row["ns"] for row in why(traced([PROGRAMS / "whys", "serial"]).ok().trace)["path"]["rows"] if row["kind"] == "running"}
    computes = max(rows, key=rows.get)
    assert re.match(r"prepare \(whys\.c.* < serial .*or a caller$", computes) and abs(rows[computes] - 40 * 5e6) < 0.1 * 40 * 5e6, rows


@pytest.mark.measured
def test_code_between_two_calls_of_a_helper(traced):
    """A thread computes in a loop, in which it calls a function that only sleeps: no line says that it computes in that one.

    It runs for 40 times 5 ms, however long it had no CPU.
    """
    rows = {row["name"]: row["ns"] for row in why(traced([SINGLE / "why/computes"]).ok().trace)["path"]["rows"] if row["kind"] == "running"}
    computes = max(rows, key=rows.get)
    assert rows[computes] >= 0.9 * sum(rows.values()) and abs(sum(rows.values()) - 40 * 5e6) < 0.1 * 40 * 5e6, rows
    assert re.match(r"work |exchange .*or a caller$", computes), rows


@pytest.mark.measured
def test_thread(traced):
    """Up to the end of that one, which is not the run's."""
    trace = traced([PROGRAMS / "whys", "straggler"]).ok().trace
    report = why(trace, "--thread=^part$")
    check(report)
    assert longest_sleep(report)["thread"] == "part"
    assert longest_sleep(report)["function"] != "large_part" == longest_sleep(why(trace))["function"]
    assert "(part)\n" in page(trace, "--thread=^part$")
    error = proc.run([GOTRACE, "why", "--thread=^nobody$", trace])
    assert error.returncode == 1 and "no thread has the name, routine or number ^nobody$; gotrace info" in error.stderr


def test_short_names(traced, tmp_path):
    """Of threads and pools, as other reports have them; --wide shows all, and so does what is for programs."""
    trace = traced([proc.compile(SOURCES / "why/template.cc", tmp_path / "prog", "-std=c++11", compiler="g++")]).ok().trace
    (routine,) = {row["thread"] for row in why(trace)["path"]["rows"] if row["kind"] == "sleep"}
    assert re.fullmatch(r"worker<std::map<.*>\s*>::run\(void\*\)", routine)
    assert routine not in page(trace) and re.search(r"; (2 x |\d+ \()?worker<…>::run\(void\*\)\)?\n", page(trace))
    assert re.search(rf"; (2 x |\d+ \()?{re.escape(routine)}\)?\n", page(trace, "--wide"))


@pytest.mark.measured
def test_server(traced):
    """Whose main thread is only told to end: its work is what the others do between two waits for input."""
    trace = traced([PROGRAMS / "whys", "server"]).ok().trace
    for options in [[], ["--thread=serving"]]:
        report = why(trace, *options)
        rows = report["path"]["rows"]
        assert 60 <= report["pieces"] <= 90 and rows[0]["function"] == "handle_request"
        assert report["path"]["ns"] == sum(row["ns"] for row in rows) >= report["pieces"] * 3_000_000
    assert re.search(r"A server: .* pieces of work of 3 threads", page(trace))


# --- the page


@pytest.mark.measured
def test_page(traced):
    result = traced([PROGRAMS / "whys", "journal"]).ok()
    text = page(result.trace, LC_ALL="C.UTF-8")
    assert re.match(r".*: [\d.]+m?s, 5 threads, [\d.]+ running on average\n\n\* Lock held across I/O: journal_lock", text)
    order = ["* ", "Critical path", "What if", "Parallelism", "Further"]
    assert [text.index(part) for part in order] == sorted(text.index(part) for part in order)
    rows = [line for line in text.splitlines() if " |" in line]
    assert rows and all(len(row.split("|")[1]) == 64 for row in rows)
    assert re.search("[▁-█]", text) and not re.search("[▁-█]", page(result.trace, LC_ALL="C"))


@pytest.mark.measured
@pytest.mark.limit(120)
@pytest.mark.parametrize("program, name", [("whys", "journal"), ("whys", "nested"), ("whys", "gather"), ("causes", "herd"), ("causes", "sockets"), ("incidents", "convoy")])
def test_page_fits_a_screen(traced, program, name):
    """45 lines at most, however much there is to say; --wide says it all, and so does JSON."""
    trace = traced([PROGRAMS / program, name]).ok().trace
    report, text, wide = why(trace), page(trace), page(trace, "--wide")
    assert len(text.splitlines()) <= 45, text
    assert len(wide.splitlines()) >= len(text.splitlines())
    assert all(f["text"] in wide.replace(f"{change}\n  ", "") for f in report["findings"] for change in re.findall(r"^  (If .*)$", wide, re.M)[:1] or ["-"])
    for line in text.splitlines():
        assert len(line) <= 80 or re.search(r" <- | \(\S+:\d|^[ \d]\d +[\d.]+[mun]?s |^ *-[\d.]+% ", line) or str(trace) in line, line  # places are as long as they are
    rows = [line.split("; ")[0][36:] for line in text.splitlines() if re.match(r"[ \d]\d +[\d.]+[mun]?s ", line)]
    assert rows and len(set(rows)) == len(rows), rows
    check_replay(text, report["replay"])


def check_replay(text, replay):
    """The page says how long a replay without any change takes, why that differs, and what follows for its predictions."""
    said = re.search(r"^What if: a replay without any change takes (only )?([\d.]+) % of the real time(,\n  (because|but) .*\.)?$\n(.*)", text, re.M)
    off = abs(100 * replay["unchanged_ns"] / (replay["to_ns"] - replay["from_ns"]) - 100)
    assert abs(float(said[2]) - 100 * replay["unchanged"]) < 0.06 and bool(said[3]) != replay["exact"], text
    assert (said[5] == f"  Treat the times below as wrong by {int(off)} % or more.") == (5 <= off <= 30) or off > 30, text
    assert (said[5] == "  So no predictions are printed.") or off <= 30, text


@pytest.mark.measured
@pytest.mark.urgent
def test_how_sure_it_is(tmp_path):
    """The page says what the replay gives of the run as it was, and of each row what it is; it is rough below 95 %."""
    for name, basis in [("desks", "replayed"), ("sockets", "inferred")]:
        trace = cause(tmp_path, name)
        report = why(trace)
        replay = report["replay"]
        assert abs(replay["unchanged"] - replay["unchanged_ns"] / (replay["to_ns"] - replay["from_ns"])) < 0.001
        assert replay["exact"] and abs(replay["unchanged"] - 1) <= 0.05, replay
        text = page(trace, "--wide")  # all rows: the other page has as many as fit a screen
        check_replay(text, replay)
        assert report["what_if"][0]["basis"] == basis, report["what_if"]  # who writes to a socket is inferred, who signals a condition is not
        rows = re.findall(r"^ +(-[\d.]+)% +\S+  (\w+) ", text, re.M)
        assert rows and [basis for _, basis in rows] == [row["basis"] for row in report["what_if"]], text
        assert all(abs(float(gain) + 100 * row["gain"]) < 0.06 for (gain, _), row in zip(rows, report["what_if"])), (rows, report["what_if"])


@pytest.mark.measured
@pytest.mark.urgent
def test_rare_and_long(tmp_path):
    """One of fifty waits of a place takes 200 ms and the others 2 ms: the row says so, with what the program knows."""
    trace = proc.traced([SINGLE / "why/one_of_fifty"], tmp_path / "t.out").ok().trace
    row = longest_sleep(why(trace))
    assert row["count"] == 50 and 2e6 <= row["p50_ns"] < 10e6 and 200e6 <= row["longest_ns"] < 300e6, row
    assert re.search(r"^ +rare and long: once 2\d\d\.\dms, median [2-9]\.\d+ms$", page(trace), re.M), page(trace)


@pytest.mark.parametrize(
    "argv, status",
    [(["--help"], 0), ([], 2), (["--from=x", "t"], 2), (["--bad", "t"], 2), (["/does/not/exist"], 1), (["--from=1d", "t"], 2), (["--frames=0", "t"], 2), (["--skip=(", "t"], 2)],
)
def test_usage(argv, status):
    assert proc.run([GOTRACE, "why", *argv]).returncode == status


def test_nothing_recorded_there(traced):
    trace = traced([PROGRAMS / "whys", "settling"]).ok().trace
    result = proc.run([GOTRACE, "why", "--from=5m", trace])
    assert result.returncode == 1 and re.search(r": --from=5m is after its end: it lasts \S+, and 5m is 300\.0s\n$", result.stderr)
    result = proc.run([GOTRACE, "why", "--task=x", trace])
    said = f"no task is annotated in it (gotrace_annotations(3)); gotrace why {trace} is about the whole run"
    assert (result.returncode, result.stderr) == (1, f"gotrace: {trace}: {said}\n")


def test_cut_file(traced, tmp_path):
    """Where a file ends in the middle there are waits that nobody ended."""
    whole = traced([PROGRAMS / "whys", "turns"], env={"GOTRACE_FORMAT": "go1.21"}).ok().trace.read_bytes()
    for i in range(1, 8):
        part = tmp_path / "part.out"
        part.write_bytes(whole[: len(whole) * i // 8])
        result = proc.run([GOTRACE, "why", "--json", part])
        if result.returncode == 0:
            check(json.loads(result.stdout))
        else:
            assert re.search("nothing is recorded|damaged|not a Go", result.stderr), result


@pytest.mark.measured
def test_threads_of_a_runtime_are_no_pool(traced):
    """CPython starts all threads with one routine. A producer and its consumers are not equal threads that get in each other's way."""
    trace = traced(["/usr/bin/python3", SOURCES / "why/shop.py"]).ok().trace
    shown = proc.run([GOTRACE, "why", trace]).ok().stdout
    assert re.search(r"^Limited by clock_nanosleep <- produce \(shop.py:19\)", shown, re.M), shown
    assert "Serialised" not in shown and "Imbalance" not in shown, shown


@pytest.mark.measured
@pytest.mark.limit(120)
def test_a_lock_of_python_held_while_another_thread_is_asked(traced):
    """Four threads share the interpreter's lock: the path stays with who waits for it. The thread that answers rests before, and the only CPU time is that of the prices."""
    result = traced(["/usr/bin/python3", SOURCES / "whys/rates.py"]).ok()
    report, (asked, took) = why(result.trace), map(int, result.stdout.split())
    network, no_cpu = (sum(row["ns"] for row in report["path"]["rows"] if (row["kind"], row["what"]) == kind) for kind in [("network", "recv"), ("sched", "")])
    assert abs(network - asked) < 0.08 * asked and no_cpu < 0.2 * took, (network, no_cpu, asked, took)
    assert not any(row["function"] == "rate_server" and row["kind"] == "network" for row in report["path"]["rows"]), report["path"]["rows"]
    (lock,) = [f["text"] for f in report["findings"] if f["finding"] == "lock_held_across_io"]
    assert re.match(r"Lock held across I/O: \S+, taken in get_rate, .*\n?.*mostly in\n  recv <- fetch_rate \(rates.py:27\)", lock), lock


@pytest.mark.measured
def test_threads_that_compute_without_the_lock_of_python_had_no_cpu(traced):
    """They take the lock only between two buffers: most of their CPU time is not that of the one thread that has the lock."""
    result = traced(["/usr/bin/python3", SOURCES / "whys/digests.py"]).ok()
    ran, no_cpu = (sum(row["ns"] for row in why(result.trace)["path"]["rows"] if (row["function"], row["kind"]) == ("digest_part", kind)) for kind in ["running", "sched"])
    assert abs(100 * no_cpu / (ran + no_cpu) - int(result.stdout)) < 8, (ran, no_cpu, result.stdout)


@pytest.mark.measured
def test_a_thread_more_does_not_help_a_pool_that_computes_in_python(traced):
    report = why(traced(["/usr/bin/python3", SOURCES / "whys/crunch.py"]).ok().trace)
    assert "gil" in {f["finding"] for f in report["findings"]}, report["findings"]
    assert not any(change["change"] == "more" for change in report["what_if"]), report["what_if"]


@pytest.mark.measured
@pytest.mark.limit(120)
def test_a_timer_of_python_beside_a_computation(traced):
    """Who sleeps until a time, and then waits for the interpreter's lock, held up nobody: the path goes to the thread that computes. Only the last sleep of 100 ms is waited for."""
    path = why(traced(["/usr/bin/python3", SOURCES / "whys/poller.py"]).ok().trace)["path"]
    slept = sum(row["ns"] for row in path["rows"] if row["function"] == "poll" and row["kind"] == "sleep")
    assert slept < 120_000_000 and path["ns"] > 550_000_000, path["rows"]
