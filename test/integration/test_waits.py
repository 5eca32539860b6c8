"""The waits of test/prog/waits.c, one row each, which knows them, against what the Go tools read in the trace."""

import pytest

from lib import PROGRAMS, SINGLE, SOURCES, gotools, proc, truth

WAITS = PROGRAMS / "waits"


def run(traced, *rows):
    result = traced([WAITS, *rows]).ok()
    return result, gotools.parse(result.trace)


@pytest.fixture(scope="module")
def timed(tmp_path_factory):
    """One run of all rows that wait, for the tests of each: its result, and the events."""
    result = proc.traced([WAITS, *truth.rows("waits", "timed")], tmp_path_factory.mktemp("timed") / "t.out").ok()
    return result, gotools.parse(result.trace)


@pytest.mark.measured
@pytest.mark.parametrize("row", truth.rows("waits", "timed"))
def test_wait(timed, row):
    result, events = timed
    if row in truth.skipped(result):
        pytest.skip(truth.skipped(result)[row])
    expected = truth.by_row(result)[row]
    assert expected, str(result)
    truth.check(expected, events)


@pytest.mark.parametrize("row", truth.rows("waits", "quiet"))
def test_no_wait_no_event(traced, row):
    result, events = run(traced, row)
    # the thread is there nevertheless; the main thread writes the truth
    (born,) = [e.goid for e in events if e.is_go("NotExist", "Runnable")]
    assert not truth.slices(events)[born]


def test_same_results(traced):
    rows = truth.rows("waits", "timed", "quiet")
    bare = truth.results(proc.run([WAITS, *rows]).ok())
    assert len(bare) >= len(rows)
    assert truth.results(traced([WAITS, *rows]).ok()) == bare


@pytest.mark.measured
def test_profile_totals(traced):
    """A wait for another thread is in the profile for that, with its time, and in no other."""
    result = traced([WAITS]).ok()
    gotools.check_all(result.trace)
    expected = truth.truths(result)
    for go in gotools.readers():
        truth.check_profile(expected, gotools.pprof(result.trace, "sync", go=go), {"sync", "cond"})
    for kind in ("net", "syscall"):
        assert not {t.hook for t in expected} & set(gotools.pprof(result.trace, kind).leaf_ns())


def test_threads_of_c11(traced):
    """thrd_create is a creation like any other, with the routine that will run."""
    result, events = run(traced, "thrd_join")
    (joined,) = truth.truths(result)
    created = {e.goid: e.transition_stack[-1].func for e in events if e.is_go("NotExist", "Runnable")}
    assert created[truth.goroutines(events)[joined.waker]] == "ends_when_told"


@pytest.mark.parametrize(
    "row, leaves",
    [
        ("futex", {"futex wake"}),
        ("futex-bitset", {"futex wake"}),
        ("futex-wake_op", {"futex wake"}),
        ("futex-cmp_requeue", {"futex requeue", "futex wake"}),
        ("futex-pi", {"futex unlock"}),
        ("futex2", {"futex wake"}),
        ("futex2-old-wake", {"futex wake"}),
        ("futex2-requeue", {"futex requeue", "futex wake"}),
        ("futex-waitv", {"futex wake"}),
        ("futex-waitv-two", {"futex wake"}),
    ],
)
def test_futexes_are_called_what_they_are(traced, row, leaves):
    """Also where they are woken, by the main thread: not `syscall`, and not the one for the other."""
    result, events = run(traced, row)
    if row in truth.skipped(result):
        pytest.skip(truth.skipped(result)[row])
    waiting = {truth.goroutines(events)[t.waiter] for t in truth.truths(result)}
    woken = [e for e in events if e.is_go("Waiting", "Runnable") and e.goid in waiting]
    assert {e.stack[0].func for e in woken} == leaves


