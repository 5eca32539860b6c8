"""The scripts that people and CI start; what they install and run in new systems: test_fresh.py."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from lib import ROOT, proc

pytestmark = pytest.mark.beside


def test_steps(tmp_path):
    """A line for each; of the one that fails the end of what it said, and where the rest is."""
    script = (
        f"set -e; source {ROOT}/scripts/steps.sh; new_log {tmp_path}/log; step 'The first' echo quiet;"
        "step 'The second' sh -c 'seq 1000; exit 3'; echo not reached"
    )
    result = proc.run(["bash", "-c", script])
    assert result.returncode == 3
    first, second = result.stdout.splitlines()
    assert re.fullmatch(r"The first +\d+ s", first) and re.fullmatch(r"The second +failed", second)
    *end, where = result.stderr.splitlines()
    assert end == [str(n) for n in range(971, 1001)] and where == f"The whole log is {tmp_path}/log."
    assert (tmp_path / "log").read_text().splitlines()[:2] == ["== The first: echo quiet", "quiet"]


def test_names_of_packages():
    """Without installing, as any user; each group has those of the one before it."""
    before = []
    for group in "build", "demo", "test", "all", "bench":
        names = proc.run([ROOT / "scripts/deps", "--names", group]).ok().stdout.split()
        assert names[: len(before)] == before and len(names) > len(before)
        assert all(re.fullmatch(r"[a-z0-9][a-z0-9.+-]+", name) for name in names), names
        before = names


@pytest.fixture
def without_lttng(tmp_path):
    """A PATH with all but one of the tracers."""
    for directory in map(pathlib.Path, os.environ["PATH"].split(":")):
        for program in directory.iterdir() if directory.is_dir() else []:
            link = tmp_path / program.name
            if not program.name.startswith("lttng") and not link.is_symlink():
                link.symlink_to(program)
    return {"PATH": str(tmp_path)}


@pytest.mark.limit(120)
def test_bench_needs_only_the_tracers_it_measures(without_lttng):
    proc.run(["make", "-C", ROOT, "build/test/bench/floor"], timeout=60).ok()
    argv = [sys.executable, ROOT / "test/bench/run.py", "--tracers", "libgotrace", "--only", "^lock$", "--runs", "1"]
    text = proc.run(argv, env=without_lttng, timeout=100).ok().stdout
    assert re.search(r"^\| lock\+unlock, uncontended \| [\d.]+ ", text, re.M), text


def test_a_failure_is_named_at_once(tmp_path):
    """Before the last test is over, also where -q shows nothing but dots and two processes run them."""
    shutil.copy(ROOT / "test/conftest.py", tmp_path)  # a copy: tests wait for each other by its file
    (tmp_path / "test_it.py").write_text(
        "import pathlib, pytest, time\n"
        "pytestmark = pytest.mark.beside\n"
        "def test_fails(): assert 'a' == 'b'\n"
        "def test_waits():\n"
        "    while not pathlib.Path('seen').exists(): time.sleep(0.02)\n"
    )
    argv = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "test_it.py"]
    env = {"PYTHONPATH": ROOT / "test", "PYTHONUNBUFFERED": ""}  # a pipe is buffered
    child = proc.spawn(argv, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    line = next(line for line in child.stdout if "FAILED" in line)
    assert "test_it.py::test_fails" in line and "assert 'a' == 'b'" in line
    (tmp_path / "seen").touch()
    assert "1 failed, 1 passed" in child.stdout.read()
    proc.kill_group(child)


@pytest.mark.limit(300)
def test_each_benchmark_runs():
    """Once and briefly, bare and under the library: it fails where a row does not come out. Its numbers mean nothing here."""
    proc.run([sys.executable, ROOT / "test/bench/run.py", "--smoke"], timeout=280).ok()


@pytest.mark.parametrize("option", [["--only", "lokc"], ["--tracers", "LTTng"]])
def test_a_benchmark_that_is_not_there_is_an_error(option):
    result = proc.run([sys.executable, ROOT / "test/bench/run.py", *option], timeout=30)
    assert result.returncode == 2 and "there are: " in result.stderr and not result.stdout
