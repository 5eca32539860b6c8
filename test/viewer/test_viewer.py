"""The trace in the real viewer: `go tool trace` serves it, headless Chromium draws it."""

import collections
import contextlib
import http.server
import json
import os
import pathlib
import re
import subprocess
import threading
import time
import urllib.request

import pytest

from lib import PROGRAMS, ROOT, gotools, proc
from lib.exported import export, keep_picture

pytestmark = pytest.mark.needs("chromium-headless-shell|chromium")

HERE = pathlib.Path(__file__).parent
NAMED = {"usertasks": ["request", "query"], "userregions": ["parse", "compute", "outer"]}  # by test/prog/annotations.c


def model_of(url, view, picture, *what):
    """What the viewer shows in one of its timelines, as viewer.js tells it."""
    shown = proc.run(["node", "viewer.js", f"{url}/trace?view={view}", picture, *what], cwd=HERE, timeout=110).ok()
    model = json.loads(shown.stdout)
    assert not model["errors"], model["errors"]
    assert model["flows"] > 5, "no arrows from wakers to the woken"
    assert picture.stat().st_size > 10_000
    keep_picture(picture, picture.name)
    return model


def look(url, view, picture, *what):
    """Its rows by name, each with its slices' titles and their numbers."""
    model = model_of(url, view, picture, *what)
    return {row["name"]: row["slices"] for process in model["processes"] for row in process["rows"]}


@pytest.fixture(scope="module")
def truth(tmp_path_factory):
    """(URL of the viewer, what the program said) for a trace of test/prog/truth.c."""
    result = proc.traced([PROGRAMS / "truth"], tmp_path_factory.mktemp("viewer") / "t.out").ok()
    child, url = gotools.serve(result.trace)
    yield url, result
    proc.kill_group(child)


@pytest.mark.foreign
@pytest.mark.limit(120)
def test_a_time_of_a_report(truth, tmp_path):
    """`gotrace view --at` begins with the timeline, and the time that was asked for is marked."""
    argv = [ROOT / "scripts/gotrace", "view", "--no-browser", "--at=30ms", truth[1].trace]
    child = proc.spawn(argv, stdout=subprocess.PIPE, text=True)
    try:
        url = child.stdout.readline().strip()
        shown = proc.run(["node", "viewer.js", url, tmp_path / "at.png"], cwd=HERE, timeout=110).ok()
    finally:
        assert proc.stop(child) == 0  # by a signal that it passes on to Go's tool, which has a process group of its own
    begin, end = json.loads(shown.stdout)["marked"]
    assert begin == 30 < end < 40  # a thousandth of the trace


@pytest.mark.foreign
@pytest.mark.limit(120)
@pytest.mark.parametrize("view", ["proc", "thread"])
def test_timeline(truth, tmp_path, view):
    url, result = truth
    rows = look(url, view, tmp_path / f"viewer-{view}.png")
    slices = {title for titles in rows.values() for title in titles}
    for routine in ["lock_waiter", "cond_waiter", "sleeper", "busy_thread"]:
        assert any(title.split()[-1] == routine for title in slices), f"no slice of {routine} in {slices}"
    assert any("(truth)" in title for title in slices), "the thread's name"
    if view == "thread":
        tids = {line.split()[1] for line in result.stdout.splitlines()}
        assert tids <= {name.split()[-1] for name, titles in rows.items() if titles}, f"{tids}, {rows.keys()}"


def pigz(tmp_path, threads):
    data = tmp_path / "data"
    data.write_bytes(os.urandom(1 << 20) * 12)
    return proc.traced(["pigz", "-p", threads, "-c", "-k", data], tmp_path / "t.out").ok().trace


