"""The black box: whatever kills a program, each event that it had written is in the trace that `gotrace recover` makes."""

import csv
import io
import os
import random
import re
import signal
import struct
import subprocess
import time

import pytest

from lib import AARCH64, BUILT, PROGRAMS, gotools, proc

KERNEL = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2]))
pytestmark = [
    pytest.mark.beside,
    pytest.mark.skipif(AARCH64 or KERNEL < (5, 14), reason="neither qemu nor an older kernel takes space beforehand"),
]

GOTRACE = BUILT / "gotrace"
THREADS, LINE = 8, 64  # of the journal of test/prog/killed.c
PAGE = 4096


def spawn(directory, how, *command, format="go1.23", live="on"):
    trace = directory / "t.out"
    env = proc.traced_env(trace, {"GOTRACE_LIVE": live, "GOTRACE_FORMAT": format, "GOTRACE_QUIET": "0"})
    argv = [PROGRAMS / "killed", directory / "journal", how, *command]
    child = proc.spawn(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n", child.communicate()
    return child


def end(child):
    """What it has said on standard error."""
    try:
        return child.communicate(timeout=60)[1]
    finally:
        proc.kill_group(child)


def kill(directory, **options):
    child = spawn(directory, "wait", **options)
    time.sleep(random.random() / 4)  # any moment will do
    child.kill()
    return end(child)


def journal(directory):
    data = (directory / "journal").read_bytes()
    return {str(i): struct.unpack_from("<Q", data, i * LINE)[0] for i in range(THREADS)}


def recover(box, output, *more):
    return proc.run([GOTRACE, "recover", box, *more, "-o", output])


def ask(trace, statement):
    return list(csv.reader(io.StringIO(proc.run([GOTRACE, "sql", "--csv", trace, statement]).ok().stdout)))[1:]


def check(directory, trace):
    """All that the journal has, one more of each thread at most, each once and where it was written; nothing of children."""
    where = "substr(message, 1, instr(message, ':') - 1)"
    rows = ask(
        trace,
        f"SELECT {where}, COUNT(*), COUNT(DISTINCT message), MAX(CAST(substr(message, instr(message, ':') + 1) AS INT)),"
        " SUM(place LIKE '%write_log%(killed.c%') FROM logs LEFT JOIN stacks ON stacks.id = stack_id"
        f" WHERE category = 'journal' GROUP BY {where}",
    )
    written = journal(directory)
    assert {row[0] for row in rows} == set(written), rows
    for thread, *counts in rows:
        n, *others = map(int, counts)
        assert set(others) == {n} and written[thread] <= n <= written[thread] + 1, (thread, written[thread], counts)


def check_readers(*traces, format="go1.23"):
    for go in gotools.readers_of(format).values():
        assert proc.run([gotools.read_all(go), *traces], timeout=120).ok().stdout == ""


@pytest.mark.parametrize("format", ["go1.22", "go1.23", "go1.25", "go1.26"])
def test_killed_at_any_moment(tmp_path, format):
    kill(tmp_path, format=format)
    recover(tmp_path / "t.out.live", tmp_path / "all.out").ok()
    check(tmp_path, tmp_path / "all.out")
    check_readers(tmp_path / "all.out", format=format)


ENDS = {"overflow": -signal.SIGSEGV, "handler": -signal.SIGILL, "instruction": 7, "forks": -signal.SIGKILL}


@pytest.mark.parametrize("how", ENDS)
def test_other_ends(tmp_path, how):
    child = spawn(tmp_path, how)
    end(child)
    assert child.returncode == ENDS[how]
    recover(tmp_path / "t.out.live", tmp_path / "all.out").ok()
    check(tmp_path, tmp_path / "all.out")
    check_readers(tmp_path / "all.out")


def test_exec_of_a_program_without_the_library(tmp_path):
    static = proc.compile("int main(void) { return 3; }", tmp_path / "static", "-static")
    child = spawn(tmp_path, "exec", static)
    end(child)
    assert child.returncode == 3
    recover(tmp_path / "t.out.live", tmp_path / "all.out").ok()
    check(tmp_path, tmp_path / "all.out")


def test_what_waits_still_waits(tmp_path):
    kill(tmp_path)
    recover(tmp_path / "t.out.live", tmp_path / "all.out").ok()
    text = proc.run([GOTRACE, "top", tmp_path / "all.out"]).ok().stdout
    assert "pthread_cond_wait <- wait_for_ever (killed.c:" in text


def test_nothing_is_left_by_a_program_that_ends_well(tmp_path):
    end(spawn(tmp_path, "exit"))
    assert {path.name for path in tmp_path.iterdir()} == {"journal", "t.out"}
    check_readers(tmp_path / "t.out")


def test_an_orphan_is_not_overwritten(tmp_path):
    boxes = tmp_path / "boxes"
    boxes.mkdir()
    child = spawn(tmp_path, "wait", live=boxes)
    result = recover(boxes / "t.out.live", tmp_path / "early.out")
    assert result.returncode == 1 and "its process runs" in result.stderr
    child.kill()
    end(child)
    written = (tmp_path / "journal").read_bytes()
    said = end(spawn(tmp_path, "exit", live=boxes))
    moved = boxes / f"t.out.{child.pid}.live"
    assert f"process {child.pid} did not end well, and has left {moved}" in said and list(boxes.iterdir()) == [moved]
    (tmp_path / "journal").write_bytes(written)
    recover(moved, tmp_path / "all.out").ok()
    check(tmp_path, tmp_path / "all.out")
    # The same elsewhere: where the trace is has to be said.
    trace = (tmp_path / f"t.out.{child.pid}").rename(tmp_path / "moved.out")
    assert "is not there any more" in recover(moved, tmp_path / "part.out").ok().stderr
    recover(moved, tmp_path / "again.out", trace).ok()
    check(tmp_path, tmp_path / "again.out")
    assert recover(moved, tmp_path / "wrong.out", tmp_path / "part.out").returncode == 1


def test_what_is_no_box(tmp_path):
    kill(tmp_path)
    box = tmp_path / "t.out.live"
    for name, data in {"empty": b"", "zeros": bytes(1 << 20), "text": b"gotrace\n" * 9999}.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "cut").write_bytes(box.open("rb").read(1 << 20))
    for name in ("empty", "zeros", "text", "cut", "t.out", "none"):
        result = recover(tmp_path / name, tmp_path / "all.out")
        assert result.returncode == 1 and str(tmp_path / name) in result.stderr, str(result)
    assert not (tmp_path / "all.out").exists()
    assert recover(box, tmp_path / "t.out").returncode == 2  # not into itself


