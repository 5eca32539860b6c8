"""The calls of test/prog/calls.c, one row each, which knows them, against what the Go tools read in the trace."""

import functools

import pytest

from lib import LIBC, PROGRAMS, SINGLE, gotools, proc, truth
from lib.reports import waits

CALLS = PROGRAMS / "calls"
EVERYTHING = {"GOTRACE_SYSCALLS": "all", "GOTRACE_SYSCALL_MIN": "0"}
# other names of the same functions, and how many of those a program must have to test anything
VARIANTS = {"calls_fortify": ("_chk", 8), "calls_lfs": ("64", 12)}
UNENDING = {("calls_fortify", "read-cancelled")} if LIBC < 34 else set()  # __read_chk is not cancelled there (glibc 2.31)


@pytest.mark.parametrize("program", ["calls", "waits"])
def test_rows(program):
    """The program has the rows that were read in its source."""
    listed = [line.split() for line in proc.run([PROGRAMS / program, "--list"]).ok().stdout.splitlines()]
    for kind in "timed", "counted", "quiet", "special":
        assert truth.rows(program, kind) == [name for name, its in listed if its == kind]


def run(traced, *rows, env=None, program=CALLS):
    result = traced([program, *rows], env=env).ok()
    if rows and not set(rows) - set(truth.skipped(result)):
        pytest.skip(truth.skipped(result)[rows[0]])
    return truth.truths(result), gotools.parse(result.trace), result


def of_threads(expected, events):
    """All slices of the threads that these truths are about, with the truths' reasons."""
    g_of, found = truth.goroutines(events), truth.slices(events)
    return [s for thread in {t.waiter for t in expected} if thread in g_of for s in found[g_of[thread]]]


@pytest.fixture(scope="module")
def timed(tmp_path_factory):
    """One run of all rows that wait, for the tests of each: its result, and the events."""
    result = proc.traced([CALLS, *truth.rows("calls", "timed")], tmp_path_factory.mktemp("timed") / "t.out").ok()
    return result, gotools.parse(result.trace)


@pytest.mark.measured
@pytest.mark.parametrize("row", truth.rows("calls", "timed"))
def test_call(timed, row):
    result, events = timed
    if row in truth.skipped(result):
        pytest.skip(truth.skipped(result)[row])
    expected = truth.by_row(result)[row]
    assert expected, str(result)
    truth.check(expected, events)


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """One run of all rows that are counted, for the tests below: their truths by row, and the events."""
    trace = tmp_path_factory.mktemp("counted") / "t.out"
    result = proc.traced([CALLS, *truth.rows("calls", "counted")], trace, env=EVERYTHING).ok()
    return truth.by_row(result), gotools.parse(trace)


@pytest.mark.measured
@pytest.mark.parametrize("row", truth.rows("calls", "counted"))
def test_count_and_place(counted, row):
    """A call that does not wait is shown when everything is."""
    rows, events = counted
    assert len(rows[row]) == 3
    truth.check(rows[row], events)


@functools.cache
def bare_results(*kinds):
    results = truth.results(proc.run([CALLS, *truth.rows("calls", *kinds)]).ok())
    assert len(results) >= len(truth.rows("calls", *kinds))
    return results


@pytest.mark.parametrize("env", [{}, EVERYTHING], ids=["default", "everything"])
def test_same_results(traced, env):
    """What the calls return and errno; EINTR and SA_RESTART among them."""
    assert {"result read-interrupted 0 -1 4", "result read-restarted 0 4 0"} <= set(bare_results("timed"))
    for kind in ("timed", "counted", "quiet"):
        result = traced([CALLS, *truth.rows("calls", kind)], env=env).ok()
        assert truth.results(result) == bare_results(kind)


@pytest.mark.parametrize("env", [{}, EVERYTHING], ids=["default", "everything"])
@pytest.mark.parametrize("program, at_least", [("calls", 90), ("waits", 7)])
def test_cancellation(traced, program, at_least, env):
    """A thread that is cancelled in a call ends there, or waits on, as without the library."""
    argv = [PROGRAMS / program, "--cancel"]
    bare = truth.results(proc.run(argv).ok())
    assert len([line for line in bare if line.endswith(" cancelled")]) >= at_least
    result = traced(argv, env=env).ok()
    assert truth.results(result) == bare
    gotools.check_all(result.trace)


