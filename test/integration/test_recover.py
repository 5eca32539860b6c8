"""The black box: whatever kills a program, each event that it had written is in the trace that `gotrace recover` makes."""

import csv
import fcntl
import io
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import time
import urllib.request

import pytest

from lib import AARCH64, BUILT, PROGRAMS, ROOT, SANITIZER, SINGLE, SOURCES, gotools, proc, reports
from lib.seeds import seeded

KERNEL = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2]))
pytestmark = [
    pytest.mark.chance,
    pytest.mark.skipif(AARCH64 or KERNEL < (5, 14), reason="neither qemu nor an older kernel takes space beforehand"),
]

GOTRACE = BUILT / "gotrace"
SANITIZED = ROOT / "build/asan/gotrace"
THREADS, LINE = 8, 64  # of the journal of test/prog/killed.c
PAGE = 4096
DEADLOCK = 3  # the exit status of `gotrace stacks`


RING = {"GOTRACE_RING": "256M"}  # that holds all of it
SCHED = {"GOTRACE_SCHED": "on"}


def spawn(directory, how, *command, format="go1.23", live="on", preexec=None, program=PROGRAMS / "killed", **more):
    trace = directory / "t.out"
    all_yields = {"GOTRACE_SYSCALL_MIN": "0"}
    env = proc.traced_env(trace, {"GOTRACE_LIVE": live, "GOTRACE_FORMAT": format, "GOTRACE_QUIET": "0"} | all_yields | more)
    argv = [program, directory / "journal", how, *command]
    child = proc.spawn(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=preexec)
    assert child.stdout.readline() == "ready\n", child.communicate()
    return child


def end(child):
    """What it has said on standard error."""
    try:
        return child.communicate(timeout=60)[1]
    finally:
        proc.kill_group(child)


def kill(directory, how="wait", chance=None, **options):
    chance = chance or seeded(moments=True)
    child = spawn(directory, how, **options)
    time.sleep(chance.random() / 4)  # any moment will do
    child.kill()
    return end(child)


def journal(directory):
    data = (directory / "journal").read_bytes()
    return {str(i): struct.unpack_from("<Q", data, i * LINE)[0] for i in range(THREADS)}


def recover(box, output, *more):
    return proc.run([GOTRACE, "recover", box, *more, "-o", output])


def ask(trace, statement):
    return list(csv.reader(io.StringIO(proc.run([GOTRACE, "sql", "--csv", trace, statement]).ok().stdout)))[1:]


def check(directory, trace, from_begin=True):
    """All that the journal has, one more of each thread at most, each once and where it was written; nothing of children."""
    where, number = "substr(message, 1, instr(message, ':') - 1)", "CAST(substr(message, instr(message, ':') + 1) AS INT)"
    rows = ask(
        trace,
        f"SELECT {where}, COUNT(*), COUNT(DISTINCT message), SUM(place LIKE '%write_log%(killed.c%'), MIN({number}),"
        f" MAX({number}) FROM logs LEFT JOIN stacks ON stacks.id = stack_id WHERE category = 'journal' GROUP BY {where}",
    )
    written = journal(directory)
    assert {row[0] for row in rows} == set(written), rows
    for thread, *counts in rows:
        *each, first, last = map(int, counts)
        assert set(each) == {last - first + 1} and written[thread] <= last <= written[thread] + 1, (written, thread, counts)
        assert (first == 1) == from_begin, (thread, counts)


def check_yields(directory, trace):
    """The same of all threads together in formats that have no logs: there a GoSched is that and nothing else."""
    data = (directory / "journal").read_bytes()
    made = sum(struct.unpack_from("<2Q", data, i * LINE)[1] for i in range(THREADS))
    found = int(re.search(r" (\d+)  GoSched\n", proc.run([GOTRACE, "info", trace]).ok().stdout)[1])
    assert made <= found <= made + THREADS, (made, found)


def check_readers(*traces, format="go1.23"):
    for go in gotools.readers_of(format).values():
        assert proc.run([gotools.read_all(go), *traces], timeout=120).ok().stdout == ""


def check_names(trace):
    text = proc.run([GOTRACE, "top", trace]).ok().stdout
    assert "pthread_cond_wait <- wait_for_ever (killed.c:" in text and "write_log" in text


