"""A recording in several files: each is a trace of its own, together they have all that happened, and only old ones go."""

import csv
import io
import os
import re
import signal
import struct
import subprocess
import sys

import pytest

from lib import AARCH64, BUILT, PROGRAMS, gotools, proc

GOTRACE = BUILT / "gotrace"
ROTATED = PROGRAMS / "rotated"  # it says what has happened


def numbers(paths):
    """t.out, t.out.2, t.out.10: in the order in which they were begun."""
    return sorted(paths, key=lambda path: int((re.search(r"\.(\d+)$", str(path)) or [0, 1])[1]))


def files(directory):
    return numbers(path for path in directory.iterdir() if re.fullmatch(r"t\.out(\.\d+)?", path.name))


def third(directory):
    """The program goes on until that file is there, however late the library's thread gets a CPU."""
    return directory / "t.out.3"


def ask(trace, statement):
    return list(csv.reader(io.StringIO(proc.run([GOTRACE, "sql", "--csv", trace, statement]).ok().stdout)))[1:]


def read_by_all(format, traces):
    for go in gotools.readers_of(format).values():
        result = proc.run([gotools.read_all(go), *traces], timeout=120).ok()
        assert not result.stdout, result.stdout[:2000]


def truth(result):
    """pid → what → number; the logs of each thread by its number."""
    said = {}
    for pid, what, *rest in (line.split() for line in result.stdout.splitlines()):
        said.setdefault(pid, {})[what if what != "logs" else rest[0]] = int(rest[-1])
    return said


def logs_of(traces, category):
    """thread → how many: all of a thread's are numbered from 1 on, and each is in one file, once, in their order."""
    counts = {}
    statement = f"""SELECT thread, COUNT(*), COUNT(DISTINCT n), MIN(n), MAX(n) FROM (
        SELECT substr(message, 1, 1) AS thread, CAST(substr(message, 3) AS INT) AS n FROM logs
        WHERE category = '{category}') GROUP BY 1"""
    for trace in traces:
        for thread, *numbers in ask(trace, statement):
            n, distinct, first, last = map(int, numbers)
            before = counts.get(thread, 0)
            assert (distinct, first, last) == (n, before + 1, before + n), (trace, thread)
            counts[thread] = last
    return counts


def check_logs(traces, written):
    assert logs_of(traces, "seam") == {thread: n for thread, n in written.items() if thread.isdigit() and n}


def overlaps(traces):
    """ns: threads move on to the next file one after the other, so one ends a little after the next begins. None: not told."""
    spans = [ask(trace, "SELECT began_ns, began_ns + duration_ns FROM trace WHERE began_ns IS NOT NULL") for trace in traces]
    if not all(spans):
        return None
    return sum(max(0, int(this[0][1]) - int(following[0][0])) for this, following in zip(spans, spans[1:]))


def check_parts(traces, table, ns, places):
    """The one wait or call of a thread that lasts all the time is a part of each file, and these add up."""
    begun = f"SELECT thread_id FROM {table} JOIN stacks ON stacks.id = stack_id WHERE place LIKE '%<- %all_the_time%'"
    thread = next(filter(None, (ask(trace, f"{begun} ORDER BY ns DESC") for trace in traces)))[0][0]
    longest = f"(SELECT *, MAX(ns) FROM {table} WHERE thread_id = {thread})"
    rows = [ask(trace, f"SELECT ns, ended, place FROM {longest} LEFT JOIN stacks ON stacks.id = stack_id")[0] for trace in traces]
    while not rows[0][0]:
        del rows[0]  # it ended before that had begun
    while not rows[-1][0] or (places and " <- " not in rows[-1][2]):
        del rows[-1]  # it began when that was over; its thread may have stood in a run queue then
    assert [ended for _, ended, _ in rows] == ["0"] * (len(rows) - 1) + ["1"] and len(rows) > 1, rows
    total, twice = sum(int(part) for part, *_ in rows), overlaps(traces)
    assert 0.98 * ns < total and (twice is None or total < 1.02 * ns + twice), (ns, twice, rows)
    assert not places or all("all_the_time" in place for *_, place in rows), rows


def check_signals(traces, written):
    told = "SELECT coalesce(SUM(signals), 0) FROM signals WHERE variable = 'ball' AND place LIKE '%play%'"
    assert sum(int(ask(trace, told)[0][0]) for trace in traces) == written["signals"]