def test_a_damaged_box(tmp_path):
    """Any bytes of it may be any others."""
    kill(tmp_path)
    box = tmp_path / "t.out.live"
    chance = random.Random(1)
    with open(box, "r+b") as file:
        file.seek(32)
        buffers, tables_end, buffers_end = struct.unpack("<3Q", file.read(24))
        places = [(32, PAGE // 8), (PAGE, 200), (16 * PAGE, tables_end - 16 * PAGE), (buffers, buffers_end - buffers)]
        for _ in range(12):
            was = []
            for start, size in places:
                at = start + chance.randrange(size - 8)
                file.seek(at)
                was.append((at, file.read(8)))
                file.seek(at)
                file.write(os.urandom(chance.randrange(1, 8)))
            file.flush()
            result = recover(box, tmp_path / "all.out")
            assert result.returncode in (0, 1), str(result)
            for at, data in reversed(was):
                file.seek(at)
                file.write(data)


@pytest.mark.parametrize("env", [{"GOTRACE_FORMAT": "go1.11"}, {"GOTRACE_RING": "1s"}, {"GOTRACE_SCHED": "on"}])
def test_where_there_is_none(tmp_path, env):
    result = proc.traced([PROGRAMS / "threads", "2"], tmp_path / "t.out", env=env | {"GOTRACE_LIVE": "on"}).ok()
    assert "GOTRACE_LIVE: not with" in result.stderr
    assert not (tmp_path / "t.out.live").exists()