@pytest.mark.measured
@pytest.mark.parametrize("program", VARIANTS)
@pytest.mark.long
def test_other_names(traced, program):
    """__read_chk, pread64, …: the calls of the same program, all rows in one run; the same slices and results."""
    ending, at_least = VARIANTS[program]
    symbols = proc.run(["nm", "-D", PROGRAMS / program]).ok().stdout.split()
    assert len([s for s in symbols if s.split("@")[0].endswith(ending)]) >= at_least
    for kind, env in [("timed", {}), ("counted", EVERYTHING)]:
        rows = [row for row in truth.rows("calls", kind) if (program, row) not in UNENDING]
        expected, events, result = run(traced, *rows, program=PROGRAMS / program, env=env)
        assert truth.results(result) == [line for line in bare_results(kind) if line.split()[1].rstrip(":") in rows]
        assert len(expected) >= len(rows) - len(truth.skipped(result))
        truth.check(expected, events)


def check_profiles(expected, trace):
    for go in gotools.readers():
        for name, kind in (("syscall", "syscall"), ("net", "network")):
            profile = gotools.pprof(trace, name, go=go)
            # what the first thread does before and after a row may wait, too, where CPUs come late
            profile.samples = [sample for sample in profile.samples if "party_main" in sample[0]]
            truth.check_profile(expected, profile, {kind})


@pytest.mark.measured
def test_profile_totals(timed):
    result, _ = timed
    gotools.check_all(result.trace)
    check_profiles(truth.truths(result), result.trace)


@pytest.mark.measured
@pytest.mark.parametrize("row, kind", [("ten", "syscall"), ("ten-network", "net")])
def test_computing_between_calls_is_no_call(traced, go, row, kind):
    """Ten calls of 1 ms, each followed by 9 ms of computing, are 10 ms, not 100."""
    result = traced([CALLS, row]).ok()
    expected = truth.truths(result)
    assert len(expected) == 10
    truth.check(expected, gotools.parse(result.trace, go=go))
    # in all, without the excuse of a CPU that came late: the truth is about 10 ms, of 100
    profile = gotools.pprof(result.trace, kind, go=go)
    truth.check_profile(expected, profile, {expected[0].kind})
    assert profile.leaf_count()[expected[0].hook] == 10


@pytest.mark.measured
def test_starts(traced):
    """Every slice lies inside its call: one offset between the program's clock and the trace's fits them all."""
    expected, events, _ = run(traced, "ten")
    shown = of_threads(expected, events)
    assert len(shown) == len(expected)
    at_most = min(s.start - t.start for t, s in zip(expected, shown))
    at_least = max(s.start + s.ns - t.start - t.ns for t, s in zip(expected, shown))
    assert at_least <= at_most + 100_000, [(t, s) for t, s in zip(expected, shown)]


@pytest.mark.measured
def test_several_generations(traced):
    """A read and a recv of 2.5 s are one call each, with their lengths, here and in the profiles."""
    expected, events, result = run(traced, "long")
    assert [t.hook for t in expected] == ["read", "recv"] and min(t.arranged for t in expected) > 2.5e9
    truth.check(expected, events)
    check_profiles(expected, result.trace)


@pytest.mark.parametrize("env", [{}, {"GOTRACE_SYSCALL_MIN": "3600000000000"}], ids=["default", "longer"])
def test_calls_that_never_return(traced, env):
    """The process ends while one thread reads and one receives: both are shown, however short they were."""
    result = traced([CALLS, "end"], env=env)
    assert result.returncode == 3, str(result)
    gotools.check_all(result.trace)
    expected, events = truth.truths(result), gotools.parse(result.trace)
    assert [t.hook for t in expected] == ["read", "recv"]
    shown = truth.slices(events)
    created = {e.goid: e.time for e in events if e.is_go("NotExist", "Runnable")}
    for t in expected:
        g = truth.goroutines(events)[t.waiter]
        (last,) = shown[g]
        assert (last.leaf, last.reason, last.ns) == (t.hook, truth.REASON[t.kind], None), f"{t}: {last}"
        # it is shown from when it began, at the thread's start, not from when the trace ended
        assert last.start - created[g] < t.arranged / 2, f"{t}: {last}"


def test_none(traced):
    rows = ["read-pipe", "open-fifo", "waitpid", "msgrcv", "fread", "read-file", "ten"]
    expected, events, _ = run(traced, *rows, env={"GOTRACE_SYSCALLS": "none"})
    assert {t.kind for t in expected} == {"syscall"} and len(expected) == 18
    assert not [e for e in events if "Syscall" in (e.old, e.new)]
    assert {t.waiter for t in expected} <= set(truth.goroutines(events)), "the threads are there all the same"


