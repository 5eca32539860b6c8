"""What every test gets: a time limit that fails it, fixtures, and the C unit tests as tests of their own.

A test fails after LIMIT seconds, or after the number in `@pytest.mark.limit(seconds)`; all processes it started
through `lib.proc` are then killed with their process groups.

`run.py` first runs the tests that are neither `measured` nor `alone`, in three processes. Then it runs the others, one after
another. Where both kinds meet (`pytest -n 2`) a lock keeps them apart.

With `--short` tests marked `long` are left out, and a test with several parameters is run with each value of each, not
with each combination.
"""

import fcntl
import os
import pathlib
import shutil
import signal

import pytest

from lib import AARCH64, ALL, LIBRARY, SOURCES, UNIT_TESTS, classes, gotools, proc, results

LIMIT = 180  # what takes 10 s on an idle machine ends in time where sixty processes want two CPUs
INSIDE = "GOTRACE_TEST_BUILD" in os.environ  # the test that has started this pytest holds the lock
SKIPPED = 77  # a unit test's exit status


def pytest_addoption(parser):
    parser.addoption("--short", action="store_true", help="no tests marked long, each value of each parameter, not each combination")
    parser.addoption("--part", choices=["beside", "alone"], help="only the tests that may run beside others, or only the rest")
    parser.addoption("--results", metavar="DIR", help="a folder that gets a line for each test, and the files of tests that failed")


def pytest_configure(config):
    for name, what in classes.CLASSES.items():
        config.addinivalue_line("markers", f"{name}: {what}")
    config.addinivalue_line("markers", f"limit(seconds): fail the test after this time (default {LIMIT} s)")
    config.addinivalue_line("markers", "needs(command...): skip the test where one is not installed; A|B: where both are not")
    config.addinivalue_line("markers", "long: is left out by --short")
    config.addinivalue_line("markers", "urgent: what the test runs has a real-time priority, where that is allowed")
    config.addinivalue_line("markers", "alone: no other test runs meanwhile; nor beside a measured test")
    if config.option.results and not hasattr(config, "workerinput"):
        config.pluginmanager.register(results.Results(config.option.results))
    if AARCH64:
        proc.use_cross_compilers()
    # A shell that starts the tests in the background may have these ignored, which traced programs would inherit.
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


# --- what runs at the same time


def _beside(item):
    return not item.get_closest_marker("alone") and classes.class_of(item) != "measured"


def _values(item):
    """What this run of a test gets: a tuple for each `parametrize`, one for each fixture with parameters."""
    params = getattr(item, "callspec", None) and item.callspec.params or {}
    names = [mark.args[0] for mark in item.iter_markers("parametrize")]
    together = [tuple(n.strip() for n in (name.split(",") if isinstance(name, str) else name)) for name in names]
    together += [(name,) for name in params if not any(name in some for some in together)]
    return {(some, *(id(params[name]) for name in some)) for some in together} or {None}


def _chosen(items):
    """Of each test not marked `long` a few runs in which each value of each parameter occurs."""
    tests, chosen = {}, set()
    for item in items:
        if not item.get_closest_marker("long"):
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for runs in tests.values():
        ahead = set().union(*map(_values, runs))
        while ahead:
            best = max(runs, key=lambda run: len(_values(run) & ahead))
            ahead -= _values(best)
            chosen.add(best)
    return chosen


def _wanted(items, option):
    """The tests that this run is for."""
    wanted = _chosen(items) if option.short else set(items)
    if not ALL:
        wanted = {item for item in wanted if classes.class_of(item) != "foreign"}
    if option.part:
        wanted = {item for item in wanted if _beside(item) == (option.part == "beside")}
    return wanted


def pytest_collection_modifyitems(config, items):
    """Tests that run beside others come first, and among them files that have no other test."""
    wanted = _wanted(items, config.option)
    config.hook.pytest_deselected(items=[item for item in items if item not in wanted])
    items[:] = [item for item in items if item in wanted]
    waiting = {item.location[0] for item in items if not _beside(item)}
    items.sort(key=lambda item: (not _beside(item), item.location[0] in waiting))
    for item in items:
        needs = [command for marker in item.iter_markers("needs") for command in marker.args]
        for command in needs if not ALL else []:
            if not any(map(shutil.which, command.split("|"))):
                item.add_marker(pytest.mark.skip(reason=f"{command} is not here; ./scripts/deps all installs it"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    proc.urgent = bool(item.get_closest_marker("urgent"))
    with open(__file__) as file:
        if not INSIDE:
            fcntl.flock(file, fcntl.LOCK_SH if _beside(item) else fcntl.LOCK_EX)
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in classes.run(item, nextitem):
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    outcome = yield
    item.has_failed = item.has_failed or outcome.get_result().failed


# --- what fails, when it does


_terminal = None  # of the process that shows the results


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session):
    global _terminal
    if not hasattr(session.config, "workerinput"):
        _terminal = session.config.pluginmanager.get_plugin("terminalreporter")


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report):
    """With -q there are only dots until the end."""
    if _terminal and report.failed:
        _terminal.write_line(f"\nfailed: {report.nodeid}: {classes.reason(report)}")
        _terminal.flush()  # also into a pipe


