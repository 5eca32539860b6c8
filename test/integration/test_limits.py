"""GOTRACE_MAX_SIZE, GOTRACE_MAX_MEM, GOTRACE_CHILDREN."""

import os
import pathlib
import re
import subprocess
import time

import pytest

from lib import HOSTILE, PROGRAMS, ROOT, SINGLE, gotools, proc

BUSY = [HOSTILE / "resources", "none"]


@pytest.mark.parametrize("kib", [64, 300, 1000])
def test_max_size(traced, kib):
    """The file comes close to the limit, never above it, and is whole; the program goes on."""
    bare = proc.run(BUSY)
    result = traced(BUSY, env={"GOTRACE_MAX_SIZE": f"{kib}K"})
    assert (result.returncode, result.stdout) == (bare.returncode, bare.stdout)
    if kib == 64 and not result.trace.exists():  # the library's thread had no CPU, and even the first part was larger
        assert "no file: GOTRACE_MAX_SIZE is too small for any of it" in result.stderr
        return
    assert "stopped at GOTRACE_MAX_SIZE" in result.stderr
    # After a first, small buffer a busy thread hands over 64 KiB at a time.
    assert kib * 700 - 3 * 65536 < result.trace.stat().st_size <= kib * 1024
    gotools.check_all(result.trace)


@pytest.mark.parametrize("before", [None, b"an older trace"])
def test_max_size_too_small_for_anything(traced, tmp_path, before):
    """There is no file then, and what an earlier run has left is not taken for it."""
    if before:
        (tmp_path / "trace.out").write_bytes(before)
    result = proc.traced([PROGRAMS / "threads", "4"], tmp_path / "trace.out", env={"GOTRACE_MAX_SIZE": "100"}).ok()
    assert result.stderr == f"gotrace: {result.trace}: no file: GOTRACE_MAX_SIZE is too small for any of it\n"
    assert not result.trace.exists()


def test_max_size_not_reached(traced):
    result = traced([PROGRAMS / "threads", "4"], env={"GOTRACE_MAX_SIZE": "1G"}).ok()
    assert "nothing lost;" in result.stderr


def test_max_mem(traced):
    """Threads wait for a buffer, which is said; nothing is missing."""
    result = traced([PROGRAMS / "yields", "8", "20000"], env=proc.EVERY_YIELD | {"GOTRACE_MAX_MEM": "1M"}, timeout=60).ok()
    assert "nothing lost" in result.stderr
    gotools.check(result.trace)
    assert gotools.count(result.trace, "GoStop") == 160000


def states_of(pid):
    """The scheduler's letter of each thread."""
    return [(task / "stat").read_text().rpartition(")")[2].split()[0] for task in pathlib.Path(f"/proc/{pid}/task").iterdir()]


@pytest.mark.limit(200)  # beside a load of 30 each yield takes 10 ms
def test_slow_disk(tmp_path):
    """A reader that begins when all threads wait for it: the exit line says how long, and nothing is missing."""
    os.mkfifo(tmp_path / "fifo")
    env = proc.traced_env(tmp_path / "fifo", proc.EVERY_YIELD | {"GOTRACE_MAX_MEM": "1M"})
    child = proc.spawn([PROGRAMS / "yields", "8", "40000"], env=env, stderr=subprocess.PIPE, text=True)
    with open(tmp_path / "fifo", "rb", buffering=0) as source, open(tmp_path / "t.out", "wb") as target:
        proc.until(lambda: len(states := states_of(child.pid)) >= 1 + 8 and set(states) == {"S"}, 100, child=child)
        time.sleep(1)  # the threads wait at least this long
        while piece := source.read(65536):
            target.write(piece)
    line = child.communicate()[1]
    waits, seconds = re.search(r"nothing lost, but threads waited (\d+) times, ([\d.]+) s, to write; next", line).groups()
    assert int(waits) >= 8 and float(seconds) > 1, line
    gotools.check(tmp_path / "t.out")
    assert gotools.count(tmp_path / "t.out", "GoStop") == 320000


