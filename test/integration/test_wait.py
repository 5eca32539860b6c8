"""gotrace --wait: a program that is killed has a whole trace nevertheless, and its parent sees what it would have seen."""

import os
import re
import signal
import subprocess

import pytest
import test_recover as box

from lib import PROGRAMS, SOURCES, gotools, proc

GOTRACE, pytestmark = box.GOTRACE, box.pytestmark


def waiting(directory, *argv, options=()):
    argv = [GOTRACE, "--wait", *options, "-o", directory / "t.out", "--", *argv]
    return proc.spawn(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def program_of(child):
    (number,) = re.findall(r"\d+", proc.run(["pgrep", "-P", str(child.pid)]).ok().stdout)
    return int(number)


def killed(directory, *options, boxes=None):
    """A busy program that is ended by SIGKILL; what `gotrace` says then."""
    child = waiting(directory, PROGRAMS / "killed", directory / "journal", "wait", options=options)
    assert child.stdout.readline() == "ready\n"
    proc.until(lambda: all(box.journal(directory).values()), child=child)
    os.kill(program_of(child), signal.SIGKILL)
    said = box.end(child)
    assert child.returncode == -signal.SIGKILL
    assert not list((boxes or directory).glob("*.live*"))
    return said


@pytest.mark.chance
@pytest.mark.parametrize("format", gotools.some(of=["go1.21", "go1.23", "go1.26"]))
def test_killed(tmp_path, format):
    said = killed(tmp_path, f"--format={format}")
    assert re.fullmatch(rf"gotrace: {tmp_path}/t\.out: \d+ events (more than the file )?of process .*\n", said), said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["journal", "t.out"]
    box.check(tmp_path, tmp_path / "t.out")
    box.check_readers(tmp_path / "t.out", format=format)


@pytest.mark.chance
def test_killed_with_names_beside_the_trace(tmp_path):
    killed(tmp_path, "--format=go1.5")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["journal", "t.out", "t.out.elf"]
    box.check_names(tmp_path / "t.out")
    box.check_readers(tmp_path / "t.out", format="go1.5")


@pytest.mark.chance
def test_killed_quietly_with_a_box_elsewhere(tmp_path):
    boxes = tmp_path / "boxes"
    boxes.mkdir()
    assert killed(tmp_path, "--quiet", f"--live={boxes}", boxes=boxes) == ""
    box.check(tmp_path, tmp_path / "t.out")


@pytest.mark.chance
def test_the_flight_recorder(tmp_path):
    """It has no file of its own until then."""
    killed(tmp_path, "--ring=256M")
    box.check(tmp_path, tmp_path / "t.out")


def test_a_program_that_ends(tmp_path):
    child = waiting(tmp_path, PROGRAMS / "killed", tmp_path / "journal", "exit")
    box.end(child)
    assert child.returncode == 0 and not list(tmp_path.glob("*.live*"))
    gotools.check_all(tmp_path / "t.out")
    child = waiting(tmp_path, "sh", "-c", "exit 3")
    box.end(child)
    assert child.returncode == 3


def test_signals_are_the_programs(tmp_path):
    """Each once; our process goes on."""
    child = waiting(tmp_path, "/usr/bin/python3", SOURCES / "wait/signals.py")
    assert child.stdout.readline() == "ready\n"
    numbers = [signal.SIGUSR1, signal.SIGTERM, signal.SIGHUP, signal.SIGWINCH]
    for number in numbers:
        child.send_signal(number)
    out, _ = child.communicate(timeout=20)
    assert sorted(map(int, out.split())) == sorted(map(int, numbers)) and child.returncode == 0


def test_of_a_family(tmp_path):
    """Of each process that is killed all is in the one trace."""
    trace = tmp_path / "t.out"
    proc.run([GOTRACE, "-f", "--wait", "-o", trace, "--", "bash", SOURCES / "wait/kills.sh", PROGRAMS / "killed"], cwd=tmp_path, timeout=60).ok()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1", "2", "t.out"]
    written = sum(sum(box.journal(tmp_path / name).values()) for name in "12")
    ((told,),) = box.ask(trace, "SELECT COUNT(*) FROM logs WHERE category = 'journal'")
    assert written <= int(told) <= written + 2 * box.THREADS
    gotools.check_all(trace)
