"""Holders of locks that others wait for: owners, hold times, missed wake-ups, deadlocks."""

import collections
import errno
import json
import os
import re
import shutil
import signal

import pytest

from lib import LIBRARY, PROGRAMS, SINGLE, SOURCES, gotools, proc
from lib.reports import GOTRACE, ns_of, report
from lib.spans import check_readers

LOGS = [format for format in gotools.FORMATS if format not in ("go1.5", "go1.7", "go1.8", "go1.9", "go1.10")]


def logs(trace, *kinds):
    """(thread, kind, message) of the logs of these kinds, in their order."""
    return [
        (event.m, event.fields["Category"], event.fields["Message"])
        for event in gotools.parse(trace)
        if event.kind == "Log" and event.fields["Task"] == "0" and event.fields["Category"].startswith(kinds)
    ]


def check_holds(trace):
    """A lock has one holder at a time."""
    holds = collections.defaultdict(list)
    for event in gotools.parse(trace):
        if event.kind == "Log" and event.fields["Task"] == "0" and event.fields["Category"].startswith("held ") and event.fields["Category"] != "held by":
            lock = event.fields["Category"].removeprefix("held ").split(", taken in ")[0]
            ns = ns_of(re.match(r"[\d.]+\w+", event.fields["Message"].replace("µ", "u"))[0])
            holds[lock].append((event.time - ns, event.time))
    for lock, its in holds.items():
        its.sort()
        for (_, until), (since, _) in zip(its, its[1:]):
            assert since >= until - 50_000 - 0.02 * ns_of("20ms"), (lock, since, until)


def thread_of(trace):
    """Goroutine → thread."""
    return {event.g: event.m for event in gotools.parse(trace) if event.g and event.m}


@pytest.mark.measured
@pytest.mark.limit(180)
@pytest.mark.parametrize("sched", ["off", "on"])
@pytest.mark.parametrize("format", gotools.some("go1.11", of=["go1.11", "go1.23", "go1.26"]))
def test_owners(tmp_path, format, sched):
    """Of each wait, on a machine that has no CPU to spare: who held that lock when it began."""
    rounds = 500 if format == "go1.23" else 200
    env = {"GOTRACE_FORMAT": format, "GOTRACE_SCHED": sched, "GOTRACE_SYSCALLS": "none", "GOTRACE_HEAP": "off"}
    result = proc.traced([PROGRAMS / "locks", str(rounds)], tmp_path / "t.out", env=env, timeout=120).ok()
    assert "nothing lost" in result.stderr, result.stderr
    threads = thread_of(result.trace)
    told = collections.defaultdict(list)  # (waiter, lock) → who held it, each time
    for waiter, _, message in logs(result.trace, "held by"):
        g, name, lock = re.fullmatch(r"G(\d+) (\w+), (.+)", message).groups()
        assert name.startswith("player"), message
        told[waiter, lock].append(threads[int(g)])
    known = collections.defaultdict(list)
    for lock, holder, waiter, _ in map(str.split, result.stdout.splitlines()):
        known[int(waiter), lock].append(int(holder))
    assert sum(map(len, known.values())) == rounds
    # A waiter that had no CPU for as long as the lock was held has not waited.
    missed = 0
    for key, holders in known.items():
        rest = iter(holders)
        assert all(holder in rest for holder in told[key]), (key, holders, told[key])
        missed += len(holders) - len(told[key])
    assert missed < rounds / 10, missed


