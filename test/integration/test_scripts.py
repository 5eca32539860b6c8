"""The scripts that people and CI start; what they install and run in new systems: test_fresh.py."""

import ast
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from lib import ROOT, SOURCES, proc
from long.mutants import MUTANTS


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


@pytest.mark.limit(180)
@pytest.mark.long
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
@pytest.mark.long
def test_bench_needs_only_the_tracers_it_measures(without_lttng):
    proc.run(["make", "-C", ROOT, "build/test/bench/floor"], timeout=60).ok()
    argv = [sys.executable, ROOT / "test/bench/run.py", "--tracers", "libgotrace", "--only", "^lock$", "--runs", "1"]
    text = proc.run(argv, env=without_lttng, timeout=100).ok().stdout
    assert re.search(r"^\| lock\+unlock, uncontended \| [\d.]+ ", text, re.M), text


def test_a_failure_is_named_at_once(tmp_path):
    """Before the last test is over, also where -q shows nothing but dots and two processes run them."""
    shutil.copy(ROOT / "test/conftest.py", tmp_path)  # a copy: tests wait for each other by its file
    (tmp_path / "test_it.py").write_text(
        "import pathlib, time\n"
        "def test_fails(): assert 'a' == 'b'\n"
        "def test_waits():\n"
        "    while not pathlib.Path('seen').exists(): time.sleep(0.02)\n"
    )
    argv = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "test_it.py"]
    env = {"PYTHONPATH": ROOT / "test", "PYTHONUNBUFFERED": ""}  # a pipe is buffered
    child = proc.spawn(argv, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    line = next(line for line in child.stdout if "failed: " in line)
    assert "test_it.py::test_fails" in line and "assert 'a' == 'b'" in line
    (tmp_path / "seen").touch()
    assert "1 failed, 1 passed" in child.stdout.read()
    proc.kill_group(child)


@pytest.fixture
def gate(tmp_path):
    """A function that runs test/run.py on a suite of one file. Gives its exit status and what it says."""
    (tmp_path / "test").mkdir()
    for name in "conftest.py", "run.py":
        shutil.copy(ROOT / "test" / name, tmp_path / "test")

    def run(tests, *options):
        (tmp_path / "test/test_it.py").write_text((SOURCES / "scripts/runs.py").read_text() + tests)
        argv = [sys.executable, tmp_path / "test/run.py", "-p", "no:cacheprovider", *options]
        result = proc.run(argv, env={"PYTHONPATH": ROOT / "test", "PYTEST_XDIST_WORKER": "", "ALL_NEEDS": ""}, timeout=100, cwd=tmp_path)
        return result.returncode, result.stdout

    return run


def test_a_flaky_test_does_not_fail_the_run(gate, tmp_path):
    """It fails once and passes when it runs again. Its files are kept, and the last line counts it."""
    flaky = "def test_it(tmp_path):\n    (tmp_path / 'made').touch()\n    assert run() > 1, 'the first time'\ndef test_right(tmp_path): pass\n"
    status, said = gate(flaky)
    assert status == 0 and said.endswith("\n1 passed, 0 failed, 1 flaky, 0 skipped\n"), said
    assert "\nFLAKY test/test_it.py::test_it: AssertionError: the first time\n" in said
    assert [path.name for path in tmp_path.glob("build/failures/*/*/*/*")] == ["made"]
    (tmp_path / "test_it.runs").unlink()
    status, said = gate(flaky, "--strict")
    assert status == 1 and said.endswith("\n1 passed, 0 failed, 1 flaky, 0 skipped\n"), said


def test_the_second_look_has_the_seed_of_the_first(gate, tmp_path):
    status, said = gate(
        "from lib.seeds import seed\n"
        "def test_it():\n"
        "    with open('seeds', 'a') as file: print(seed(), file=file)\n"
        "    assert run() > 1\n"
    )
    one, other = (tmp_path / "seeds").read_text().split()
    assert status == 0 and one == other and f"again: ALL_NEEDS= SEED={one} python3 " in said, said


@pytest.mark.parametrize("flaky, status", [(5, 0), (6, 1)])
def test_no_more_than_five_are_flaky(gate, flaky, status):
    assert gate("".join(f"def test_{n}(): assert run() > 1\n" for n in range(flaky)))[0] == status


def test_what_fails_twice_fails_the_run(gate):
    status, said = gate("def test_it(): assert not run()\n@pytest.mark.alone\ndef test_right(): pass\ndef test_late(): assert run() > 1\n")
    assert status == 1 and said.endswith("\n1 passed, 1 failed, 1 flaky, 0 skipped\n"), said
    assert "\nFAILED test/test_it.py::test_it: assert not 1\n" in said


@pytest.mark.parametrize("good_run, counts", [(1, "1 passed, 0 failed, 0 flaky"), (3, "1 passed, 0 failed, 0 flaky"), (4, "0 passed, 0 failed, 1 flaky")])
def test_the_best_of_three_runs_decides_a_measured_test(gate, good_run, counts):
    status, said = gate(f"@pytest.mark.measured\ndef test_it(tmp_path): assert run() == {good_run}\n")
    assert status == 0 and said.endswith(f"\n{counts}, 0 skipped\n"), said
    assert ("measured 3 times: test/test_it.py::test_it: assert 1 == 3" in said) == (good_run == 3)


def test_each_run_of_a_measured_test_has_new_fixtures(gate):
    """A recording that the tests of a file share is made anew; one that served a good run is not."""
    tests = "@pytest.fixture(scope='module')\ndef shared(): return {}\n"
    tests += "@pytest.mark.measured\ndef test_it(shared):\n    shared['used'] = shared.get('used', 0) + 1\n    assert run() == 3 and shared['used'] == 1\n"
    status, said = gate(tests + "@pytest.mark.measured\ndef test_later(shared): assert shared['used'] == 1\n")
    assert status == 0 and said.endswith("\n2 passed, 0 failed, 0 flaky, 0 skipped\n"), said


def test_a_test_that_breaks_pytest_fails_the_run(gate, tmp_path):
    assert gate("import nothing_like_this\n")[0] == 1
    assert gate("@pytest.mark.chance\n@pytest.mark.measured\ndef test_it(): pass\n")[0] == 1
    assert gate("import os\ndef test_it(): os._exit(3)\n")[0] == 1
    assert gate("")[0] == 1  # no test at all
    (tmp_path / "broken.py").write_text("def pytest_sessionfinish(): raise OSError\n")
    assert gate("def test_it(): pass\n", "-p", "broken")[0] == 1


def test_foreign_tests_are_left_out(gate):
    assert gate("@pytest.mark.foreign\ndef test_it(): pass\ndef test_right(): pass\n")[1].endswith("\n1 passed, 0 failed, 0 flaky, 0 skipped\n")


@pytest.mark.limit(300)
@pytest.mark.long
def test_each_benchmark_runs():
    """Once and briefly, bare and under the library: it fails where a row does not come out. Its numbers mean nothing here."""
    proc.run([sys.executable, ROOT / "test/bench/run.py", "--smoke"], timeout=280).ok()


@pytest.mark.parametrize("option", [["--only", "lokc"], ["--tracers", "LTTng"]])
def test_a_benchmark_that_is_not_there_is_an_error(option):
    result = proc.run([sys.executable, ROOT / "test/bench/run.py", *option], timeout=30)
    assert result.returncode == 2 and "there are: " in result.stderr and not result.stdout


@pytest.mark.parametrize("option, shown", [(None, "  CC\t{}\n"), ("V=1", "cc -std=gnu11 "), ("-s", "")])
def test_make_shows_short_lines(tmp_path, option, shown):
    """A command is one word and its target, `make V=1` shows the whole command, and `make -s` nothing."""
    target = tmp_path / "encoder/base/log.o"
    output = proc.run(["make", "--no-print-directory", "-C", ROOT, f"B={tmp_path}", "CC=cc", target, *filter(None, [option])]).ok().stdout
    assert output.startswith(shown.format(target)) and (option == "V=1" or output == shown.format(target)), output
    assert target.exists()


@pytest.mark.parametrize("hook", MUTANTS)
def test_what_long_mutants_breaks_is_there(hook):
    _, file, text, *_ = MUTANTS[hook]
    (path,) = (ROOT / "preload").rglob(file)
    assert path.read_text().count(text) == 1


# What only programs of C, C++, Rust, Go, Python and shell have.
PROGRAM = re.compile(
    r"#include|\bint main\(|\bfn main\(|^package main$|^\s*(?:def|class) \w+.*:|^import \w|^from \w+ import |^\s*(?:done|fi)$", re.M
)


def programs_in(text):
    """The lines in which strings begin that are programs of more than five lines."""
    nodes = list(ast.walk(ast.parse(text)))
    strings = {node: node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            strings[node] = "".join(strings.pop(part, "x") for part in node.values)
        elif isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)) and node.body and isinstance(node.body[0], ast.Expr):
            strings.pop(node.body[0].value, None)  # a docstring
    return sorted(node.lineno for node, text in strings.items() if len(text.strip().splitlines()) > 5 and PROGRAM.search(text))


def test_programs_are_files():
    """CONTRIBUTING.md: a program of more than five lines is a file, which compilers, linters and editors know."""
    found = {path.relative_to(ROOT): programs_in(path.read_text()) for path in (ROOT / "test").rglob("*.py")}
    assert len(found) > 100 and not any(found.values()), {str(path): lines for path, lines in found.items() if lines}


@pytest.mark.parametrize("first", ["#include <x.h>", "int main(void)", "fn main()", "package main", "def f():", "import os", "done"])
def test_programs_in_strings_are_found(first):
    """Also in f-strings. Docstrings, five lines, and what is no program are allowed."""
    program = repr(first + "\n" + "x\n" * 5)
    assert programs_in(f"a = 1\nb = {program}") == programs_in(f"\nb = f{program}") == [2]
    assert not programs_in(program) and not programs_in("b = " + program[:-4] + "'") and not programs_in("b = " + repr("x\n" * 100))