@pytest.mark.measured
def test_none_leaves_waits_for_threads(traced):
    expected, events, _ = run(traced, "read-handler-posts", env={"GOTRACE_SYSCALLS": "none"})
    truth.check([t for t in expected if t.kind == "sync"], events)
    assert not [e for e in events if "Syscall" in (e.old, e.new)]


# A generation ends soon after the first thread came, and a call that runs at that moment is shown. Not those that are
# looked at: these come before them.
FIRST = ["read-timerfd"] * 5


def later(expected):
    return expected[len(FIRST) :]


@pytest.mark.measured
def test_all_shows_short_ones_but_blocking_does_not(traced):
    rows = ["read-file", "getrandom", "ioctl"]
    hidden = {"GOTRACE_SYSCALLS": "blocking", "GOTRACE_SYSCALL_MIN": "1000000000"}
    for env, count in [(EVERYTHING, 9), (hidden, 0)]:
        expected, events, _ = run(traced, *FIRST, *rows, env=env)
        shown = of_threads(later(expected), events)
        assert len(shown if count else truth.within_generations(shown, events)) == count


def test_what_returns_at_once_is_no_wait(traced, tmp_path):
    """However long it takes; a wait in the same functions is one as ever."""
    program = SINGLE / "calls/at_once"
    for env, expected in [({"GOTRACE_SYSCALL_MIN": "1000"}, {"poll": 1, "epoll_wait": 1}),
                          (EVERYTHING, {"poll": 101, "epoll_wait": 101, "recv": 200, "send": 100})]:
        trace = traced([program], tmp_path / "t.out", env=env).ok().trace
        found = {name: sum(count for _, count, what in waits(trace, "network") if what.startswith(f"{name} ")) for name in expected}
        assert found == expected
        assert sum(count for _, count, what in waits(trace, "network")) == sum(expected.values())


def test_short_connections_show_once_a_millisecond(traced):
    """Readers see that the program accepts, connects and has an address, but its trace has no event of each connection."""
    result = traced([SINGLE / "calls/connections"], env={"GOTRACE_SYSCALL_MIN": "10000000000"}).ok()
    shown = waits(result.trace, "syscall")
    for call in "accept", "connect":
        count = sum(count for _, count, what in shown if what.startswith(f"{call} "))
        assert 1 <= count <= 1 + int(result.stdout) < 2000, (shown, result.stdout)
    binds = [count for _, count, what in shown if what.startswith("bind ")]
    assert binds == [1], shown  # of the datagram socket: the listener's says nothing that its accepts do not


@pytest.mark.measured
@pytest.mark.parametrize("row", ["ten", "ten-network"])
@pytest.mark.parametrize("minimum", [10_000_000, 1_000_000_000])
def test_minimum_hides(traced, row, minimum):
    """Ten calls of 1 ms; on a busy machine some are longer, and a generation may end in one."""
    expected, events, _ = run(traced, *FIRST, row, env={"GOTRACE_SYSCALL_MIN": minimum})
    expected = later(expected)
    assert len(expected) == 10
    assert len(of_threads(expected, events)) <= 1 + sum(t.ns > minimum for t in expected)


@pytest.mark.measured
@pytest.mark.parametrize("row", ["read-pipe", "recv"])
def test_minimum_shows(traced, row):
    expected, events, _ = run(traced, row, env={"GOTRACE_SYSCALL_MIN": 10_000_000})
    truth.check(expected, events)


@pytest.mark.measured
def test_minimum_does_not_hide_what_spans_generations(traced):
    """What still runs when a generation is closed is shown: its length is not known yet."""
    expected, events, _ = run(traced, "long", env={"GOTRACE_SYSCALL_MIN": "3600000000000"})
    truth.check(expected, events)


@pytest.mark.parametrize("row", truth.rows("calls", "quiet"))
def test_no_wait_no_event(traced, row):
    """The minimum is far above what these take even when the thread loses its CPU in one.

    A call that is under way when a generation ends is shown nevertheless.
    """
    _, events, _ = run(traced, *FIRST, row, env={"GOTRACE_SYSCALL_MIN": "500000000"})
    born = [e.goid for e in events if e.is_go("NotExist", "Runnable")]
    assert len(born) == len(FIRST) + 1
    assert not truth.within_generations(truth.slices(events)[born[-1]], events)
