"""gotrace -f: one trace of a program and all its descendants."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from lib import PROGRAMS, SINGLE, SOURCES, gotools, proc, reports
from lib.reports import GOTRACE


def family(*argv, trace, **options):
    return proc.run([GOTRACE, "-f", "-o", trace, "--", *argv], **options)


def names(trace):
    """Of its threads' processes, without their numbers."""
    return sorted({e.fields["Label"].strip('"').split(".")[0] for e in gotools.parse(trace) if e.kind == "Label"})


@pytest.mark.measured
def test_pipeline(tmp_path):
    script = "seq 100000 | sort -n | tail -1; (sleep 0.05); exit 3"
    result = family("sh", "-c", script, trace=tmp_path / "t.out")
    assert (result.returncode, result.stdout) == (3, "100000\n")
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"gotrace: {tmp_path / 't.out'}: ") and ", 5 processes; " in line
    assert [p.name for p in tmp_path.iterdir()] == ["t.out"]
    gotools.check_all(tmp_path / "t.out")
    assert {"sh", "seq", "sort", "tail", "sleep"} <= set(names(tmp_path / "t.out"))
    assert any(ns >= 50e6 for ns, _, _ in reports.waits(tmp_path / "t.out", "sleep"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_ends_as_the_program(tmp_path, number):
    result = family("sh", "-c", f"sleep 0; kill -{int(number)} $$", trace=tmp_path / "t.out")
    assert result.returncode == -number, result
    assert (tmp_path / "t.out").exists() and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("size", ["4K", "1"])
def test_a_loss_names_the_trace_that_is_there(tmp_path, size):
    """Not the process's own, which is in a folder that is gone by then; and which process it was."""
    env = {"GOTRACE_MAX_SIZE": size}
    result = family("sh", "-c", f"echo $$; exec {PROGRAMS / 'threads'} 200", trace=tmp_path / "t.out", env=env)
    lines = [line for line in result.stderr.splitlines() if "GOTRACE_MAX_SIZE" in line]
    process = result.stdout.split()[0]
    assert lines and all(line.startswith(f"gotrace: {tmp_path / 't.out'}, process {process}: ") for line in lines), result
    assert "t.out." not in result.stderr


def test_orphans_are_waited_for(tmp_path):
    read, write = os.pipe()
    argv = [GOTRACE, "-f", "-o", tmp_path / "t.out", "--", "sh", "-c", "cat <&3 & exec 3<&-; echo begun"]
    child = proc.spawn(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=lambda: os.dup2(read, 3), pass_fds=[3])
    os.close(read)
    assert child.stdout.readline() == "begun\n"
    os.close(write)
    assert child.wait(20) == 0 and " 2 processes; " in child.stderr.read()


def test_orphans_may_be_left(tmp_path):
    """The orphan executes nothing: a trace of what it was before would count as a process, if anything was recorded there."""
    argv = [GOTRACE, "-f", "-o", tmp_path / "t.out", "--", "sh", "-c", "exec 3<&0; read line <&3 & echo $!"]
    child = proc.spawn(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    orphan = int(child.stdout.readline())
    proc.until(lambda: f"PPid:\t{child.pid}\n" in Path(f"/proc/{orphan}/status").read_text())  # the shell has ended
    while child.poll() is None:
        child.send_signal(signal.SIGTERM)  # again: gotrace may not have noticed the shell's end, or be on its way to wait
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(0.2)
    os.kill(orphan, signal.SIGKILL)
    assert child.returncode == 0 and " 1 process; " in child.stderr.read()


def test_what_is_forwarded(tmp_path):
    script = "trap 'echo caught; exit 7' TERM; echo ready; while :; do sleep 0.01; done"
    argv = [GOTRACE, "-f", "-q", "-o", tmp_path / "t.out", "--", "sh", "-c", script]
    child = proc.spawn(argv, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGTERM)
    assert child.wait(20) == 7 and child.stdout.read() == "caught\n"
    assert proc.run([gotools.read_all(gotools.find()), tmp_path / "t.out"]).ok()


def test_a_pattern_is_refused(tmp_path):
    result = family("true", trace=tmp_path / "%p.out")
    assert result.returncode == 125 and "no %" in result.stderr and not list(tmp_path.iterdir())


def test_what_cannot_run(tmp_path):
    result = family("/nowhere/at/all", trace=tmp_path / "t.out")
    assert result.returncode == 127 and not list(tmp_path.iterdir())


NOBODY = 65534
SERVER = "import os; os.setgid(65534); os.setuid(65534); print('ready', flush=True); input()"


@pytest.fixture
def public():
    """A folder that all users get into."""
    with tempfile.TemporaryDirectory(prefix="gotrace-") as path:
        os.chmod(path, 0o755)
        yield Path(path)


@contextlib.contextmanager
def server(folder):
    """A server that root has started under -f and that has given up being root; and where the traces are."""
    argv = [GOTRACE, "-f", "-o", folder / "t.out", "--", sys.executable, "-c", SERVER]
    child = proc.spawn(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    (outer,) = folder.glob("t.out.*")
    yield child, outer
    child.stdin.write("\n")
    child.stdin.close()
    assert child.wait(20) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's folder is open to other users")
def test_strangers_put_nothing_into_it(public):
    """A file of another user would be merged, or be in the way of that. Processes that are no longer root's do write."""
    with server(public) as (child, outer):
        argv = [sys.executable, "-c", (SOURCES / "family/stranger.py").read_text(), outer]  # that user may not read the sources
        stranger = subprocess.run(argv, capture_output=True, text=True, user=NOBODY, group=NOBODY, extra_groups=[], timeout=20)
        assert stranger.stdout == "refused\nrefused\n", stranger
    (line,) = child.stderr.read().splitlines()
    assert ", 1 process; " in line and [p.name for p in public.iterdir()] == ["t.out"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's folder is open to other users")
def test_what_is_no_file_is_left_out(public):
    with server(public) as (child, outer):
        (inner,) = outer.iterdir()
        os.mkfifo(inner / "2-1-fifo")
        (inner / "3-1-link").symlink_to("/etc/passwd")
    said = child.stderr.read().splitlines()
    left_out = [f"gotrace: {inner / name} is no regular file, and is left out" for name in ("2-1-fifo", "3-1-link")]
    assert sorted(said[:2]) == left_out and ", 1 process; " in said[2] and len(said) == 3, said
    assert [p.name for p in public.iterdir()] == ["t.out"]


@pytest.mark.parametrize("format", ["go1.23", "go1.21"])
def test_who_becomes_another_program(tmp_path, format):
    """That one is made by the thread that has called exec, in the process that it was."""
    program = SINGLE / "family/becomes"
    result = family(program, trace=tmp_path / "t.out", env={"GOTRACE_FORMAT": format}).ok()
    gotools.check_all(tmp_path / "t.out")
    events = gotools.parse(tmp_path / "t.out")
    caller = int(result.stdout)
    made = [e.goid for e in events if e.is_go("NotExist", "Runnable") and e.m == caller]
    mains = [e for e in events if e.kind == "Label" and e.fields["Label"].strip('"').endswith("/main")]
    assert made == [mains[-1].g] and mains[-1].g != mains[0].g, (made, mains)
    states = [(e.old, e.new) for e in events if e.goid == made[0]]
    assert ("Waiting", "Runnable") in states, states  # it begins to be recorded


def mains_of(events):
    """The processes' main threads, by when they are first told of."""
    return list(dict.fromkeys(e.g for e in events if e.kind == "Label" and e.fields["Label"].strip('"').endswith("/main")))


@pytest.mark.parametrize("threads", [[], ["with"]], ids=["alone", "threads"])
def test_who_becomes_itself(tmp_path, threads):
    """Each time it has a trace, and is made by what it was before."""
    program = SINGLE / "family/again"
    result = family(program, "4", *threads, trace=tmp_path / "t.out")
    assert result.returncode == 3 and ", 1 process; " in result.stderr, result
    waits = reports.waits(tmp_path / "t.out", "sleep")
    assert sum(n for _, n, what in waits if what.startswith("usleep")) == 5, waits
    events = gotools.parse(tmp_path / "t.out")
    mains = mains_of(events)
    made = {e.goid: e.g for e in events if e.is_go("NotExist", "Runnable")}
    assert [made[g] for g in mains[1:]] == mains[:-1], (mains, made)


@pytest.mark.parametrize("format", ["go1.23", "go1.21"])
def test_who_executes_at_once(tmp_path, format):
    """A child that is another program before it has a trace is made by the thread that forked."""
    program = SINGLE / "family/makes"
    result = family(program, trace=tmp_path / "t.out", env={"GOTRACE_FORMAT": format}).ok()
    assert ", 3 processes; " in result.stderr
    gotools.check_all(tmp_path / "t.out")
    events = gotools.parse(tmp_path / "t.out")
    mains = mains_of(events)
    made = [e.goid for e in events if e.is_go("NotExist", "Runnable") and e.m == int(result.stdout)]
    assert len(mains) == 3 and made == mains[1:], (mains, made)


@pytest.mark.measured
@pytest.mark.parametrize("through", [[], ["socket"]], ids=["pipe", "socket"])
def test_who_answers_is_inferred(tmp_path, through):
    """Through pipes and sockets a wait has no recorded waker; `why` finds out who answers, and says how."""
    trace = tmp_path / "t.out"
    answered = int(family(SINGLE / "family/asks", *through, trace=trace).ok().stdout)
    crossing = [e for e in gotools.parse(trace) if e.is_go("Waiting", "Runnable") and e.g not in (-1, e.goid)]
    assert not crossing, crossing
    why = json.loads(proc.run([GOTRACE, "why", "--json", trace]).ok().stdout)
    path = sum(row["ns"] for row in why["path"]["rows"] if row["function"] == "answer" and row["what"] == "usleep")
    assert why["inferred_wakers"] >= 100 and abs(path / answered - 1) <= 0.2, f"{why['inferred_wakers']} inferred, {path} ns of {answered}"
    page = " ".join(proc.run([GOTRACE, "why", trace]).ok().stdout.split())
    guess = re.search(r"\(The waker of (\d+) waits in read <- (main|answer) \(asks.c:\d+\) is a guess from their end times: (\S+)\. So is that of (\d+) more\.\)", page)
    works = {row["function"]: row["most"] for row in why["path"]["rows"] if row["what"] == "usleep"}
    assert guess and int(guess[1]) + int(guess[4]) == why["inferred_wakers"], page
    assert guess[3] == works["answer" if guess[2] == "main" else "main"], (guess, works)


# What prog/lineage.c becomes: forks, then programs that have traces of their own, by exec of any thread, again and again.
LINEAGES = "fse fsese fste Fse Fstse vsese psese pste csese osese dsese fsefsese fsesk fefse".split()


@pytest.mark.parametrize("format", gotools.some("go1.5"))
@pytest.mark.parametrize("steps", LINEAGES)
def test_lineages(tmp_path, steps, format):
    """Whoever reads that finds each program once, made before it begins."""
    trace = tmp_path / "t.out"
    result = family(PROGRAMS / "lineage", steps, trace=trace, env={"GOTRACE_FORMAT": format}).ok()
    assert [path for path in tmp_path.iterdir() if path.suffix not in (".out", ".elf")] == [], result
    for go in gotools.readers_of(format).values():
        gotools.check(trace, go=go)


@pytest.mark.parametrize("steps", ["fse", "fsese", "Fstse", "vsese"])
def test_programs_of_a_lineage_are_made_once(tmp_path, steps):
    """Each by the thread that was the one before it, or forked it."""
    result = family(PROGRAMS / "lineage", steps, trace=tmp_path / "t.out").ok()
    programs = len(result.stdout.splitlines())
    forked = steps.lower().startswith("f")  # a child that lives before it is another program
    events = gotools.parse(tmp_path / "t.out")
    mains = mains_of(events)
    made = [e.goid for e in events if e.is_go("NotExist", "Runnable") and e.goid in mains]
    assert len(mains) == programs + forked and sorted(made) == sorted(mains), (mains, made)
    begins = {g: next(e.time for e in events if e.goid == g) for g in mains}
    assert [g for g, _ in sorted(begins.items(), key=lambda of: of[1])] == mains