# --- the time limit


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_setup(item):
    yield from _limited(item)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    yield from _limited(item)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_teardown(item):
    """Traces are large: nothing of a test that passed is kept."""
    path = (getattr(item, "funcargs", None) or {}).get("tmp_path")
    yield from _limited(item)
    if path and item.has_failed and item.config.option.results:
        results.keep(item.config.option.results, item.nodeid, path)
    elif path and not item.has_failed:
        shutil.rmtree(path, ignore_errors=True)


def _limited(item):
    """Each phase of a test (setup, call, teardown) has the whole time, so that a late one can still clean up."""
    marker = item.get_closest_marker("limit")
    seconds = marker.args[0] if marker else LIMIT

    def expired(*_):
        proc.kill_all()
        pytest.fail(f"still not done after {seconds} s")

    signal.signal(signal.SIGALRM, expired)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def pytest_sessionfinish():
    proc.kill_all()


# --- fixtures


@pytest.fixture
def traced(tmp_path):
    """A function that runs a program under the library (`lib.proc.traced`), with its trace in tmp_path."""
    assert LIBRARY.exists(), f"{LIBRARY} is missing: run make"

    def run(argv, trace=tmp_path / "t.out", **options):
        return proc.traced(argv, trace, **options)

    return run


@pytest.fixture(scope="session")
def slow_disk(tmp_path_factory):
    """Variables for a traced program, each of whose fsyncs takes at least 2 ms."""
    library = proc.compile(SOURCES / "disk/slow.c", tmp_path_factory.mktemp("disk") / "slow.so", "-shared", "-fPIC")
    return {"LD_PRELOAD": f"{LIBRARY} {library}"}


@pytest.fixture(params=["1.23", "newest"])
def go(request):
    """The `go` to read a trace with; the test runs once with each."""
    return gotools.find(None if request.param == "newest" else request.param)


# --- test/unit/*.c: one program each, built by `make programs`, which exits with 0 (pass), 77 (skip) or anything else


def _unit_test_file(file_path, parent, **where):
    if file_path.suffix in (".c", ".cc") and file_path.parent.name == UNIT_TESTS.name:
        return UnitTestFile.from_parent(parent, **where)
    return None


if int(pytest.__version__.partition(".")[0]) >= 7:

    def pytest_collect_file(file_path, parent):
        return _unit_test_file(file_path, parent, path=file_path)

else:

    def pytest_collect_file(path, parent):
        return _unit_test_file(pathlib.Path(path), parent, fspath=path)


CLASS_OF_UNIT_TEST = {"clock": "measured", "registry": "measured"} | dict.fromkeys(
    ("stress", "renewal", "torn", "switch_deadline", "symbolize_guest"), "chance"  # threads that meet at any moment
)


class UnitTestFile(pytest.File):
    def collect(self):
        test = UnitTest.from_parent(self, name=pathlib.Path(self.fspath).stem)
        if test.name in CLASS_OF_UNIT_TEST:
            test.add_marker(CLASS_OF_UNIT_TEST[test.name])
        yield test


class UnitTest(pytest.Item):
    def runtest(self):
        program = UNIT_TESTS / self.name
        if not program.exists():
            pytest.fail(f"{program} is missing: run make tests")
        result = proc.run([program], timeout=LIMIT, env={"PATH": f"{pathlib.Path(gotools.find()).parent}:{os.environ['PATH']}"})
        if result.returncode == SKIPPED:
            pytest.skip((result.stdout + result.stderr).strip())
        if result.returncode != 0:
            pytest.fail(str(result))

    def repr_failure(self, excinfo):
        return str(excinfo.value)

    def reportinfo(self):
        return self.fspath, None, self.name
