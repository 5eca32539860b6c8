"""Who speaks on standard error: the process that the user started says its exit line, a child only what it has lost."""

import os
import re
import subprocess

import pytest

from lib import PROGRAMS, SINGLE, gotools, proc
from lib.reports import GOTRACE

THREADS = PROGRAMS / "threads"
TCL = f"puts [exec {THREADS} 4]"  # Tcl's exec takes a line on standard error for a failure
SHELL = f'x=$("{THREADS}" 4 2>&1); echo "got $x"'
PYTHON = f"import subprocess\nprint(subprocess.run(['{THREADS}', '4'], capture_output=True))"
LINE = r"gotrace: (\S+): \d+\.\d KiB, \d+ events in \d+\.\d{3} s, nothing lost; next: \S*gotrace why \1"


def lines(result):
    return [line for line in result.stderr.splitlines() if line.startswith("gotrace: ")]


def paths(result):
    return sorted(re.fullmatch(LINE, line)[1] for line in lines(result))


@pytest.mark.parametrize(
    "argv, stdin",
    [
        pytest.param(["tclsh"], TCL, marks=pytest.mark.needs("tclsh"), id="tcl"),
        pytest.param(["sh", "-c", SHELL], None, id="sh"),
        pytest.param(["/usr/bin/python3", "-c", PYTHON], None, id="python"),
    ],
)
@pytest.mark.parametrize("settings", [{}, {"GOTRACE_CHILDREN": "all"}, {"GOTRACE_LIVE": "on"}], ids=str)
def test_who_runs_a_child_sees_what_it_says_and_nothing_else(tmp_path, argv, stdin, settings):
    bare = proc.run(argv, stdin=stdin).ok()
    result = proc.traced(argv, tmp_path / "t.out", stdin=stdin, env=settings).ok()
    assert (result.stdout, bare.stderr) == (bare.stdout, "") and bare.stdout, result
    assert paths(result) == [str(tmp_path / "t.out")]
    (of_child,) = tmp_path.glob("t.out.*")
    gotools.check(of_child)


@pytest.mark.parametrize("value, speak", [(None, 1), ("", 1), ("0", 3), ("1", 0)])
def test_values(tmp_path, value, speak):
    env = {} if value is None else {"GOTRACE_QUIET": value}
    result = proc.traced(["sh", "-c", f"{THREADS} 2; {THREADS} 3; :"], tmp_path / "t.out", env=env).ok()
    files = sorted(map(str, tmp_path.iterdir()))
    assert len(files) == 3 and paths(result) == files[:speak], result


@pytest.mark.parametrize("chain", [["sh", "-c", f'exec "{THREADS}" 2'], ["env", THREADS, "2"], ["nice", "env", THREADS, "2"]], ids=lambda c: c[0])
def test_a_chain_of_exec_is_the_process_that_the_user_started(tmp_path, chain):
    result = proc.traced(chain, tmp_path / "t.out").ok()
    assert paths(result) == [str(tmp_path / "t.out")]


def test_an_image_after_one_that_has_left_its_trace(tmp_path):
    result = proc.traced([PROGRAMS / "matrix", "none", "after", "pipe", "exec"], tmp_path / "t.out", env={"GOTRACE_CHILDREN": "all"})
    (path,) = paths(result)
    assert re.fullmatch(rf"{tmp_path}/t\.out\.\d+", path) and sorted(map(str, tmp_path.iterdir())) == [str(tmp_path / "t.out"), path]


@pytest.mark.parametrize("when", ["never", "after"])
def test_a_daemon_is_a_child(tmp_path, when):
    """Who starts it says that its own trace is whole, before it is gone; the daemon says nothing."""
    with subprocess.Popen(
        [PROGRAMS / "matrix", "none", when, "pipe", "daemon"],
        env=proc.traced_env(tmp_path / "t.out", {"GOTRACE_CHILDREN": "all"}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        out, err = child.communicate(timeout=20)  # the daemon has these streams until it ends
    assert child.returncode == 0 and out.endswith("parent: daemon\n")
    assert re.fullmatch(LINE + "\n", err)[1] == str(tmp_path / "t.out")
    both = sorted(tmp_path.iterdir())
    assert len(both) == 2
    gotools.check(both[0])
    threads = re.search(r"^threads: (\d+)$", proc.run([GOTRACE, "info", both[1]]).ok().stdout, re.M)
    assert int(threads[1]) == (2 if when == "after" else 1)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be bound by a limit as another user")
def test_a_daemon_that_cannot_be(tmp_path):
    result = proc.traced([SINGLE / "silence/no_daemon", tmp_path / "t.out"], tmp_path / "t.out").ok()
    line, more = lines(result)
    # The other user may not be allowed to see the command, as below /root: then Go's is next, if it is here.
    assert result.stdout == "-1 1\n" and re.fullmatch(LINE.replace(r"; next: \S*gotrace why \1", r"(; next: (\S*gotrace why|go tool trace) \1)?"), line), line
    assert more == "gotrace: daemon(3) failed: nothing is recorded from here on"
    gotools.check(result.trace)


def test_a_child_says_what_is_lost(tmp_path):
    """It has no directory to write to; the shell has."""
    (tmp_path / "sh").mkdir()
    result = proc.traced(["sh", "-c", f"{THREADS} 2; :"], tmp_path / "%e/t.out").ok()
    of_child, of_shell = lines(result)
    assert re.fullmatch(rf"gotrace: cannot write {tmp_path}/threads/t\.out\.\d+: No such file or directory; .*", of_child)
    assert re.fullmatch(LINE, of_shell)[1] == str(tmp_path / "sh/t.out")
    assert lines(proc.traced(["sh", "-c", f"{THREADS} 2; :"], tmp_path / "%e/t.out", env={"GOTRACE_QUIET": "1"}).ok()) == []


def test_a_child_does_not_complain_again(tmp_path):
    result = proc.traced(["sh", "-c", f"{THREADS} 2; {THREADS} 2; :"], tmp_path / "t.out", env={"GOTRACE_FORMAT": "go1.99"}).ok()
    complaint, line = lines(result)
    assert complaint.startswith("gotrace: GOTRACE_FORMAT=go1.99 is not ") and re.fullmatch(LINE, line)


def test_a_family_says_one_line_and_what_is_lost(tmp_path):
    def family(*options, **env):
        argv = [GOTRACE, "-f", "-o", tmp_path / "t.out", *options, "--", "sh", "-c", f"{THREADS} 2; {THREADS} 1000; :"]
        return lines(proc.run(argv, env=env).ok())

    total = f"gotrace: {tmp_path}/t.out: "
    (line,) = family()
    assert line.startswith(total)
    assert len(family(GOTRACE_QUIET="0")) == 1 and family("--quiet") == []
    lost, line = family("--max-size=16K")
    assert line.startswith(total) and lost.startswith(f"gotrace: {tmp_path}/t.out, process ")
    assert "stopped at GOTRACE_MAX_SIZE" in lost
    assert family("--max-size=16K", "--quiet") == []
