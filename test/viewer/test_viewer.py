"""The trace in the real viewer: `go tool trace` serves it, headless Chromium draws it."""

import json
import pathlib
import re
import shutil
import subprocess

import pytest

from lib import PROGRAMS, gotools, proc

HERE = pathlib.Path(__file__).parent


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """(URL of the viewer, what the program did) for a trace of test/prog/truth.c."""
    trace = tmp_path_factory.mktemp("viewer") / "t.out"
    result = proc.traced([PROGRAMS / "truth"], trace).ok()
    argv = [gotools.find(), "tool", "trace", "-http=127.0.0.1:0", str(trace)]
    child = proc.spawn(argv, env={"BROWSER": "true"}, stderr=subprocess.PIPE, text=True)
    for line in child.stderr:
        if url := re.search(r"http://127\.0\.0\.1:\d+", line):
            yield url[0], result
            break
    else:
        pytest.fail("go tool trace did not start to listen")
    proc.kill_group(child)


@pytest.mark.limit(120)
@pytest.mark.parametrize("view", ["proc", "thread"])
def test_timeline(server, tmp_path, view):
    url, result = server
    picture = tmp_path / f"{view}.png"
    shown = proc.run(["node", "viewer.js", f"{url}/trace?view={view}", picture], cwd=HERE, timeout=110).ok()
    model = json.loads(shown.stdout)
    assert not model["errors"], model["errors"]
    assert model["flows"] > 5, "no arrows from wakers to the woken"
    rows = {row["name"]: row["slices"] for process in model["processes"] for row in process["rows"]}
    slices = {title for titles in rows.values() for title in titles}
    for routine in ["lock_waiter", "cond_waiter", "sleeper", "busy_thread"]:
        assert any(title.split()[-1] == routine for title in slices), f"no slice of {routine} in {slices}"
    assert any("(truth)" in title for title in slices), "the thread's name"
    if view == "thread":
        tids = {line.split()[1] for line in result.stdout.splitlines()}
        assert tids <= {name.split()[-1] for name, titles in rows.items() if titles}, f"{tids}, {rows.keys()}"
    assert picture.stat().st_size > 10_000
    shutil.copy(picture, HERE.parents[1] / "build" / f"viewer-{view}.png")