@pytest.mark.measured
@pytest.mark.parametrize("format", ["go1.11", "go1.23"])
def test_hold_times(tmp_path, format):
    """How long they were held: each within 5 %, from where, and in what."""
    env = {"GOTRACE_FORMAT": format, "GOTRACE_SYSCALLS": "none", "GOTRACE_HEAP": "off", "GOTRACE_HOLD_MIN": "100us"}
    result = proc.traced([PROGRAMS / "locks", "400"], tmp_path / "t.out", env=env, timeout=120).ok()
    told, known = collections.defaultdict(list), collections.defaultdict(list)
    for holder, kind, message in logs(result.trace, "held "):
        if held := re.fullmatch(r"held (.+), taken in (\w+)", kind):
            time, _, what = re.fullmatch(r"([\d.]+\w+)(, of it [\d.]+\w+ in (\w+))?", message.replace("µ", "u")).groups()
            assert held[2] in ("lock", "lock_twice", "try", "lock_timed", "lock_both", "wrlock", "rdlock", "lock_c11", "take_over", "try_write", "try_c11"), held
            if what:
                told[holder, held[1]].append(ns_of(time))
                assert what == "usleep", message
    for lock, holder, _, ns in map(str.split, result.stdout.splitlines()):
        known[int(holder), lock].append(int(ns))
    found = 0
    for key, times in known.items():
        rest = iter(times)  # the first of each was begun before anybody had waited
        for ns in told[key]:
            assert any(abs(truth - ns) < 0.05 * truth + 20_000 for truth in rest), (key, times, told[key])
            found += 1
    assert found > 200 and {"timed", "tried", "c11_tried"} <= {lock for _, lock in told}, (found, told)
    check_holds(result.trace)


def tokens(tmp_path, way, rounds, format="go1.23"):
    """Of the semaphore `token`: (waiter, holder) of each wait whose holder is named, and (holder, ns) of each hold."""
    env = {"GOTRACE_FORMAT": format, "GOTRACE_SYSCALLS": "none", "GOTRACE_HEAP": "off", "GOTRACE_HOLD_MIN": "100us"}
    result = proc.traced([PROGRAMS / "tokens", way, str(rounds)], tmp_path / "t.out", env=env, timeout=60).ok()
    threads = thread_of(result.trace)
    waits = [(m, threads[int(message.split()[0][1:])]) for m, _, message in logs(result.trace, "held by") if message.startswith("G") and message.endswith(", token")]
    holds = [(m, ns_of(message.replace("µ", "u").split(",")[0].split()[0])) for m, kind, message in logs(result.trace, "held token")]
    return waits, holds