def check_view(trace):
    argv = [GOTRACE, "view", "--no-browser", f"--go={gotools.find()}", trace]
    viewer = proc.spawn(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        address = viewer.stdout.readline().strip()
        assert b"trace" in urllib.request.urlopen(address, timeout=60).read()
    finally:
        proc.stop(viewer)  # which ends Go's tool, too: that is in a group of its own


def recover_and_check(directory, format):
    recover(directory / "t.out.live", directory / "all.out").ok()
    (check if int(format[4:]) >= 11 else check_yields)(directory, directory / "all.out")
    check_readers(directory / "all.out", format=format)


@pytest.mark.parametrize("format", gotools.some("go1.5"))
def test_killed_at_any_moment(tmp_path, format):
    kill(tmp_path, format=format)
    recover_and_check(tmp_path, format)


@pytest.mark.parametrize("format", gotools.some("go1.5"))
def test_the_flight_recorder(tmp_path, format):
    kill(tmp_path, format=format, **RING)
    (tmp_path / "t.out").unlink()  # is a snapshot, which nothing is taken from
    recover_and_check(tmp_path, format)


@pytest.mark.parametrize("more", [{}, RING], ids=["file", "ring"])
@pytest.mark.parametrize("format", gotools.some("go1.5"))
def test_cpu_state(tmp_path, format, more):
    """Of what is only in the box the kernel's records are lost: it goes on with everybody where he was by the ones before."""
    kill(tmp_path, format=format, **SCHED, **more)
    recover_and_check(tmp_path, format)


@pytest.mark.parametrize("more", [{}, RING], ids=["file", "ring"])
@pytest.mark.parametrize("format", gotools.some("go1.5", of=["go1.5", "go1.10", "go1.21"]))
def test_cpu_state_without_texts(tmp_path, format, more):
    """Nothing is in the box but events: threads have no names and no locks, and write no logs."""
    kill(tmp_path, "silent", format=format, **SCHED, **more)
    recover(tmp_path / "t.out.live", tmp_path / "all.out").ok()
    check_yields(tmp_path, tmp_path / "all.out")
    check_readers(tmp_path / "all.out", format=format)


@pytest.mark.parametrize("more", [{}, RING], ids=["file", "ring"])
@pytest.mark.parametrize("format", ["go1.5", "go1.10"])
def test_names_in_formats_without_logs(tmp_path, format, more):
    kill(tmp_path, format=format, **more)
    recover(tmp_path / "t.out.live", tmp_path / "all.out").ok()
    check_names(tmp_path / "all.out")


def test_names_beside_the_trace(tmp_path):
    """Those of Go 1.5's format go where it goes; without them what it goes on with has addresses, and nothing has a wrong name."""
    kill(tmp_path, format="go1.5")
    for command in ("top", "info", "why", "stacks", "view"):
        asked = proc.run([GOTRACE, command, tmp_path / "t.out.live"])
        assert asked.returncode == 1 and asked.stderr.endswith("with names in another file: gotrace recover\n"), asked
    end(spawn(tmp_path, "exit", format="go1.23"))
    (box,) = tmp_path.glob("t.out.*.live")
    recover(box, tmp_path / "all.out").ok()
    check_names(tmp_path / "all.out")
    box.with_name(box.name.replace(".live", ".elf")).unlink()
    recover(box, tmp_path / "fewer.out").ok()
    text = proc.run([GOTRACE, "top", tmp_path / "fewer.out"]).ok().stdout
    assert "<- 0x10000000" in text
    places = set(re.findall(r"<- (\w+) \(killed\.c", text))
    writers = {"write_log", "yield_with_lock", "write_up_to", "write_logs", "write_some", "have_some_written"}
    assert places <= writers | {"wait_for_ever", "main"}, places


@pytest.mark.parametrize("more", [{}, RING], ids=["file", "ring"])
@pytest.mark.parametrize("format", ["go1.21", "go1.23"])
def test_more_threads_than_memory_is_for(tmp_path, format, more):
    """Each has a buffer at least, and as a generation ends two: more than the limit, and all of them are in the box."""
    kill(tmp_path, format=format, GOTRACE_MAX_MEM="1M", **more)
    result = recover(tmp_path / "t.out.live", tmp_path / "said.out").ok()
    assert "there was no space" not in result.stderr, result
    recover_and_check(tmp_path, format)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("format", ["go1.21", "go1.23"])
def test_real_time_threads(tmp_path, format):
    """They take buffers that are put aside for them: of the box, too."""
    urgent = os.sched_param(1)
    kill(tmp_path, format=format, preexec=lambda: os.sched_setscheduler(0, os.SCHED_FIFO, urgent))
    recover_and_check(tmp_path, format)


@pytest.mark.parametrize("ring", ["1M", "1s"])
def test_what_the_flight_recorder_has_forgotten(tmp_path, ring):
    child = spawn(tmp_path, "wait", GOTRACE_RING=ring, GOTRACE_CPU_HZ="100")
    proc.until(lambda: min(journal(tmp_path).values()) >= 20000, 100, child=child)
    child.kill()
    end(child)
    recover(tmp_path / "t.out.live", tmp_path / "all.out").ok()
    check(tmp_path, tmp_path / "all.out", from_begin=False)
    check_readers(tmp_path / "all.out")
    assert "CPUSample" in proc.run([GOTRACE, "info", tmp_path / "all.out"]).ok().stdout


def test_a_flight_recorder_that_was_stopped(tmp_path):
    child = spawn(tmp_path, "wait", **RING)
    proc.run([GOTRACE, "stop", str(child.pid)]).ok()
    child.kill()
    end(child)
    result = recover(tmp_path / "t.out.live", tmp_path / "all.out")
    assert result.returncode == 1 and "no events are in it" in result.stderr and not (tmp_path / "all.out").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("size", ["4M", "5M", "7M"])
def test_a_disk_that_is_full(tmp_path, size):
    """The recorder keeps what it holds. The recovered part, if any, has no gap."""
    disk = tmp_path / "disk"
    disk.mkdir()
    proc.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", disk]).ok()
    try:
        child = spawn(tmp_path, "wait", live=disk, **RING)
        proc.until(lambda: min(journal(tmp_path).values()) >= 15000, 100, child=child)
        child.kill()
        end(child)
        result = recover(disk / "t.out.live", tmp_path / "all.out")
        assert result.returncode in (0, 1) and result.returncode == 0 or "there was no space" in result.stderr, str(result)
        if result.returncode == 0:
            check_readers(tmp_path / "all.out")
    finally:
        proc.run(["umount", disk]).ok()


FAMILIES = ["go1.5", "go1.21", "go1.23"]
ENDS = {
    "overflow": -signal.SIGSEGV,
    "instruction": 7,
    "seccomp": -signal.SIGSYS,
    "forks": -signal.SIGKILL,
}


@pytest.mark.parametrize("format", FAMILIES)
@pytest.mark.parametrize(
    "how, more",
    [
        *((how, {}) for how in ENDS),
        *((how, RING) for how in ENDS),
    ],
)
def test_other_ends(tmp_path, how, more, format):
    child = spawn(tmp_path, how, format=format, **more)
    end(child)
    assert child.returncode == ENDS[how]
    recover_and_check(tmp_path, format)


@pytest.mark.parametrize("format", FAMILIES)
def test_a_signal_leaves_a_whole_trace(tmp_path, format):
    """Its default action comes after the end of the recording: there is nothing to recover."""
    child = spawn(tmp_path, "handler", format=format)
    end(child)
    assert child.returncode == -signal.SIGILL
    assert not (tmp_path / "t.out.live").exists()
    check_readers(tmp_path / "t.out", format=format)


def counts(trace):
    """What each thread has told of its writing: the first and the last number, and how many there are."""
    number = "CAST(substr(message, instr(message, ':') + 1) AS INT)"
    where = "substr(message, 1, instr(message, ':') - 1)"
    rows = ask(trace, f"SELECT MIN({number}), MAX({number}), COUNT(*) FROM logs WHERE category = 'journal' GROUP BY {where}")
    return [tuple(map(int, row)) for row in rows]


@pytest.mark.parametrize("more", [{}, RING], ids=["file", "ring"])
@pytest.mark.parametrize("format", FAMILIES)
def test_exec_of_a_program_without_the_library(tmp_path, format, more):
    """What was recorded is in the file before that, also of a flight recorder, and nothing is left to recover."""
    static = proc.compile("int main(void) { return 3; }", tmp_path / "static", "-static")
    (tmp_path / "out").mkdir()
    child = spawn(tmp_path, "exec", static, format=format, GOTRACE_OUTPUT=tmp_path / "out/%n", **more)
    end(child)
    assert child.returncode == 3
    made = {"1", "1.elf"} if format == "go1.5" else {"1"}
    by_snapshot = {name.replace("1", "2", 1) for name in made} if more else set()  # the program has had one made, too
    assert {path.name for path in (tmp_path / "out").iterdir()} == made | by_snapshot
    trace = tmp_path / "out" / ("2" if more else "1")
    check_readers(trace, format=format)
    if int(format[4:]) < 11:
        assert int(re.search(r" (\d+)  GoSched\n", proc.run([GOTRACE, "info", trace]).ok().stdout)[1]) > 300
        return
    found = counts(trace)
    assert len(found) == THREADS and all(first == 1 and last == n >= 300 for first, last, n in found), found  # LOGS_FIRST


@pytest.mark.parametrize("more", [{}, RING], ids=["file", "ring"])
def test_exec_that_fails(tmp_path, more):
    """Recording goes on, in one file."""
    program = SINGLE / "recover/exec_fails"
    (tmp_path / "out").mkdir()
    result = proc.traced([program], tmp_path / "out/t.out", env={"GOTRACE_LIVE": "on"} | more).ok()
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["t.out"] and "nothing lost" in result.stderr
    check_readers(result.trace)
    assert "nap_afterwards" in proc.run([GOTRACE, "top", result.trace]).ok().stdout


def make_group():
    """A memory cgroup, of version 1 or 2, that has 64 MiB; None: that is not for us."""
    for top, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        group = pathlib.Path(top, f"gotrace-test-{os.getpid()}")
        try:
            group.mkdir()
        except OSError:
            continue
        if (group / limit).exists():
            (group / limit).write_text(str(64 << 20))
            return group
        group.rmdir()
    return None


@pytest.fixture
def little_memory():
    """Moves its caller there."""
    group = make_group()
    if not group:
        pytest.skip("no memory cgroup can be made here")
    yield lambda: (group / "cgroup.procs").write_text(str(os.getpid()))
    group.rmdir()


@pytest.mark.parametrize("format", FAMILIES)
def test_out_of_memory(tmp_path, little_memory, format):
    child = spawn(tmp_path, "memory", format=format, preexec=little_memory)
    end(child)
    assert child.returncode == -signal.SIGKILL
    said = recover(tmp_path / "t.out.live", tmp_path / "said.out").ok().stderr
    initial = os.readlink("/proc/self/ns/pid") == "pid:[4026531836]"  # in others the kernel's log has other process ids
    assert ("its memory cgroup was full" in said) == initial, said
    recover_and_check(tmp_path, format)


def test_what_waits_still_waits(tmp_path):
    kill(tmp_path)
    recover(tmp_path / "t.out.live", tmp_path / "all.out").ok()
    check_names(tmp_path / "all.out")


@pytest.mark.parametrize("more", [{}, RING, SCHED], ids=["file", "ring", "sched"])
@pytest.mark.parametrize("format", ["go1.21", "go1.23"])
def test_commands_take_it_for_the_trace(tmp_path, more, format):
    """All that read traces say of it what they say of the one that is recovered from it; nothing is written beside it."""
    child = spawn(tmp_path, "wait", format=format, **more)
    box, trace = tmp_path / "t.out.live", tmp_path / "all.out"
    running = proc.run([GOTRACE, "top", box])
    assert running.returncode == 1 and running.stderr == f"gotrace: {box}: its process runs\n", running
    child.kill()
    end(child)
    left = sorted(tmp_path.iterdir())
    recover(box, trace).ok()
    for command in (["top", "--json"], ["info", "--json"], ["why", "--json"], ["export", "--to=folded", "-o", "-"]):
        of_box, of_trace = (proc.run([GOTRACE, *command, file]).ok() for file in (box, trace))
        assert of_box.stdout.replace(str(box), str(trace)) == of_trace.stdout != ""
        assert re.search(r"^gotrace: \S+/t\.out\.live: \d+ events ", of_box.stderr), of_box
    proc.run([GOTRACE, "cut", box, "--from=-50ms", "-o", tmp_path / "part.out"]).ok()
    proc.run([GOTRACE, "convert", "--format=go1.26", box, "-o", tmp_path / "new.out"]).ok()
    proc.run([GOTRACE, "merge", box, "-o", tmp_path / "merged.out"]).ok()
    of_box, of_trace = (
        proc.run([GOTRACE, "sql", "-o", tmp_path / f"{file.name}.db", file, "SELECT COUNT(*), SUM(ns) FROM waits"]).ok().stdout
        for file in (box, trace)
    )
    assert of_box == of_trace
    check_view(box)
    text = proc.run([GOTRACE, "stacks", "--last=2", box]).ok().stdout
    assert text.startswith(f"{box}: process {child.pid} (killed), 10 threads\n")
    assert re.search(r"\nthread \d+ \(\S+\): waits for condition \S+\n    pthread_cond_wait\n    wait_for_ever \(killed\.c:\d+\)\n", text)
    assert " ago: " in text
    assert len(json.loads(proc.run([GOTRACE, "stacks", "--json", box]).ok().stdout)["threads"]) == 10
    proc.run([GOTRACE, "symbolize", box, "-o", tmp_path / "named.out"]).ok()
    refused = proc.run([GOTRACE, "symbolize", box])
    assert refused.returncode == 2 and "a black box stays as it is" in refused.stderr, refused
    made = {"part.out": format, "new.out": "go1.26", "named.out": format, "merged.out": format}
    for name, its in made.items():
        check_readers(tmp_path / name, format=its)
    made |= {"all.out.db": None, "t.out.live.db": None}
    assert sorted(tmp_path.iterdir()) == sorted([*left, trace, *(tmp_path / name for name in made)])


def stand_still(directory, *case, format="go1.23", **more):
    """Kills test/prog/deadlocks.c, once `gotrace stacks` tells its deadlock, if it has one: which threads."""
    env = {"GOTRACE_LIVE": "on", "GOTRACE_FORMAT": format} | more
    argv = [PROGRAMS / "deadlocks", *map(str, case)]
    child = proc.spawn(argv, env=proc.traced_env(directory / "t.out", env), stdout=subprocess.PIPE, text=True)
    try:
        lasts = child.stdout.readline() != "none\n"
        proc.until(lambda: not lasts or proc.run([GOTRACE, "stacks", child.pid]).returncode == DEADLOCK, child=child)
        time.sleep(seeded(moments=True).random() / 10)  # where none is, any moment will do
        stuck = json.loads(proc.run([GOTRACE, "stacks", "--json", child.pid]).stdout)["deadlocks"] if lasts else []
    finally:
        child.kill()
        child.wait()
    return [set(d["threads"]) for d in stuck]


def stacks_of_box(directory):
    result = proc.run([GOTRACE, "stacks", "--json", directory / "t.out.live"])
    found = json.loads(result.stdout)
    assert result.returncode == (3 if found["deadlocks"] else 0), result
    return found


@pytest.mark.parametrize("more", [{}, RING, {"format": "go1.21"}], ids=["file", "ring", "go1.21"])
@pytest.mark.parametrize("case", [("mutex", 2), ("mutex", 4), ("recursive", 3), ("inherit", 2), ("c11", 2), ("rwlock", 3)], ids=str)
def test_deadlocks(tmp_path, case, more):
    """Which threads waited for each other when the program was killed, and for what: as was told while it lived."""
    stuck = stand_still(tmp_path, "ring", *case, **more)
    found = stacks_of_box(tmp_path)
    assert [set(d["threads"]) for d in found["deadlocks"]] == stuck and len(stuck[0]) == case[1], found
    ring, threads = found["deadlocks"][0]["threads"], {t["tid"]: t for t in found["threads"]}
    for tid, owner in zip(ring, ring[1:] + ring[:1]):
        wait = threads[tid]["waits"]
        assert (wait["owner"], wait["owner_is"], wait["timed"]) == (owner, "thread", False)
        assert wait["kind"] == ("rwlock" if case[0] == "rwlock" else "mutex") and re.fullmatch(r"locks(\+\d+)?", wait["name"])
    text = proc.run([GOTRACE, "stacks", tmp_path / "t.out.live"]).stdout
    assert f"\nDEADLOCK: {case[1]} threads wait for each other, by who had the locks when they began to\nthread {ring[0]} " in text


def test_a_thread_that_waited_for_itself(tmp_path):
    (stuck,) = stand_still(tmp_path, "self", "mutex")
    assert [set(d["threads"]) for d in stacks_of_box(tmp_path)["deadlocks"]] == [stuck] and len(stuck) == 1


@pytest.mark.parametrize("case", [("ring", "timed"), ("elsewhere", "shared"), ("crowd", "mutex", 5)] + [("slow", "mutex", 3)] * 5, ids=str)
def test_no_deadlock(tmp_path, case):
    stand_still(tmp_path, *case)
    assert stacks_of_box(tmp_path)["deadlocks"] == []


def test_names_on_another_machine(tmp_path):
    """The program is not there, its trace is a copy: names are from debug files, by build ID."""
    (tmp_path / "debug").mkdir()
    program = pathlib.Path(shutil.copy(PROGRAMS / "killed", tmp_path / "program"))
    proc.run(["objcopy", "--only-keep-debug", program, tmp_path / "debug/program.debug"]).ok()
    proc.run(["strip", program]).ok()
    kill(tmp_path, program=program)
    program.unlink()
    box, trace = tmp_path / "there.live", pathlib.Path(shutil.copy(tmp_path / "t.out", tmp_path / "there.out"))
    proc.run(["cp", "--sparse=always", tmp_path / "t.out.live", box]).ok()
    (tmp_path / "t.out").unlink()
    recover(box, tmp_path / "all.out", trace).ok()
    assert "write_log" not in proc.run([GOTRACE, "top", tmp_path / "all.out"]).ok().stdout
    proc.run([GOTRACE, "symbolize", f"--debug-dir={tmp_path / 'debug'}", tmp_path / "all.out"]).ok()
    check_names(tmp_path / "all.out")
    check(tmp_path, tmp_path / "all.out")


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
    # Cut short: its last page is mapped to the end, and nothing after it.
    for size in (100, 4096, 4200, trace.stat().st_size - 1):
        (tmp_path / "short.out").write_bytes(trace.read_bytes()[:size])
        result = recover(moved, tmp_path / "wrong.out", tmp_path / "short.out")
        assert (result.returncode, "not the trace that" in result.stderr) == (1, True), (size, result.stderr)
    assert not (tmp_path / "wrong.out").exists()


@pytest.mark.parametrize(
    "file, at, to", [("t.out", "mapped", 4096), ("t.out.live", "seek", 4096), ("t.out.live", "read", 4096), ("t.out.live", "seek", 0)]
)
def test_a_file_that_becomes_shorter(tmp_path, file, at, to):
    """Between the moments when its size is looked at and when it is read: the file is named, and nothing is written."""
    kill(tmp_path)
    library = proc.compile(SOURCES / "recover/shrinks.c", tmp_path / "shrinks.so", "-shared", "-fPIC")
    changing = tmp_path / file
    assert changing.stat().st_size > 8192
    environment = {"LD_PRELOAD": str(library), "SHRINKS": str(changing), "AT": at, "TO": str(to)}
    result = proc.run([GOTRACE, "recover", tmp_path / "t.out.live", "-o", tmp_path / "all.out"], env=environment)
    assert changing.stat().st_size == to
    assert result.returncode == 1 and f"{changing}: it became shorter while it was read" in result.stderr, result
    assert not list(tmp_path.glob("all.out*"))


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


# --- of children; all that is in a directory

ALL = {"GOTRACE_LIVE": "on", "GOTRACE_CHILDREN": "all"}


def clean(directory):
    return proc.run([GOTRACE, "recover", f"--clean={directory}"])


@pytest.mark.measured
@pytest.mark.parametrize("more", [{}, {"GOTRACE_RING": "1M"}], ids=["file", "ring"])
@pytest.mark.parametrize("format", FAMILIES)
def test_a_forked_child(tmp_path, format, more):
    """Its generations have numbers that follow its parent's."""
    result = proc.traced([SINGLE / "recover/child"], tmp_path / "t.out", env=ALL | {"GOTRACE_FORMAT": format} | more).ok()
    box = tmp_path / f"t.out.{int(result.stdout)}.live"
    recover(box, tmp_path / "all.out").ok()
    check_readers(tmp_path / "all.out", format=format)
    ((ns, n, what),) = reports.waits(tmp_path / "all.out", "sleep")
    assert "nap" in what and n == 3 and ns >= 72e6, (ns, n, what)
    assert [path.name for path in tmp_path.glob("*.live")] == [box.name]


def empty_box(directory, name):
    """Of a process that is killed before anything is recorded."""
    child = proc.spawn(
        ["sleep", "60"],
        env=proc.traced_env(directory / name, {"GOTRACE_LIVE": "on", "GOTRACE_START": "manual"}),
        stdout=subprocess.DEVNULL,
    )
    box = directory / f"{name}.live"
    proc.until(lambda: box.exists() and "its process runs" in recover(box, directory / "none").stderr, child=child)
    child.kill()
    end(child)


@pytest.mark.parametrize("format", FAMILIES)
def test_a_directory(tmp_path, format):
    boxes = tmp_path / "boxes"
    boxes.mkdir()
    (tmp_path / "journals").mkdir()
    child = SINGLE / "recover/child"
    its = int(proc.traced([child], boxes / "c.out", env=ALL | {"GOTRACE_FORMAT": format}).ok().stdout)
    (boxes / f"c.out.{its}").write_text("of something else")  # which the box does not go on with
    kill(tmp_path, format=format, GOTRACE_OUTPUT=boxes / "t.out")
    empty_box(boxes, "e.out")
    runs = spawn(tmp_path / "journals", "wait", GOTRACE_OUTPUT=boxes / "r.out")
    (boxes / "n.live").write_text("no box")
    (boxes / "l.live").symlink_to(boxes / "t.out.live")
    os.mkfifo(boxes / "f.live")
    try:
        first, second = clean(boxes), clean(boxes)
    finally:
        runs.kill()
        end(runs)
    assert first.returncode == 0, first
    left = f"gotrace: {boxes}/%s.live: not what a recording with GOTRACE_LIVE leaves; it stays"
    assert {left % name for name in "nlf"} <= set(first.stderr.splitlines())
    assert re.search(rf"^gotrace: {boxes}/t\.out: \d+ events more than the file of process \d+ had$", first.stderr, re.M), first
    assert f"{boxes}: 2 recovered, 1 removed that had no events, 1 of running processes left, 3 not recovered" in first.stderr
    assert f"{boxes}: 0 recovered, 0 removed that had no events, 1 of running processes left, 3 not recovered" in second.stderr
    assert {path.name for path in boxes.glob("*.live")} == {"n.live", "l.live", "f.live", "r.out.live"}
    assert (boxes / f"c.out.{its}").read_text() == "of something else"
    check_readers(boxes / "t.out", boxes / f"c.out.{its}.{its}", format=format)
    (check if int(format[4:]) >= 11 else check_yields)(tmp_path, boxes / "t.out")
    assert "nap" in proc.run([GOTRACE, "top", boxes / f"c.out.{its}.{its}"]).ok().stdout
    assert clean(boxes).returncode == 0 and not (boxes / "r.out.live").exists()  # it is gone by now


def test_a_directory_where_the_traces_are_elsewhere(tmp_path):
    (tmp_path / "boxes").mkdir()
    kill(tmp_path, live=tmp_path / "boxes")
    clean(tmp_path / "boxes").ok()
    assert not list((tmp_path / "boxes").iterdir())
    check(tmp_path, tmp_path / "t.out")
    check_readers(tmp_path / "t.out")


def test_a_trace_that_another_process_writes(tmp_path):
    """It has the lock of the file, which has been its own since."""
    kill(tmp_path)
    with (tmp_path / "t.out").open("rb") as trace:
        fcntl.flock(trace, fcntl.LOCK_EX)
        before = trace.read()
        result = clean(tmp_path)
    assert result.returncode == 1 and f"{tmp_path}/t.out: its process runs" in result.stderr, result
    assert f"{tmp_path}/t.out.live: not recovered; it stays" in result.stderr
    assert (tmp_path / "t.out").read_bytes() == before and (tmp_path / "t.out.live").exists()
    clean(tmp_path).ok()
    check(tmp_path, tmp_path / "t.out")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_box_of_somebody_elses_says_nothing_of_where_to_write(tmp_path):
    (tmp_path / "boxes").mkdir()
    kill(tmp_path, live=tmp_path / "boxes")
    os.chown(tmp_path / "boxes/t.out.live", 12345, 12345)
    before = (tmp_path / "t.out").read_bytes()
    result = clean(tmp_path / "boxes")
    assert result.returncode == 1 and "another user's, and the trace is not beside it" in result.stderr
    assert (tmp_path / "t.out").read_bytes() == before and [path.name for path in (tmp_path / "boxes").iterdir()] == ["t.out.live"]


def test_a_symbolic_link_in_the_place_of_the_trace(tmp_path):
    kill(tmp_path)
    trace = (tmp_path / "t.out").rename(tmp_path / "other.out")
    (tmp_path / "t.out").symlink_to(trace)
    before = trace.read_bytes()
    result = clean(tmp_path)
    assert result.returncode == 1 and "is a symbolic link, and stays as it is" in result.stderr
    assert trace.read_bytes() == before and (tmp_path / "t.out").is_symlink() and (tmp_path / "t.out.live").exists()


@pytest.mark.parametrize("argv", [["--clean=/nonexistent"], ["--clean=.", "x.live"], ["--clean=.", "-o", "x"], ["--clean"]], ids=str)
def test_clean_is_refused(argv):
    result = proc.run([GOTRACE, "recover", *argv])
    assert result.returncode == (1 if argv == ["--clean=/nonexistent"] else 2) and result.stderr


def test_an_empty_box_in_a_family(tmp_path):
    """All others are merged; nothing is left."""
    program = proc.compile("#include <signal.h>\nint main(void) { return raise(SIGKILL); }", tmp_path / "killed")
    argv = [GOTRACE, "-f", "--live=on", "-o", tmp_path / "t.out", "--", "sh", "-c", f"GOTRACE_START=manual {program}; {PROGRAMS / 'threads'} 2; :"]
    result = proc.run(argv).ok()
    assert f"gotrace: {tmp_path}/t.out: " in result.stderr and " processes; next: " in result.stderr, result
    assert {path.name for path in tmp_path.iterdir()} == {"t.out", "killed", "killed.c"}
    check_readers(tmp_path / "t.out")


@pytest.mark.parametrize("more", [{}, RING, SCHED], ids=["file", "ring", "sched"])
@pytest.mark.parametrize("format", FAMILIES)
def test_a_damaged_box(tmp_path, format, more):
    """Any bytes of it may be any others."""
    chance = seeded(moments=True)
    kill(tmp_path, chance=chance, format=format, **more)
    box = tmp_path / "t.out.live"
    with open(box, "r+b") as file:
        file.seek(32)
        buffers, tables_end, buffers_end, kept = struct.unpack("<4Q", file.read(32))
        places = [(32, PAGE // 8), (PAGE, 200), (16 * PAGE, tables_end - 16 * PAGE), (buffers, buffers_end - buffers)]
        places += [(kept, PAGE), (kept, 1 << 20)] if more == RING else []
        for _ in range(12):
            was = []
            for start, size in places:
                at = start + chance.randrange(size - 8)
                file.seek(at)
                was.append((at, file.read(8)))
                file.seek(at)
                file.write(chance.randbytes(chance.randrange(1, 8)))
            file.flush()
            result = recover(box, tmp_path / "all.out")
            assert result.returncode in (0, 1), str(result)
            for at, data in reversed(was):
                file.seek(at)
                file.write(data)


def waits_of_others(trace, thread):
    sql = "SELECT count(*) AS n FROM waits JOIN threads ON threads.id = thread_id WHERE tid != %d" % thread
    return json.loads(proc.run([GOTRACE, "sql", "--json", trace, sql]).ok().stdout)[0]["n"]


@pytest.mark.parametrize("format", gotools.some("go1.5", of=["go1.5", "go1.11", "go1.21"]))
def test_events_that_contradict_each_other(tmp_path, format):
    """
    Where a thread's events are missing, the waits that it ended have no end: a message says so, and the trace is not whole;
    but most of what the others did is in it.
    """
    room, gen, most, packed = 64 << 10, 16, 24, (1 << 32) - 1  # of a buffer; where its generation stands
    kill(tmp_path, format=format)
    box, whole, part = (tmp_path / name for name in ("t.out.live", "whole.out", "part.out"))
    recover(box, whole).ok()
    said = 0
    with open(box, "r+b") as file:
        buffers, _, end = struct.unpack("<3Q", os.pread(file.fileno(), 24, 32))
        for at in list(range(buffers, end, room))[:most]:
            was = os.pread(file.fileno(), 8, at + gen)
            os.pwrite(file.fileno(), bytes(4), at + gen)
            result = recover(box, part).ok()
            os.pwrite(file.fileno(), was, at + gen)
            _, thread = struct.unpack("<2I", was)
            if "events contradict others" in result.stderr:
                said += 1
                assert "whole: no part" not in proc.run([GOTRACE, "info", part]).ok().stdout
                check_readers(part, format=format)
                assert thread == packed or waits_of_others(part, thread) > waits_of_others(whole, thread) / 3
    assert said


def extents(file):
    """Where a sparse file has data."""
    found, at, size = [], 0, os.fstat(file.fileno()).st_size
    while at < size:
        try:
            start = os.lseek(file.fileno(), at, os.SEEK_DATA)
        except OSError:  # a hole to its end
            break
        at = os.lseek(file.fileno(), start, os.SEEK_HOLE)
        found.append((start, at))
    return found


def mutate(file, places, chance):
    """Wrong bytes, numbers, and links that lead elsewhere, at words of it that are not zero; the replaced value."""
    was = []
    while len(was) < chance.randrange(1, 9):
        start, end = chance.choice(places)
        at = chance.randrange(start, end - 8) & ~7
        data = os.pread(file.fileno(), 8, at)
        if data == bytes(8) and chance.randrange(20):
            continue
        start, end = chance.choice(places)
        other = os.pread(file.fileno(), 8, chance.randrange(start, end - 8) & ~7)
        near = (int.from_bytes(data, "little") + chance.choice([-8, -1, 1, 8, 4096, 1 << 32])) % (1 << 64)
        one, byte = chance.randrange(8), chance.choice([0, 1, 2, 0x7F, 0x80, 0xFF, chance.randrange(256)])
        new = [bytes(8), b"\xff" * 8, other, near.to_bytes(8, "little"), data[:one] + bytes([byte]) + data[one + 1 :]]
        was.append((at, data))
        os.pwrite(file.fileno(), chance.choice(new), at)
    return was


@pytest.mark.limit(300)
@pytest.mark.parametrize("more", [{}, RING], ids=["file", "ring"])
@pytest.mark.parametrize("format", FAMILIES)
def test_mutants_of_a_box(tmp_path, format, more):
    """Nothing that a sanitizer sees, whatever is in a box. Of each kind so many: MUTANTS."""
    kill(tmp_path, format=format, **more)
    chance = seeded("FUZZ_FIRST", 1, format)
    with open(tmp_path / "t.out.live", "r+b", buffering=0) as file:
        found = extents(file)
        # Of each extent the begin, too, and all the tables' and the head's: little beside the buffers'.
        places = found + [(start, start + PAGE) for start, _ in found] + [(0, PAGE), (PAGE, 2 * PAGE)] * len(found)
        for _ in range(int(os.environ.get("MUTANTS", 10))):
            was = mutate(file, places, chance)
            result = proc.run([SANITIZED, "recover", tmp_path / "t.out.live", "-o", tmp_path / "all.out"], env=SANITIZER, timeout=60)
            assert result.returncode in (0, 1), (was, str(result))
            for at, data in reversed(was):
                os.pwrite(file.fileno(), data, at)


@pytest.mark.parametrize("more", [{}, SCHED], ids=["file", "sched"])
@pytest.mark.parametrize("format", FAMILIES)
def test_a_damaged_trace(tmp_path, format, more):
    """The same of what the box goes on with."""
    chance = seeded(moments=True)
    kill(tmp_path, chance=chance, format=format, **more)
    data = (tmp_path / "t.out").read_bytes()
    for _ in range(20):
        at = chance.randrange(16, len(data) - 8)
        (tmp_path / "t.out").write_bytes(data[:at] + chance.randbytes(8) + data[at + 8 :])
        result = recover(tmp_path / "t.out.live", tmp_path / "all.out")
        assert result.returncode in (0, 1), str(result)


@pytest.mark.parametrize("format", FAMILIES)
def test_what_lost_nothing_is_whole(tmp_path, format):
    """Where the file went away a part is missing."""
    child = spawn(tmp_path, "wait", format=format)
    proc.until(lambda: (tmp_path / "t.out").exists(), child=child)
    child.kill()
    end(child)
    recover(tmp_path / "t.out.live", tmp_path / "all.out").ok()
    assert "file         whole: no part of it is missing" in proc.run([GOTRACE, "info", tmp_path / "all.out"]).ok().stdout
    proc.run([GOTRACE, "info", "--check", tmp_path / "all.out"]).ok()
    (tmp_path / "t.out").unlink()
    recover(tmp_path / "t.out.live", tmp_path / "part.out").ok()
    assert "without a mark of its end" in proc.run([GOTRACE, "info", tmp_path / "part.out"]).ok().stdout