@pytest.mark.long
def test_disk_that_stands_still_while_threads_wake_others(tmp_path):
    """For 3 s, of 10 that threads wait: those who end waits keep nobody from what is at the same address meanwhile."""
    os.mkfifo(tmp_path / "fifo")
    env = proc.traced_env(tmp_path / "fifo", {"GOTRACE_MAX_MEM": "1M"})
    child = proc.spawn([PROGRAMS / "posters", "8000"], env=env, stderr=subprocess.PIPE, text=True)
    with open(tmp_path / "fifo", "rb", buffering=0) as source, open(tmp_path / "t.out", "wb") as target:
        target.write(source.read(16))
        time.sleep(3)  # the disk stands still; after 10 s threads would give up waiting
        while piece := source.read(65536):
            target.write(piece)
    line = child.communicate()[1]
    seconds = re.search(r"nothing lost, but threads waited \d+ times, ([\d.]+) s, to write; next", line)
    assert seconds and float(seconds[1]) > 2, line
    gotools.check(tmp_path / "t.out")


def test_all_that_is_lost_is_said(tmp_path):
    """Also where threads waited."""
    os.mkfifo(tmp_path / "fifo")
    env = {"GOTRACE_MAX_MEM": "1M", "GOTRACE_CPU_HZ": "1000"}
    program = SINGLE / "limits/crowded"
    pipe = subprocess.PIPE
    child = proc.spawn([program], env=proc.traced_env(tmp_path / "fifo", env), stdin=pipe, stderr=pipe, text=True)
    with open(tmp_path / "fifo", "rb", buffering=0) as source:
        source.read(16)
        child.stdin.write("x")
        child.stdin.flush()
        time.sleep(6)  # the disk stands still; after 10 s threads would give up waiting
        child.stdin.close()
        while source.read(65536):
            pass
    line = child.stderr.read()
    assert child.wait(10) == 0
    assert re.search(r", \d+ CPU samples lost, threads waited \d+ times, [\d.]+ s, to write; next", line), line
    assert "nothing lost" not in line


def test_max_mem_of_a_child(tmp_path):
    """What the parent's threads hold does not count."""
    env = proc.EVERY_YIELD | {"GOTRACE_MAX_MEM": "1M", "GOTRACE_QUIET": "0"}
    result = proc.traced([SINGLE / "limits/crowded_parent"], tmp_path / "t.out", env=env).ok()
    (line,) = [line for line in result.stderr.splitlines() if "t.out." in line]
    assert "nothing lost;" in line


def test_children_off(tmp_path):
    result = proc.traced([HOSTILE / "forks", "fork"], tmp_path / "t.out", env={"GOTRACE_CHILDREN": "0"}).ok()
    assert [p.name for p in tmp_path.iterdir()] == ["t.out"]
    proc.traced(["sh", "-c", f"{PROGRAMS / 'threads'} 4; true"], tmp_path / "s.out", env={"GOTRACE_CHILDREN": "0"})
    assert not list(tmp_path.glob("s.out.*"))
    gotools.check_all(result.trace)


def test_processes(tmp_path):
    """The first ones of a family, however they come about; of the others a line of the first one's tells."""
    script = "for i in 1 2 3 4; do /bin/true; done; (/bin/true; :); :"
    env = {"GOTRACE_CHILDREN": "all", "GOTRACE_MAX_PROCESSES": "3", "GOTRACE_OUTPUT": tmp_path / "%p-%e"}
    result = proc.traced(["sh", "-c", script], tmp_path / "t.out", env=env).ok()
    assert sorted(p.name.split("-")[1] for p in tmp_path.iterdir()) == ["sh", "true", "true"]
    line, refusal = result.stderr.splitlines()
    assert "-sh: " in line and refusal == "gotrace: GOTRACE_MAX_PROCESSES=3: 4 more were not recorded"

    def refused(n):
        argv = [ROOT / "build/gotrace", "-f", "-o", tmp_path / "f.out", f"--max-processes={n}", "--", "sh", "-c", script]
        (total, *more) = proc.run(argv).ok().stderr.splitlines()
        return int(re.search(r", (\d+) processe?s?; ", total)[1]), more

    assert refused(3) == (3, ["gotrace: GOTRACE_MAX_PROCESSES=3: 4 more were not recorded"])
    assert refused(7) == refused(0) == (7, [])


@pytest.mark.parametrize("value", ["x", "-1", "1T", "1KK", "99999999999999999999", "99999999999G", ""])
def test_bad_sizes(traced, value):
    result = traced([PROGRAMS / "threads", "2"], env={"GOTRACE_MAX_SIZE": value}).ok()
    assert result.stderr.startswith(f"gotrace: GOTRACE_MAX_SIZE={value} is not a number of bytes")