@pytest.mark.measured
@pytest.mark.limit(180)
@pytest.mark.parametrize("format", gotools.some("go1.5"))
def test_nothing_is_lost_at_the_seam(traced, tmp_path, format):
    result = traced([ROTATED, 1500, third(tmp_path)], env={"GOTRACE_ROTATE": "200ms", "GOTRACE_FORMAT": format}).ok()
    traces = files(tmp_path)
    read_by_all(format, traces)
    said, = truth(result).values()
    if format not in ("go1.5", "go1.7", "go1.8", "go1.9", "go1.10"):  # which know no logs
        check_logs(traces, said)
    for table in ("waits", "calls"):
        check_parts(traces, table, said["waited"], places=format in ("go1.23", "go1.25", "go1.26"))
    if format != "go1.5":
        check_signals(traces, said)


@pytest.mark.measured
def test_with_cpu_state_samples_and_names_to_come(traced, tmp_path):
    env = {"GOTRACE_SCHED": "on", "GOTRACE_CPU_HZ": "500", "GOTRACE_NAMES": "later", "GOTRACE_ROTATE": "200ms"}
    result = traced([ROTATED, 1000, third(tmp_path)], env=env).ok()
    traces = files(tmp_path)
    assert len(traces) > 2
    read_by_all("go1.23", traces)
    said, = truth(result).values()
    check_logs(traces, said)
    check_parts(traces, "waits", said["waited"], places=True)


# --- which files there are


def test_exit_line(traced, tmp_path):
    result = traced([ROTATED, 1000, third(tmp_path)], env={"GOTRACE_ROTATE": "200ms"}).ok()
    traces = files(tmp_path)
    kib = sum(trace.stat().st_size for trace in traces) / 1024
    expected = f"gotrace: {traces[-1]}: {kib:.1f} KiB in {len(traces)} files, from t.out on, "
    assert result.stderr.startswith(expected) and len(traces) > 2, result.stderr
    assert f"nothing lost; next: {GOTRACE} why {traces[-1]}" in result.stderr


def test_only_the_newest_are_kept(traced, tmp_path):
    result = traced([ROTATED, 1500], env={"GOTRACE_ROTATE": "100ms", "GOTRACE_KEEP": "3", "GOTRACE_FORMAT": "go1.5"}).ok()
    traces = files(tmp_path)
    last = int(traces[-1].suffix[1:])
    assert [trace.name for trace in traces] == [f"t.out.{n}" for n in range(last - 2, last + 1)]
    assert {path.name for path in tmp_path.glob("*.elf")} == {f"{trace.name}.elf" for trace in traces}
    assert f" in {last} files, of which the last 3 are kept, from t.out.{last - 2} on," in result.stderr
    read_by_all("go1.5", traces)


def running(tmp_path, env, ms=20000, output="t.out"):
    return proc.spawn([ROTATED, ms], env=proc.traced_env(tmp_path / output, env), stderr=subprocess.PIPE, text=True)


def await_file(path):
    proc.until(lambda: path.exists())


def test_what_is_not_ours_is_not_removed(tmp_path):
    """Files with other contents, or another file's name, stay; so do those of a run before that are not reached."""
    old = tmp_path / "t.out.99999"
    old.write_text("of another run")
    child = running(tmp_path, {"GOTRACE_ROTATE": "300ms", "GOTRACE_KEEP": "3"})
    await_file(tmp_path / "t.out.3")
    child.send_signal(signal.SIGSTOP)
    os.waitpid(child.pid, os.WUNTRACED)
    *_, mine, longer, current, _ = files(tmp_path)
    mine.unlink()
    mine.write_text("mine")  # perhaps with the same inode
    with open(longer, "ab") as file:
        file.write(b"more")
    child.send_signal(signal.SIGCONT)
    await_file(tmp_path / f"t.out.{int(current.suffix[1:]) + 4}")
    proc.kill_group(child)
    assert mine.read_text() == "mine" and longer.exists()
    assert not current.exists()
    assert old.read_text() == "of another run"


def test_by_size(traced, tmp_path):
    result = traced([ROTATED, 2000, third(tmp_path)], env={"GOTRACE_ROTATE": "1h,1M"}).ok()
    traces = files(tmp_path)
    assert len(traces) > 2
    for trace in traces[:-1]:
        assert 0.8 < trace.stat().st_size / (1 << 20) < 4, trace
    check_logs(traces, *truth(result).values())