@pytest.mark.parametrize("how", ["jump", "cancel"])
def test_calls_of_futex_waitv_that_are_left(traced, how):
    """They leave nothing behind: the next one has its waker."""
    result = traced([SINGLE / "waits/left_calls", how])
    if result.returncode == 77:
        pytest.skip(result.stderr)
    events = gotools.parse(result.ok().trace)
    wakers = [[f.func for f in e.stack] for e in events if e.is_go("Waiting", "Runnable") and e.stack]
    assert [stack[0] for stack in wakers if "wake" in stack] == ["futex wake"], wakers


@pytest.mark.parametrize("call", ["sem_wait(&sem)", "sem_timedwait(&sem, &until)", "sem_clockwait(&sem, CLOCK_MONOTONIC, &until)"])
def test_who_is_to_be_cancelled_takes_no_token(traced, tmp_path, call):
    """Though there is one, and nothing to wait for: these are cancellation points or not, as libc has it."""
    program = proc.compile(SOURCES / "waits/cancelled.c", tmp_path / "cancelled", f"-DCALL={call}")
    said = proc.run([program]).ok().stdout
    assert said == "cancelled, 1 left\n" or "clockwait" in call
    assert traced([program]).ok().stdout == said


@pytest.mark.parametrize("format", gotools.some())
@pytest.mark.parametrize("end", ["snapshot", "exit"])
@pytest.mark.parametrize("way", ["cond", "sem"])
def test_sleeping_workers_are_not_runnable(tmp_path, format, way, end):
    """The kernel wakes other waiters than the library takes for woken. Once all sleep, no worker stands as runnable."""
    command = [SINGLE / "waits/slept_on", way, end]
    result = proc.traced(command, tmp_path / "t.out", env={"GOTRACE_FORMAT": format}).ok()
    state, sleeping = {}, None
    for e in gotools.parse(result.trace):
        if e.kind == "Log" and e.fields["Category"] == "phase":
            sleeping = e.g if e.fields["Message"] == "asleep" else None
        if e.goid is not None:
            state[e.goid] = e.new
        runnable = [g for g, now in state.items() if now == "Runnable" and g != sleeping]
        assert sleeping is None or not runnable, f"{runnable} at {e}"
    assert len(state) > 16


@pytest.mark.parametrize("format", gotools.some())
@pytest.mark.parametrize("way", ["timeout", "cancelled", "interrupted", "elsewhere", "held"])
def test_rightly_woken_waiters_keep_their_waker(tmp_path, format, way):
    """Another waiter returns without a wake-up, or the woken one sleeps for its mutex: its waker was no mistake."""
    command = [SINGLE / "waits/rightly_woken", way]
    events = gotools.parse(proc.traced(command, tmp_path / "t.out", env={"GOTRACE_FORMAT": format}).ok().trace)
    name = {e.g: e.fields["Message"] for e in events if e.kind == "Log" and e.fields["Category"] == "name"}
    woken = {"first": [], "second": []}
    for e in events:
        if e.is_go("Waiting", "Runnable") and name.get(e.goid) in woken:
            woken[name[e.goid]].append((name.get(e.g), truth.name(e.stack[0].func)))
    first, *then = woken["first"]
    assert first == ("main", "sem_post" if way in ("interrupted", "elsewhere") else "pthread_cond_signal")
    assert all(waker and call == "pthread_mutex_unlock" for waker, call in then), then
    assert way != "held" or woken["second"][0] == first


def test_a_mutex_that_was_given_up_is_not_kept(tmp_path):
    """The library knows it from a flag that many mutexes have in common."""
    events = gotools.parse(proc.traced([SINGLE / "waits/kept"], tmp_path / "t.out").ok().trace, stacks=False)
    logs = [(e.fields["Category"], e.fields["Message"]) for e in events if e.kind == "Log"]
    told = [logs[i + 1][0] for i, (category, _) in enumerate(logs[:-1]) if category == "kept"]
    assert told == ["waits for", "waits again for", "waits for"]