@pytest.mark.measured
@pytest.mark.parametrize("format", gotools.some("go1.11", of=["go1.11", "go1.23"]))
@pytest.mark.parametrize("way", ["lock", "tried"])
def test_a_semaphore_as_lock(tmp_path, way, format):
    """Each wait names the other thread as holder, and each hold has its length; but for the first ones, which show that it is
    a lock. A thread that has no CPU for longer than the other one holds the lock does not wait."""
    rounds = 100
    waits, holds = tokens(tmp_path, way, rounds, format)
    slept = [e for e in gotools.parse(tmp_path / "t.out") if e.is_go("Running", "Waiting") and e.stack[0].func == "sem_wait"]
    assert len(slept) >= len(waits) > max(0.9 * len(slept) - 20, rounds / 2) and len(holds) > rounds, (len(waits), len(slept), len(holds))
    assert len({waiter for waiter, _ in waits}) == 2 and all(waiter != holder for waiter, holder in waits), waits
    assert all(0.95e6 < ns for _, ns in holds) and sorted(ns for _, ns in holds)[len(holds) // 2] < 1.5e6, holds


@pytest.mark.measured
@pytest.mark.parametrize("way", ["queue", "slots", "hog", "baton", "alarm"])
def test_a_semaphore_that_is_no_lock(tmp_path, way):
    """The thread that took a token last holds nothing."""
    assert tokens(tmp_path, way, 50) == ([], [])


@pytest.mark.measured
def test_a_semaphore_where_a_lock_was(tmp_path):
    """A new semaphore at the address of an old one begins without a holder."""
    waits, holds = tokens(tmp_path, "again", 50)
    lock, _ = tokens(tmp_path, "lock", 50)
    assert len({thread for pair in waits for thread in pair} | {thread for thread, _ in holds}) == 2 and len(lock) > 25, (waits, holds)


def test_a_lent_token_is_no_deadlock(tmp_path):
    """Another thread may post the token that a waiting thread took itself."""
    result = proc.traced([PROGRAMS / "tokens", "lent", "50"], tmp_path / "t.out", env={"GOTRACE_HANG": "500ms"}, timeout=60).ok()
    assert "DEADLOCK" not in result.stderr, result


@pytest.mark.measured
@pytest.mark.parametrize("format", gotools.some(of=["go1.11", "go1.21", "go1.23", "go1.26"]))
def test_holds_as_tasks(tmp_path, format):
    """What Go's viewers have spans and a histogram for: on the holder, for the hold time."""
    env = {"GOTRACE_FORMAT": format, "GOTRACE_SYSCALLS": "none", "GOTRACE_HEAP": "off", "GOTRACE_HOLD_MIN": "100us"}
    result = proc.traced([PROGRAMS / "locks", "200"], tmp_path / "t.out", env=env, timeout=120).ok()
    spans = tmp_path / "spans.out"
    proc.run([GOTRACE, "convert", "--holds", result.trace, "-o", spans]).ok()
    check_readers(format, spans)
    told = [(holder, re.fullmatch("held (.+), taken in .*|held (.+)", kind), ns_of(message.replace("µ", "u").split(",")[0].split()[0]))
            for holder, kind, message in logs(result.trace, "held ") if kind != "held by"]  # fmt: skip
    query = "SELECT tid, tasks.name, tasks.ns FROM tasks JOIN threads ON threads.id = thread_id WHERE tasks.ended AND ender_id = thread_id"
    spans_of = collections.defaultdict(list)
    for tid, name, ns in (row.split(",") for row in proc.run([GOTRACE, "sql", "--csv", spans, query]).ok().stdout.splitlines()[1:]):
        spans_of[int(tid), name].append(int(ns))
    assert sum(map(len, spans_of.values())) == len(told) > 100
    wrong = [(tid, kind[1], ns) for tid, kind, ns in told  # kind[2]: it was held for that long or longer
             if kind[1] and not any(abs(span - ns) < 0.02 * ns + 6_000 for span in spans_of[tid, f"hold {kind[1]}"])]  # fmt: skip
    assert len(wrong) < len(told) / 20, wrong
    assert "hold plain" in gotools.pages(spans, go=max(gotools.readers_of(format).items())[1])["/usertasks"]


@pytest.mark.measured
def test_long_holds_among_brief_ones(tmp_path):
    """Which are not looked at: it is known since when somebody waited, or a call lasted, and no longer."""
    program = SINGLE / "locks/brief"
    result = proc.traced([program], tmp_path / "t.out").ok()
    known = [tuple(map(int, line.split())) for line in result.stdout.splitlines()]
    pattern = r"([\d.]+\w+)( or longer)?(, of it .*)?"
    found = [(kind, re.fullmatch(pattern, message.replace("µ", "u"))) for _, kind, message in logs(result.trace, "held lock")]
    told = [hold for _, hold in found if ns_of(hold[1]) > 5e6]  # else a thread lost its CPU
    assert len(told) == len(known) == 20 and found[-1][0] == "held lock, taken in main", found
    assert any(hold[2] for hold in told), "each was looked at"
    for (truth, waited), hold in zip(known, told):
        ns = ns_of(hold[1])
        assert ns < 1.01 * truth + 20_000 and ns > 0.95 * (waited if hold[2] else truth) - 20_000, (truth, waited, hold)


@pytest.mark.measured
def test_a_long_wait_keeps_a_lock_hot(tmp_path):
    """Holds of 10 ms by a thread that has waited for 100 ms are logged, though no thread waits for them."""
    trace = proc.traced([SINGLE / "locks/long_wait"], tmp_path / "t.out").ok().trace
    told = [ns_of(message.split(",")[0]) for _, kind, message in logs(trace, "held lock, taken in hold")]
    assert len(told) == 6 and min(told) >= 9.9e6, told
    check_holds(trace)


def test_holds_that_outrun_a_waiter_are_logged(tmp_path):
    """Each hold of 10 ms that began before a woken waiter ran, by a thread whose holds were brief, and whose end lets that waiter in."""
    result = proc.traced([SINGLE / "locks/outrun"], tmp_path / "t.out").ok()
    told = sorted(ns_of(message.split(",")[0]) for _, _, message in logs(result.trace, "held cache_lock, taken in commit"))
    outrun = sorted(map(int, result.stdout.split()))
    # No hold is shorter than the program's clock says. Four digits tell how long it was.
    assert len(outrun) == 10 <= len(told) and all(0.999 * known <= ns for known, ns in zip(outrun, told[-10:])), (outrun, told)
    check_holds(result.trace)


def test_a_mutex_that_is_not_recoverable(tmp_path):
    """Each thread that locks it gets EOWNERDEAD, each time; glibc's trylock, which comes first here, keeps it."""
    program = SINGLE / "locks/not_recoverable"
    bare = proc.run([program]).ok().stdout
    assert bare.split() == [str(errno.EOWNERDEAD)] + 6 * [str(errno.ENOTRECOVERABLE)]
    assert proc.traced([program], tmp_path / "t.out").ok().stdout == bare


@pytest.mark.measured
@pytest.mark.parametrize("format", ["go1.11", "go1.23"])
def test_signals_in_vain(tmp_path, format):
    program = SINGLE / "locks/signals"
    result = proc.traced([program], tmp_path / "t.out", env={"GOTRACE_FORMAT": format}).ok()
    assert int(result.stdout) == 20, result
    (row,) = report(result.trace, "top", "--wakeups")["variables"]
    expected = {"waits": 70, "signalled": 50, "by_itself": 20, "waiting": 0, "signals": 122, "vain": 72, "variable": "news"}
    assert {name: row[name] for name in expected} == expected
    signals = {re.sub(r"\d+\)$", "N)", it["place"]): (it["signals"], it["vain"]) for it in row["signallers"]}
    assert signals == {"pthread_cond_signal tell (signals.c:N)": (117, 67), "pthread_cond_broadcast main (signals.c:N)": (5, 5)}


@pytest.mark.measured
@pytest.mark.parametrize("format", ["go1.11", "go1.23"])
def test_held_across_a_slow_call(tmp_path, format):
    """One command names the cause: who held it, doing what."""
    program = SINGLE / "locks/journal"
    trace = proc.traced([program], tmp_path / "t.out", env={"GOTRACE_FORMAT": format}).ok().trace
    for options, row in [
        (["--holders"], r"pthread_mutex_lock <- append \(journal.c:\d+\), journal_lock"),
        (["--by-lock"], r"[34] +\S+ +\S+  journal_lock"),
    ]:
        text = proc.run([GOTRACE, "top", *options, trace]).ok().stdout
        first = re.search(rf"^ *(\S+) +([\d.]+)% .*{row}\n +([\d.]+)%   \d+ committer \(committer\), by commit: read <- commit \(", text, re.M)
        assert first and float(first[2]) > 90 and float(first[3]) > 90, text


ENDLESS = ["mutex", "recursive", "adaptive", "inherit", "robust", "rwlock", "c11"]
DEADLOCKS = [("ring", kind, n) for kind, n in zip(ENDLESS * 2, [2, 3, 4, 5, 2, 3, 4, 5, 2, 2, 3, 2, 5, 4])]
JOINS = [("join", "mutex", 2), ("join", "rwlock", 2), ("readers", "rwlock", 2), ("readers", "rwlock", 5)]
DEADLOCKS += JOINS


@pytest.fixture(params=["trace", "recorder"])
def end(request):
    return request.param


@pytest.mark.parametrize("case", DEADLOCKS, ids=lambda case: "-".join(map(str, case)))
def test_deadlocks(tmp_path, case, end):
    """Told of on standard error, once, with stacks; and in what is recorded."""
    env = {"GOTRACE_HANG": "500ms"} | ({"GOTRACE_RING": "1M"} if end == "recorder" else {})
    trace, pipe = tmp_path / "t.out", proc.subprocess.PIPE
    argv = [PROGRAMS / "deadlocks", *map(str, case)]
    child = proc.spawn(argv, env=proc.traced_env(trace, env), stdout=pipe, stderr=pipe, text=True)
    lines = [child.stderr.readline()]
    assert lines == ["gotrace: DEADLOCK: for 500 ms threads have waited for each other:\n"]
    if end == "recorder":
        while "what led there" not in lines[-1]:
            lines.append(child.stderr.readline())
            assert lines[-1], lines
        assert sum("waits for" in line for line in lines) >= 2 and any("deadlocks.c:" in line for line in lines), lines
    else:
        proc.run([GOTRACE, "snapshot", child.pid]).ok()
    proc.stop(child)
    stuck = set(re.findall(r"^(\d+)$", child.stdout.read(), re.M))
    text = proc.run([GOTRACE, "top", trace]).ok().stdout
    block = re.search(r"^DEADLOCK: these threads wait for each other, .*:\n((?: .*\n)+)", text, re.M)[1]
    threads = set(re.findall(r"thread (\d+)", block))
    assert threads & stuck and (case[0] != "ring" or threads == stuck), (stuck, text)
    assert text.count("DEADLOCK") == 1 and "DEADLOCK" in proc.run([GOTRACE, "info", trace]).ok().stdout


@pytest.mark.measured
@pytest.mark.parametrize("case", JOINS[:3], ids=lambda case: case[0] + "-" + case[1])
@pytest.mark.urgent
def test_deadlock_of_the_thread_that_a_deadly_signal_finds(tmp_path, case):
    """On one CPU it completes the recording itself, and so does not sleep when threads are asked whether they wait."""
    trace = tmp_path / "t.out"
    argv = ["taskset", "-c", str(min(os.sched_getaffinity(0))), PROGRAMS / "deadlocks", *map(str, case)]
    child = proc.spawn(argv, env=proc.traced_env(trace, {"GOTRACE_HANG": "500ms"}), stdout=proc.subprocess.DEVNULL, stderr=proc.subprocess.PIPE, text=True)
    assert "DEADLOCK" in child.stderr.readline()
    assert proc.stop(child) == -signal.SIGTERM
    assert "DEADLOCK" in proc.run([GOTRACE, "info", trace]).ok().stdout


@pytest.mark.parametrize("kind", ["mutex", "adaptive"])
def test_holder_that_has_ended(tmp_path, kind):
    trace = tmp_path / "t.out"
    child = proc.spawn([PROGRAMS / "deadlocks", "ended", kind], env=proc.traced_env(trace, {"GOTRACE_HANG": "500ms"}),
                       stderr=proc.subprocess.PIPE, text=True)  # fmt: skip
    assert child.stderr.readline() == "gotrace: DEADLOCK: for 500 ms a thread has waited for one that has ended:\n"
    proc.run([GOTRACE, "snapshot", child.pid]).ok()
    proc.stop(child)
    text = proc.run([GOTRACE, "top", trace]).ok().stdout
    assert re.search(r"DEADLOCK: a thread waits for a lock whose holder has ended:\n.* locks, held by thread \d+, which has ended\n", text), text


def test_holder_that_was_the_first_thread(tmp_path):
    """It stays as a zombie, and with it the program's descriptors are gone from where they are looked for."""
    program = SINGLE / "locks/first_thread_left"
    child = proc.spawn([program], env=proc.traced_env(tmp_path / "t.out", {"GOTRACE_HANG": "500ms"}), stderr=proc.subprocess.PIPE, text=True)
    told = child.stderr.readline(), child.stderr.readline()
    proc.kill_group(child)
    assert "a thread has waited for one that has ended" in told[0], told
    assert f"left, which thread {child.pid} first_thread_le holds, and that has ended" in told[1], told


@pytest.mark.measured
def test_holder_of_before_a_fork(tmp_path):
    """The mutex says the parent's number of the thread that has it in the child, too."""
    program = SINGLE / "locks/before_a_fork"
    result = proc.traced([program], tmp_path / "t.out", env={"GOTRACE_HANG": "1ms"}).ok()
    pid = int(result.stdout)
    assert "DEADLOCK" not in result.stderr, result
    text = proc.run([GOTRACE, "top", "--holders", f"{result.trace}.{pid}"]).ok().stdout
    assert re.search(rf"^ +(9[5-9]|100)\.\d%   {pid} .*usleep <- main", text, re.M), text


@pytest.mark.measured
def test_who_had_it_before(tmp_path):
    """Who was woken, and found that another one had been faster, does not wait for who had the mutex then."""
    program = SINGLE / "locks/barger"
    trace = proc.traced([program], tmp_path / "t.out").ok().trace
    text = proc.run([GOTRACE, "top", "--holders", trace]).ok().stdout
    blamed = sum(float(share) for share in re.findall(r"^ +([\d.]+)%   .*<- innocent", text, re.M))
    assert blamed < 5 and "<- guilty" in text, text


@pytest.mark.measured
def test_one_holder_is_one_row(tmp_path):
    """The function that locked first, before any thread waited, is the one that did the same later."""
    trace = proc.traced([SINGLE / "locks/again"], tmp_path / "t.out").ok().trace
    (row,) = json.loads(proc.run([GOTRACE, "top", "--holders", "--json", trace]).ok().stdout)["waits"]
    asleep = [it["taken_in"] for it in row["holders"] if it["at"] and it["at"]["function"] == "take"]
    assert row["count"] == 6 and asleep == ["take"], row


@pytest.mark.limit(120)
def test_what_is_merely_slow(tmp_path):
    """No deadlock is claimed where there is none: locks held long, waits with a timeout, idle threads."""
    running = {}
    for case in ["slow", "mutex", "9"], ["ring", "timed", "3"], ["crowd", "mutex", "20"]:
        trace = tmp_path / f"{case[0]}.out"
        running[trace] = proc.spawn([PROGRAMS / "deadlocks", *case], env=proc.traced_env(trace, {"GOTRACE_HANG": "1ms"}),
                                    stdout=proc.subprocess.PIPE, stderr=proc.subprocess.PIPE, text=True)  # fmt: skip
    for child in running.values():
        assert child.stdout.readline() == "none\n"
    for _ in range(20):
        for trace, child in running.items():
            proc.run([GOTRACE, "snapshot", child.pid])
            if trace.exists():
                assert "DEADLOCK" not in proc.run([GOTRACE, "info", trace]).ok().stdout, trace
    proc.time.sleep(1.5)  # nothing may be said meanwhile: the library looks for deadlocks once a second
    for trace, child in running.items():
        proc.stop(child)
        assert "DEADLOCK" not in child.stderr.read(), trace


@pytest.mark.measured
@pytest.mark.parametrize("format", gotools.some(of=LOGS))
def test_every_reader(tmp_path, format):
    """Takes what stands beside waits."""
    trace = proc.traced([PROGRAMS / "locks", "40"], tmp_path / "t.out", env={"GOTRACE_FORMAT": format}).ok().trace
    for go in gotools.readers_of(format).values():
        gotools.check(trace, go=go)
    assert len(logs(trace, "held by")) > 20 and len(logs(trace, "held ")) > 30


@pytest.mark.parametrize(("other", "own", "its"), [("b.o", " (a.c)", " (b.c)"), ("libb.so", "", " (libb.so)")], ids=["file", "library"])
def test_locks_of_one_name(tmp_path, other, own, its):
    """Two static ones in two files are two, each with its own holder; so are two condition variables; and names later are the same."""
    for name in "a.c", "b.c":
        shutil.copy(SOURCES / "locks/shared_name.c", tmp_path / name)
    how = ["-shared", "-fPIC"] if own == "" else ["-c"]
    flags = [f"-D{name}={value}" for name, value in {"WHO": '"b"', "BEGIN": "b_begin", "END": "b_end"}.items()]
    proc.compile(tmp_path / "b.c", tmp_path / other, *how, *flags, "-Wl,--build-id")
    flags = [f"-D{name}={value}" for name, value in {"MAIN": "1", "WHO": '"a"', "BEGIN": "a_begin", "END": "a_end"}.items()]
    program = proc.compile(tmp_path / "a.c", tmp_path / "a", *flags, tmp_path / other, f"-Wl,-rpath,{tmp_path}", "-Wl,--build-id")
    for names in "now", "later":
        trace = proc.traced([program], tmp_path / f"{names}.out", env={"GOTRACE_NAMES": names}).ok().trace
        by_lock = json.loads(proc.run([GOTRACE, "top", "--by-lock", "--json", trace]).ok().stdout)["locks"]
        holders = {row["lock"]: {it["thread"]["name"] for it in row["holders"] if it["thread"]} for row in by_lock}
        assert holders.get(f"lock{own}") == {"a-holder"} and holders.get(f"lock{its}") == {"b-holder"}, by_lock
        variables = json.loads(proc.run([GOTRACE, "top", "--wakeups", "--json", trace]).ok().stdout)["variables"]
        assert {(row["variable"], row["waits"]) for row in variables} == {(f"news{own}", 5), (f"news{its}", 5)}, variables
        assert all(row["signals"] for row in variables), variables


@pytest.mark.measured
@pytest.mark.parametrize("format", ["go1.11", "go1.23"])
def test_brief_waits_are_counted(tmp_path, format):
    """Every lock call finds its mutex taken once, and then free: no wait is an event, and each is counted."""
    library = proc.compile(SOURCES / "locks/taken_once.c", tmp_path / "taken_once.so", "-shared", "-fPIC")
    env = {"LD_PRELOAD": f"{LIBRARY} {library}", "GOTRACE_FORMAT": format}
    trace, other = (proc.traced([SINGLE / "locks/counted"], tmp_path / name, env=env).ok().trace for name in ("t.out", "o.out"))

    def counts(trace, *options):
        return {row["lock"]: (row["count"], row["briefs"]) for row in report(trace, "top", "--by-lock", *options)["locks"]}

    assert counts(trace) == {"cache_lock": (0, 2000), "other_lock": (0, 10)}
    rows = json.loads(proc.run([GOTRACE, "sql", "--json", trace, "SELECT name, briefs FROM locks ORDER BY briefs"]).ok().stdout)
    assert [(row["name"], row["briefs"]) for row in rows] == [("other_lock", 10), ("cache_lock", 2000)], rows
    assert re.search(r" cache_lock\n +2000 more waits, \S+ in all, too brief for events$", proc.run([GOTRACE, "top", "--by-lock", trace]).ok().stdout, re.M)
    for go in gotools.readers_of(format).values():
        gotools.check(trace, go=go)
    # A copy has them; of a part of the trace they are not known.
    for options, expected in [([], counts(trace)), (["--from=1us"], {}), (["--thread=run"], {})]:
        proc.run([GOTRACE, "cut", *options, "-o", tmp_path / "part.out", trace]).ok()
        assert counts(tmp_path / "part.out") == expected, options
    proc.run([GOTRACE, "merge", "-o", tmp_path / "merged.out", trace, other]).ok()
    assert sorted(n for _, n in counts(tmp_path / "merged.out").values()) == [10, 10, 2000, 2000]
    assert counts(trace, "--to=1s") == {}


@pytest.mark.measured
def test_holders_of_short_sections(tmp_path):
    """Of a lock that changes hands every microsecond, they are known, and most often the one that has it longer: two thirds of the time or more."""
    known = collections.Counter()
    for i in range(3):
        result = proc.traced([SINGLE / "locks/sections", "4", "1", "50000"], tmp_path / f"{i}.out").ok()
        _, looked_up, released, _ = map(int, result.stdout.split())
        assert looked_up > 2 * released, result
        (row,) = [row for row in report(result.trace, "top", "--by-lock")["locks"] if row["lock"] == "cache"]
        assert row["briefs"] < 2 * 4 * 50000 and row["brief_ns"] < 4 * result.seconds * 1e9, row
        for it in row["holders"]:
            known[it["at"]["function"] if it["at"] else it["name"]] += it["ns"]
    assert known[""] < 0.1 * known.total(), known
    assert known["look_up"] > known["release"] > 0, known


@pytest.mark.measured
def test_a_lock_without_a_name(tmp_path):
    """Is told by where it was waited for first; and one of C++ by the name that people know."""
    trace = proc.traced([PROGRAMS / "locks", "200"], tmp_path / "t.out").ok().trace
    text = proc.run([GOTRACE, "top", "--by-lock", trace]).ok().stdout
    assert re.search(r"  0x[0-9a-f]+, first waited for by pthread_mutex_lock <- lock \(locks.c:\d+\)$", text, re.M), text
    program = SINGLE / "locks/nameless"
    trace = proc.traced([program], tmp_path / "t.out").ok().trace
    told = {kind for _, kind, _ in logs(trace, "held ")}
    names = {message.split(", ", 1)[1] for _, _, message in logs(trace, "held by")}
    assert names == {"(anonymous namespace)::mine"}, names
    assert any(re.fullmatch(r"held \(anonymous namespace\)::mine, taken in .*bank::pay<int>", kind) for kind in told), told


def incident(fault, trace, **env):
    pipe = proc.subprocess.PIPE
    return proc.spawn([PROGRAMS / "incidents", fault], env=proc.traced_env(trace, env), stdout=pipe, stderr=pipe, text=True)


@pytest.mark.measured
@pytest.mark.urgent
def test_incident_of_a_convoy_and_of_a_slow_disk(tmp_path, slow_disk):
    """Those of gotrace-tutorial(7), each named by one command."""
    for fault, row in [("convoy", r"stats_lock\n +([\d.]+)%   worker, by count: running"), ("fsync", r"journal_lock\n +([\d.]+)%   .*append.*: fsync <- append \(")]:
        trace = tmp_path / f"{fault}.out"
        proc.traced([PROGRAMS / "incidents", fault], trace, env=slow_disk).ok()
        text = proc.run([GOTRACE, "top", "--holders", trace]).ok().stdout
        assert (found := re.search(row, text)) and float(found[1]) > 50, text


def test_incident_of_a_deadlock(tmp_path):
    child = incident("deadlock", tmp_path / "t.out", GOTRACE_HANG="500ms")
    assert "DEADLOCK" in child.stderr.readline()
    stacks = proc.run([GOTRACE, "stacks", child.pid])
    proc.stop(child)
    assert stacks.returncode == 3 and stacks.stdout.count("transfer (incidents.c:") >= 2, stacks
    assert re.search(r"waits for mutex accounts \(.*\), held by thread \d+ \(worker\)", stacks.stdout), stacks


@pytest.mark.measured
def test_incident_of_a_lost_wakeup(tmp_path):
    trace = tmp_path / "t.out"
    child = incident("lost", trace)
    row, text = None, ""
    while not row or row.groups() != ("2", "1", "0", "1", "2", "1"):
        assert proc.run([GOTRACE, "snapshot", child.pid]).returncode in (0, 1)
        text = proc.run([GOTRACE, "top", "--wakeups", trace]).stdout if trace.exists() else ""
        row = re.search(r"^ *(\d+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+)  all_done$", text, re.M)
        assert child.poll() is None, (text, child.stderr.read())
    proc.stop(child)
    assert re.search(r"^ +2 +1    pthread_cond_signal finish \(incidents.c:\d+\)$", text, re.M), text