def test_names_of_files(traced, tmp_path):
    result = proc.traced([ROTATED, 1000], tmp_path / "%n-%t.out", env={"GOTRACE_ROTATE": "100ms"}).ok()
    names = sorted((path.name for path in tmp_path.iterdir()), key=lambda name: int(name.split("-")[0]))
    assert [int(name.split("-")[0]) for name in names] == list(range(1, len(names) + 1)) and len(names) > 2
    assert f"{names[-1]}: " in result.stderr
    assert all(re.fullmatch(r"\d+-\d{10}\.out", name) for name in names)


def test_children_have_their_own(tmp_path):
    result = proc.traced([ROTATED, 800, "fork"], tmp_path / "t.out", env={"GOTRACE_ROTATE": "200ms", "GOTRACE_KEEP": "99"}).ok()
    said = truth(result)
    assert len(said) == 2
    of_child = {pid for pid in said if (tmp_path / f"t.out.{pid}").exists()}
    assert len(of_child) == 1
    for pid, written in said.items():
        ours = rf"t\.out\.{pid}(\.\d+)?" if pid in of_child else r"t\.out(\.\d)?"
        traces = numbers(path for path in tmp_path.iterdir() if re.fullmatch(ours, path.name))
        traces.sort(key=lambda path: (len(path.name), path.name))
        assert len(traces) > 1
        check_logs(traces, written)


def test_started_and_stopped(tmp_path):
    """Files go on being counted from one recording to the next."""
    child = running(tmp_path, {"GOTRACE_ROTATE": "200ms", "GOTRACE_START": "manual"})
    start = [GOTRACE, "start", str(child.pid)]
    proc.until(lambda: proc.run(start).returncode == 0, child=child)  # it may not have come to main yet
    for again in range(2):
        if again:
            proc.run(start).ok()
        last = len(files(tmp_path))
        await_file(tmp_path / f"t.out.{last + 2}")
        proc.run([GOTRACE, "stop", str(child.pid)]).ok()
    traces = files(tmp_path)
    proc.kill_group(child)
    assert [trace.name for trace in traces] == ["t.out"] + [f"t.out.{n}" for n in range(2, len(traces) + 1)]
    read_by_all("go1.23", traces)


def test_a_program_without_threads(tmp_path):
    """It writes itself, when it makes a call that may block."""
    naps = "import time\nfor i in range(60): time.sleep(0.01)"
    proc.traced([sys.executable, "-c", naps], tmp_path / "t.out", env={"GOTRACE_ROTATE": "100ms"}).ok()
    traces = files(tmp_path)
    assert len(traces) > 2
    read_by_all("go1.23", traces)
    begun = [int(ask(trace, "SELECT COUNT(*) FROM waits WHERE kind = 'sleep'")[0][0]) for trace in traces]
    assert max(begun) < 60, begun  # Python may take longer to start than the first file lasts
    ends = [int(ask(trace, "SELECT COUNT(*) FROM waits WHERE kind = 'sleep' AND ended")[0][0]) for trace in traces]
    assert sum(ends) == 60, ends


# --- where it cannot be


def test_where_there_can_be_no_other_file(traced, tmp_path):
    (tmp_path / "t.out.2").mkdir()
    (tmp_path / "t.out.3").symlink_to("nowhere")
    result = traced([ROTATED, 800], env={"GOTRACE_ROTATE": "200ms"}).ok()
    assert result.stderr.count("recording goes on in") == 1
    assert f"GOTRACE_ROTATE: {tmp_path}/t.out.2: Is a directory; recording goes on in {tmp_path}/t.out\n" in result.stderr
    traces = [trace for trace in files(tmp_path) if trace.name not in ("t.out.2", "t.out.3")]
    assert len(traces) > 1
    read_by_all("go1.23", traces)
    check_logs(traces, *truth(result).values())


