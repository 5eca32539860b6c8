"""GOTRACE_CHILDREN=all: descendants that never make a thread."""

import re
import sys

import pytest

from integration.test_hostile import FORKS
from lib import BUILT, HOSTILE, SINGLE, SOURCES, gotools, proc, reports

ALL = {"GOTRACE_CHILDREN": "all"}


def same_family(argv, tmp_path, **options):
    """Runs it bare and with all descendants traced; returns the descendants' traces, all of them good."""
    bare = proc.run(argv, **options)
    result = proc.traced(argv, tmp_path / "t.out", env=ALL, **options)
    assert (result.returncode, result.stdout) == (bare.returncode, bare.stdout), f"bare: {bare}\ntraced: {result}"
    ours = re.compile("gotrace: .*, nothing lost; ")
    assert [line for line in result.stderr.splitlines() if not ours.match(line)] == bare.stderr.splitlines()
    traces = sorted(tmp_path.glob("t.out.*"))
    assert proc.run([gotools.read_all(gotools.find()), result.trace, *traces]).ok().stdout == ""
    return traces


@pytest.mark.measured
def test_naps(tmp_path):
    """The third child's file is of what it became: it had not written any before."""
    program = SINGLE / "children/naps"
    traces = same_family([program], tmp_path)
    naps = [sum(ns for ns, _, what in reports.waits(trace, "sleep") if "nap" in what) for trace in traces]
    assert [ns >= 50e6 for ns in sorted(naps)] == [False, True, True], naps
    (became,) = [trace for trace, ns in zip(traces, naps) if not ns]
    assert [what for ns, _, what in reports.waits(became, "sleep") if ns >= 50e6]


@pytest.mark.parametrize("format", ["go1.11", "go1.22"])
def test_formats(tmp_path, format):
    program = SINGLE / "children/naps"
    proc.traced([program], tmp_path / "t.out", env=ALL | {"GOTRACE_FORMAT": format})
    traces = sorted(tmp_path.glob("t.out.*"))
    assert len(traces) == 3
    gotools.check_all(traces[0])


def test_not_by_default(tmp_path):
    proc.traced([SINGLE / "children/naps"], tmp_path / "t.out")
    assert not list(tmp_path.glob("t.out.*"))


@pytest.mark.parametrize("way", FORKS)
def test_forks(tmp_path, way):
    same_family([HOSTILE / "forks", way], tmp_path, cwd=tmp_path)


def test_shell(tmp_path):
    script = "seq 1000 | sort -n | tail -1; (exit 3); echo $?; env true; x=$(cat /dev/null; date -u -d @0 +%Y); echo $x"
    assert len(same_family(["sh", "-c", script], tmp_path)) >= 5


def test_python_workers(tmp_path):
    assert len(same_family([sys.executable, SOURCES / "children/workers.py"], tmp_path)) == 2


@pytest.mark.parametrize("more", [{}, {"GOTRACE_RING": "1M"}, {"GOTRACE_ROTATE": "1M", "GOTRACE_KEEP": "1"}, {"GOTRACE_FORMAT": "go1.11", "GOTRACE_LIVE": "on"}])
@pytest.mark.parametrize("who", ["first", "child"])
@pytest.mark.parametrize("output", ["t.out", "%p.out", "%e.%n"])
def test_each_image_keeps_its_trace(tmp_path, output, who, more):
    """A process that executes one program after the other does not write over what it has written."""
    (tmp_path / "traces").mkdir()
    program = SINGLE / "children/images"
    proc.traced([program, "3", *["fork"][: who == "child"]], tmp_path / "traces" / output, env=ALL | more).ok()
    traces = sorted((tmp_path / "traces").iterdir())
    told = [proc.run([BUILT / "gotrace", "sql", "--csv", t, "SELECT message FROM logs"]).ok().stdout.split()[1:] for t in traces]
    assert sorted(images[0] for images in told if images) == ["0", "1", "2", "3"], told
    gotools.check(traces[-1])


def test_a_file_from_before_is_overwritten(tmp_path):
    """As ever: only what the same process has left is kept."""
    program = SINGLE / "children/images"
    (tmp_path / "traces").mkdir()
    for _ in range(2):
        proc.traced([program, "0"], tmp_path / "traces/t.out").ok()
    assert [path.name for path in (tmp_path / "traces").iterdir()] == ["t.out"]
