"""gotrace -f: one trace of a program and all processes that come of it."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from lib import PROGRAMS, gotools, proc, reports
from lib.reports import GOTRACE


TRIES = 10  # of what the times tell: this machine may have been busy with something else


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


def test_orphans_are_waited_for(tmp_path):
    read, write = os.pipe()
    argv = [GOTRACE, "-f", "-o", tmp_path / "t.out", "--", "sh", "-c", "cat <&3 & exec 3<&-; echo begun"]
    child = proc.spawn(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=lambda: os.dup2(read, 3), pass_fds=[3])
    os.close(read)
    assert child.stdout.readline() == "begun\n"
    os.close(write)
    assert child.wait(20) == 0 and " 2 processes; " in child.stderr.read()


def test_orphans_may_be_left(tmp_path):
    argv = [GOTRACE, "-f", "-o", tmp_path / "t.out", "--", "sh", "-c", "sleep 1000 & echo $!"]
    child = proc.spawn(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    orphan = int(child.stdout.readline())
    while f"PPid:\t{child.pid}\n" not in Path(f"/proc/{orphan}/status").read_text():  # until the shell has ended
        time.sleep(0.005)
    while child.poll() is None:
        child.send_signal(signal.SIGTERM)
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
STRANGER = """
import os, pathlib, sys
outer = pathlib.Path(sys.argv[1])
for attempt in (lambda: os.listdir(outer), lambda: (outer / "1-1-x").write_text("")):
    try:
        print(attempt())
    except PermissionError:
        print("refused")
"""
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
        stranger = subprocess.run(
            [sys.executable, "-c", STRANGER, outer], capture_output=True, text=True, user=NOBODY, group=NOBODY, extra_groups=[], timeout=20
        )
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


BECOMES = r"""
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static char **args;
static void *become(void *arg)
{
    usleep(5000);
    printf("%d\n", gettid());
    fflush(stdout);
    execv("/nowhere/at/all", args);
    return arg ? arg : (void *)(long)execv(args[0], (char *[]){"after", "again", NULL});
}
static void *rest(void *arg) { usleep(5000); return arg; }
int main(int argc, char **argv)
{
    pthread_t thread;
    args = argv;
    pthread_create(&thread, NULL, argc > 1 ? rest : become, NULL);
    pthread_join(thread, NULL);
}
"""


@pytest.mark.parametrize("format", ["go1.23", "go1.21"])
def test_who_becomes_another_program(tmp_path, format):
    """That one is made by the thread that has called exec, in the process that it was."""
    program = proc.compile(BECOMES, tmp_path / "before", "-D_GNU_SOURCE")
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


AGAIN = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *nothing(void *arg) { return arg; }
int main(int argc, char **argv)
{
    int left = atoi(argv[1]);
    char next[16];
    pthread_t thread;
    if (argc > 2 && pthread_create(&thread, NULL, nothing, NULL) == 0)
        pthread_join(thread, NULL);
    usleep(10000);
    snprintf(next, sizeof next, "%d", left - 1);
    return left ? execl(argv[0], argv[0], next, argv[2], NULL) : 3;
}
"""


@pytest.mark.parametrize("threads", [[], ["with"]], ids=["alone", "threads"])
def test_who_becomes_itself(tmp_path, threads):
    """Each time it has a trace, and is made by what it was before."""
    program = proc.compile(AGAIN, tmp_path / "again", "-pthread")
    result = family(program, "4", *threads, trace=tmp_path / "t.out")
    assert result.returncode == 3 and ", 1 process; " in result.stderr, result
    waits = reports.waits(tmp_path / "t.out", "sleep")
    assert sum(n for _, n, what in waits if what.startswith("usleep")) == 5, waits
    events = gotools.parse(tmp_path / "t.out")
    mains = mains_of(events)
    made = {e.goid: e.g for e in events if e.is_go("NotExist", "Runnable")}
    assert [made[g] for g in mains[1:]] == mains[:-1], (mains, made)