def test_a_pipe_is_not_rotated(tmp_path):
    os.mkfifo(tmp_path / "t.out")
    env = proc.traced_env(tmp_path / "t.out", {"GOTRACE_ROTATE": "100ms"})
    child = proc.spawn([ROTATED, 500], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    data = (tmp_path / "t.out").read_bytes()
    output, said = child.communicate(timeout=20)
    assert f"GOTRACE_ROTATE: {tmp_path}/t.out: no regular file; recording goes on in" in said
    (tmp_path / "t.out").unlink()
    (tmp_path / "t.out").write_bytes(data)
    assert [path.name for path in tmp_path.iterdir()] == ["t.out"]
    read_by_all("go1.23", [tmp_path / "t.out"])


@pytest.mark.parametrize(
    "env, complaint",
    [
        ({"GOTRACE_ROTATE": "10ms"}, "GOTRACE_ROTATE=10ms is not a time or a size with a unit: 1h, 1G or 1h,1G; using none"),
        ({"GOTRACE_ROTATE": "100K"}, "GOTRACE_ROTATE=100K is not a time or a size with a unit: 1h, "),
        ({"GOTRACE_ROTATE": "1h", "GOTRACE_KEEP": "-1"}, "GOTRACE_KEEP=-1 is not a number up to 10000; using 0"),
        ({"GOTRACE_ROTATE": "1h", "GOTRACE_RING": "1M"}, "GOTRACE_ROTATE: not with GOTRACE_RING"),
        ({"GOTRACE_KEEP": "3"}, "GOTRACE_KEEP: nothing is removed without GOTRACE_ROTATE"),
    ],
)
def test_what_is_refused(traced, env, complaint):
    result = traced([PROGRAMS / "threads", "2"], env=env).ok()
    assert result.stderr.startswith(f"gotrace: {complaint}"), result.stderr
    gotools.check(result.trace)


def test_a_family_is_one_file(tmp_path):
    result = proc.run([GOTRACE, "-f", "--rotate=1h", "-o", tmp_path / "t.out", "true"])
    assert result.returncode == 125 and "--rotate: of a family comes one file" in result.stderr
    assert not list(tmp_path.iterdir())


# --- killed


@pytest.mark.chance
@pytest.mark.skipif(AARCH64, reason="qemu does not take space beforehand")
@pytest.mark.parametrize("more", [{}, {"GOTRACE_SCHED": "on"}], ids=["", "sched"])
@pytest.mark.parametrize("format", ["go1.21", "go1.23"])
def test_killed(tmp_path, format, more):
    """All files but the newest are whole, and with the black box nothing of that is lost."""
    settings = {"GOTRACE_FORMAT": format, "GOTRACE_ROTATE": "100ms", "GOTRACE_LIVE": "on"} | more
    env = proc.traced_env(tmp_path / "t.out", settings)
    child = proc.spawn([PROGRAMS / "killed", tmp_path / "journal", "wait"], env=env, stderr=subprocess.PIPE)
    await_file(tmp_path / "t.out.5")
    proc.kill_group(child)
    traces, last = files(tmp_path), tmp_path / "last.out"
    proc.run([GOTRACE, "recover", tmp_path / "t.out.live", "-o", last]).ok()
    with open(traces[-1], "rb") as begun, open(last, "rb") as recovered:
        if begun.read(1000) == recovered.read(1000):
            traces.pop()  # the one that was written then
    assert all(ask(trace, "SELECT whole FROM trace") == [["1"]] for trace in traces)
    traces.append(last)
    read_by_all(format, traces)
    found, data = logs_of(traces, "journal"), (tmp_path / "journal").read_bytes()
    written = {str(i): struct.unpack_from("<Q", data, i * 64)[0] for i in range(8)}
    assert found.keys() == written.keys()
    assert all(0 <= found[thread] - written[thread] <= 1 for thread in found), (found, written)


@pytest.mark.chance
@pytest.mark.skipif(AARCH64, reason="qemu does not take space beforehand")
def test_killed_and_started_again(tmp_path):
    """The file that was written then gets another name, not the first one."""
    env = {"GOTRACE_ROTATE": "300ms", "GOTRACE_LIVE": "on"}
    child = running(tmp_path, env)
    await_file(tmp_path / "t.out.3")
    proc.kill_group(child)
    first, newest = (tmp_path / "t.out").read_bytes(), files(tmp_path)[-1]
    again = running(tmp_path, env, ms=100)
    said = again.communicate(timeout=20)[1]
    assert f"process {child.pid} did not end well, and has left {tmp_path}/t.out.{child.pid}.live" in said
    assert (tmp_path / "t.out").read_bytes() != first and not newest.exists()
    proc.run([GOTRACE, "recover", tmp_path / f"t.out.{child.pid}.live", "-o", tmp_path / "last.out"]).ok()
    read_by_all("go1.23", [tmp_path / "last.out", tmp_path / f"{newest.name}.{child.pid}"])
