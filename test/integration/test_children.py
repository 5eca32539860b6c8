"""GOTRACE_CHILDREN=all: descendants that never make a thread."""

import re
import sys

import pytest

from integration.test_hostile import FORKS
from lib import HOSTILE, gotools, proc, reports

ALL = {"GOTRACE_CHILDREN": "all"}

NAPS = """
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noipa)) static void nap(void) { usleep(50000); }

int main(void)
{
    int status, sum = 0;
    for (int i = 0; i < 3; i++) {
        if (fork() == 0) {
            nap();
            if (i == 2)
                execlp("sleep", "sleep", "0.05", NULL);
            _exit(i);
        }
        wait(&status);
        sum += WEXITSTATUS(status);
    }
    return sum;
}"""


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
    program = proc.compile(NAPS, tmp_path / "naps")
    traces = same_family([program], tmp_path)
    naps = [sum(ns for ns, _, what in reports.waits(trace, "sleep") if "nap" in what) for trace in traces]
    assert [ns >= 50e6 for ns in sorted(naps)] == [False, True, True], naps
    (became,) = [trace for trace, ns in zip(traces, naps) if not ns]
    assert [what for ns, _, what in reports.waits(became, "sleep") if ns >= 50e6]


@pytest.mark.parametrize("format", ["go1.11", "go1.22"])
def test_formats(tmp_path, format):
    program = proc.compile(NAPS, tmp_path / "naps")
    proc.traced([program], tmp_path / "t.out", env=ALL | {"GOTRACE_FORMAT": format})
    traces = sorted(tmp_path.glob("t.out.*"))
    assert len(traces) == 3
    gotools.check_all(traces[0])


def test_not_by_default(tmp_path):
    proc.traced([proc.compile(NAPS, tmp_path / "naps")], tmp_path / "t.out")
    assert not list(tmp_path.glob("t.out.*"))


@pytest.mark.parametrize("way", FORKS)
def test_forks(tmp_path, way):
    same_family([HOSTILE / "forks", way], tmp_path, cwd=tmp_path)


def test_shell(tmp_path):
    script = "seq 1000 | sort -n | tail -1; (exit 3); echo $?; env true; x=$(cat /dev/null; date -u -d @0 +%Y); echo $x"
    assert len(same_family(["sh", "-c", script], tmp_path)) >= 5


def test_python_workers(tmp_path):
    script = """
import multiprocessing, os
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(abs, range(-4, 0)))
    pool.close()
    pool.join()
"""
    assert len(same_family([sys.executable, "-c", script], tmp_path)) == 2