MAKES = r"""
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static char **args;
static void make_by_fork(void)
{
    if (fork() == 0)
        _exit(execl(args[0], "made", "again", NULL));
    wait(NULL);
}
static void *run(void *arg)
{
    dprintf(1, "%d\n", gettid());
    make_by_fork();
    if (vfork() == 0)
        _exit(execl(args[0], "made", "again", NULL));
    wait(NULL);
    return arg;
}
int main(int argc, char **argv)
{
    pthread_t thread;
    args = argv;
    if (argc > 1)
        return usleep(2000);
    pthread_create(&thread, NULL, run, NULL);
    pthread_join(thread, NULL);
}
"""


@pytest.mark.parametrize("format", ["go1.23", "go1.21"])
def test_who_executes_at_once(tmp_path, format):
    """A child that is another program before it has a trace is made by the thread that forked."""
    program = proc.compile(MAKES, tmp_path / "makes", "-D_GNU_SOURCE", "-pthread")
    result = family(program, trace=tmp_path / "t.out", env={"GOTRACE_FORMAT": format}).ok()
    assert ", 3 processes; " in result.stderr
    gotools.check_all(tmp_path / "t.out")
    events = gotools.parse(tmp_path / "t.out")
    mains = mains_of(events)
    made = [e.goid for e in events if e.is_go("NotExist", "Runnable") and e.m == int(result.stdout)]
    assert len(mains) == 3 and made == mains[1:], (mains, made)


ASKS = r"""
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}
static void answer(int asked, int told)
{
    char byte;
    uint64_t sum = 0;
    for (int i = 0; read(asked, &byte, 1) == 1; i++) {
        uint64_t start = now();
        usleep(2000 + i * 7919 % 1500);
        sum += now() - start;
        write(told, &byte, 1);
    }
    printf("%llu\n", (unsigned long long)sum);
}
int main(int argc, char **argv)
{
    int asks[2], tells[2];
    char byte = 0;
    if (argc > 1 ? socketpair(AF_UNIX, SOCK_STREAM, 0, asks) || socketpair(AF_UNIX, SOCK_STREAM, 0, tells)
                 : pipe(asks) || pipe(tells))
        return 1;
    if (fork() == 0) {
        close(asks[1]);
        answer(asks[0], tells[1]);
        return 0;
    }
    for (int i = 0; i < 150; i++) {
        usleep(1000 + i * 31337 % 700);
        write(asks[1], &byte, 1);
        read(tells[0], &byte, 1);
    }
    close(asks[1]);
    wait(NULL);
    return 0;
}
"""


def infer(program, through, trace):
    """What is to be said of a run, or None: what was inferred is what the program did."""
    answered = int(family(program, *through, trace=trace).ok().stdout)
    crossing = [e for e in gotools.parse(trace) if e.is_go("Waiting", "Runnable") and e.g not in (-1, e.goid)]
    assert not crossing, crossing
    why = json.loads(proc.run([GOTRACE, "why", "--json", trace]).ok().stdout)
    path = sum(row["ns"] for row in why["path"]["rows"] if row["function"] == "answer" and row["what"] == "usleep")
    if why["inferred_wakers"] < 100 or abs(path / answered - 1) > 0.2:
        return f"{why['inferred_wakers']} inferred, {path} ns of {answered}"
    assert "is inferred, from when they ended" in proc.run([GOTRACE, "why", trace]).ok().stdout
    return None


@pytest.mark.measured
@pytest.mark.parametrize("through", [[], ["socket"]], ids=["pipe", "socket"])
def test_who_answers_is_inferred(tmp_path, through):
    """Through pipes and sockets nobody is told to have ended a wait; `why` finds out who answers, and says how."""
    program = proc.compile(ASKS, tmp_path / "asks", "-D_GNU_SOURCE", "-g")
    said = []
    while None not in said and len(said) < TRIES:
        said.append(infer(program, through, tmp_path / "t.out"))
    assert None in said, said


# What prog/lineage.c becomes: forks, then programs that have traces of their own, by exec of any thread, again and again.
LINEAGES = "fse fsese fste Fse Fstse vsese psese pste csese osese dsese fsefsese fsesk fefse".split()


@pytest.mark.parametrize("format", gotools.FORMATS)
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