def around_a_slice(trace, ms=30):
    """A time of so many ms, or of more, in which a thread has run from a begin to an end: where half of all such have begun."""
    first, began, slices = None, {}, []
    for e in gotools.parse(trace):
        first = e.time if first is None else first
        if e.is_go("Runnable", "Running"):
            began[e.goid] = e.time
        elif e.is_go("Running", "Waiting") and e.goid in began:
            slices.append(((began.pop(e.goid) - first) / 1e6, (e.time - first) / 1e6))
    begin, end = sorted(slices)[len(slices) // 2]
    more = max(ms - (end - begin), 1) / 2
    return max(begin - more, 0), end + more


@pytest.mark.foreign
@pytest.mark.limit(120)
def test_picture_of_a_real_program(tmp_path):
    """pigz: the rows of its threads have slices, which are named by addresses where it has no symbols."""
    trace = pigz(tmp_path, 4)
    child, url = gotools.serve(trace)
    rows = look(url, "thread", tmp_path / "viewer.png", "--from={}..{}".format(*around_a_slice(trace)))
    proc.kill_group(child)
    slices = [title.split()[-1] for titles in rows.values() for title in titles]
    assert len([title for title in slices if title.startswith("pigz+0x")]) >= 5, slices


def slowest_wakeup(trace):
    """In ms: the longest time from a wake-up to running."""
    ready, slowest = {}, 0
    for e in gotools.parse(trace):
        if e.is_go("Waiting", "Runnable"):
            ready[e.goid] = e.time
        elif e.is_go("Runnable", "Running") and e.goid in ready:
            slowest = max(slowest, e.time - ready.pop(e.goid))
    return slowest / 1e6


@pytest.mark.foreign
@pytest.mark.limit(120)
def test_picture_of_a_slow_wakeup(tmp_path):
    """The way that gotrace-tutorial(7)'s wakeup.png was made, of memcached: the longest arrow is the slowest wake-up."""
    trace = pigz(tmp_path, 8)
    child, url = gotools.serve(trace)
    model = model_of(url, "thread", tmp_path / "wakeup.png", "--slowest-wakeup")
    proc.kill_group(child)
    assert model["wakeup"]["ms"] == pytest.approx(slowest_wakeup(trace), abs=0.001), model["wakeup"]


@pytest.mark.foreign
@pytest.mark.limit(120)
def test_picture_of_a_lock(tmp_path):
    """gotrace-tutorial(7)'s held.png: a wait for a lock says who holds it, on the row of who waits."""
    env = {"GOTRACE_SYSCALLS": "all", "GOTRACE_HEAP": "off"}
    trace = proc.traced([PROGRAMS / "incidents", "fsync"], tmp_path / "t.out", env=env).ok().trace
    child, url = gotools.serve(trace)
    model = model_of(url, "thread", tmp_path / "held.png", "--log=worker, journal_lock")
    proc.kill_group(child)
    assert re.fullmatch(r"\[held by\] G\d+ worker, journal_lock", model["log"]["title"]), model["log"]


@contextlib.contextmanager
def viewer_of_chrome(trace, file):
    """The pages of `go tool trace`, whose timeline is Chrome's (about:tracing), with that file in it; gives their URL."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            page = urllib.request.urlopen(theirs + self.path) if not self.path.startswith("/jsontrace") else None
            self.send_response(200)
            self.send_header("Content-Type", page.headers["Content-Type"] if page else "application/json")
            self.end_headers()
            self.wfile.write(page.read() if page else file.read_bytes())

        def log_message(self, *_):
            pass

    with gotools.viewer(trace) as theirs, http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.foreign
@pytest.mark.limit(120)
@pytest.mark.parametrize("argv", [["incidents", "fsync", "200"], ["annotations"]], ids=lambda argv: argv[0])
def test_export_for_chrome(tmp_path, argv):
    """All of the file is in the viewer: a row for each thread, what it did, and an arrow from each waker."""
    trace = proc.traced([PROGRAMS / argv[0], *argv[1:]], tmp_path / "t.out").ok().trace
    file = export(trace, "chrome")
    with viewer_of_chrome(trace, file) as url:
        rows, flows = collections.defaultdict(collections.Counter), 0
        model = model_of(url, "thread", tmp_path / "viewer-chrome.png")
    events = json.loads(file.read_text())["traceEvents"]
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    for event in events:
        flows += event["ph"] == "s"
        if event["ph"] in "Xi":
            rows[names[event["tid"]]][event["name"]] += 1
    (process,) = model["processes"]
    assert process["name"] == "t.out"
    assert {row["name"]: row["slices"] for row in process["rows"] if row["slices"]} == rows and model["flows"] == flows


@pytest.mark.foreign
@pytest.mark.limit(120)
@pytest.mark.parametrize("name", ["usertasks", "userregions"])
def test_pages_of_annotations(tmp_path, name):
    """As a person sees them; what they say is compared with the program's truth in test_annotations.py."""
    result = proc.traced([PROGRAMS / "annotations"], tmp_path / "t.out").ok()
    child, url = gotools.serve(result.trace)
    picture = tmp_path / f"{name}.png"
    text = proc.run(["node", "page.js", f"{url}/{name}", picture], cwd=HERE, timeout=110).ok().stdout
    proc.kill_group(child)
    keep_picture(picture, picture.name)
    assert picture.stat().st_size > 5_000
    assert all(word in text for word in NAMED[name]), text


@pytest.mark.measured
@pytest.mark.limit(120)
@pytest.mark.skipif(os.cpu_count() < 2, reason="threads move from one CPU to another")
@pytest.mark.long
def test_cpus(tmp_path):
    """With GOTRACE_SCHED "View trace by proc" shows the machine: a row for each CPU, and on it what ran there."""
    argv = [PROGRAMS / "account", "pinned=2", "spin=1", "brood=1"]
    pipe = subprocess.PIPE
    child = proc.spawn(argv, env=proc.traced_env(tmp_path / "t.out", {"GOTRACE_SCHED": "on"}), stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    assert child.stdout.readline() == "ready\n"
    time.sleep(0.7)
    _, err = child.communicate(timeout=30)
    proc.kill_group(child)
    if "does not let this user watch threads" in err:
        pytest.skip("perf_event_open(2) is not allowed here")
    server, url = gotools.serve(tmp_path / "t.out")
    rows = look(url, "proc", tmp_path / "viewer-cpus.png")
    proc.kill_group(server)
    on = {kind: collections.Counter() for kind in ("pinned", "spin")}
    for name, titles in rows.items():
        for title, count in titles.items():
            for kind in on:
                on[kind][name] += count if f"({kind})" in title else 0
    cpus = [f"Proc {n}" for n in range(os.cpu_count())]
    assert on["pinned"]["Proc 0"] > 0.9 * on["pinned"].total() > 20, on
    assert sum(on["spin"][cpu] for cpu in cpus) > 0.9 * on["spin"].total() > 20, on
