"""What an attacker could place where the trace goes, who can read it, and what it says about the program."""

import os
import stat

import pytest

from lib import PROGRAMS, SOURCES, gotools, proc
from lib.reports import GOTRACE

THREADS = [PROGRAMS / "threads", "4"]
VICTIM = b"somebody's file\n" * 1000
NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make another user's file")


def refused(tmp_path, why, **options):
    """Nothing is written, one line says why, and the program runs as ever."""
    result = proc.traced(THREADS, tmp_path / "t.out", **options).ok()
    assert result.stdout == proc.run(THREADS).stdout
    assert result.stderr == f"gotrace: cannot write {tmp_path / 't.out'}: {why}; the program was not affected\n"


@pytest.fixture
def victim(tmp_path):
    path = tmp_path / "victim"
    path.write_bytes(VICTIM)
    yield path
    assert path.read_bytes() == VICTIM


def test_symbolic_link(tmp_path, victim):
    (tmp_path / "t.out").symlink_to(victim)
    refused(tmp_path, "Too many levels of symbolic links")


def test_dangling_symbolic_link(tmp_path):
    """It must not become a file where the link points to."""
    (tmp_path / "t.out").symlink_to(tmp_path / "elsewhere")
    refused(tmp_path, "Too many levels of symbolic links")
    assert not (tmp_path / "elsewhere").exists()


WRITERS = [
    ["convert", "--format=go1.11"],
    ["convert", "--format=go1.5"],  # with an .elf file beside it
    ["cut"],
    ["merge"],
    ["export", "--to=chrome"],
    ["symbolize"],
]


@pytest.mark.parametrize("leads_to", ["victim", "elsewhere"])
@pytest.mark.parametrize("command", WRITERS, ids=" ".join)
def test_links_where_commands_write(traced, tmp_path, victim, command, leads_to):
    """Others could have put the link there, in a folder for all: where it leads, nothing is written."""
    trace, link = traced(THREADS).ok().trace, tmp_path / "new.out"
    link.symlink_to(tmp_path / leads_to)
    before = sorted(tmp_path.iterdir())
    result = proc.run([GOTRACE, *command, "-o", link, trace])
    assert (result.returncode, result.stderr) == (1, f"gotrace: {link} is a symbolic link, and stays as it is\n")
    assert sorted(tmp_path.iterdir()) == before and link.is_symlink()


def test_link_where_a_family_goes(tmp_path, victim):
    """Said before the program runs, and not when it is too late."""
    (tmp_path / "t.out").symlink_to(victim)
    result = proc.run([GOTRACE, "-f", "-o", tmp_path / "t.out", "--", *THREADS])
    why = f"gotrace: --output: {tmp_path / 't.out'} is a symbolic link, and stays as it is\n"
    assert (result.returncode, result.stdout, result.stderr) == (125, "", why)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t.out", "victim"]


def test_hard_link(tmp_path, victim):
    (tmp_path / "t.out").hardlink_to(victim)
    refused(tmp_path, "Too many links")


@as_root
def test_file_of_another_user(tmp_path, victim):
    """Whoever made it could read the trace. In a directory for everybody the kernel may refuse it too, as EACCES."""
    os.chown(victim, NOBODY, NOBODY)
    victim.rename(tmp_path / "t.out")
    refused(tmp_path, "Operation not permitted")
    (tmp_path / "t.out").rename(victim)


@as_root
def test_fifo_of_another_user(tmp_path):
    os.mkfifo(tmp_path / "t.out")
    os.chown(tmp_path / "t.out", NOBODY, NOBODY)
    reader = os.open(tmp_path / "t.out", os.O_RDONLY | os.O_NONBLOCK)
    refused(tmp_path, "Operation not permitted")
    assert os.read(reader, 1) == b""
    os.close(reader)


@pytest.mark.parametrize("program", ["threads 4", "sleeps 5"])
def test_fifo_without_a_reader(tmp_path, program):
    """An error after a second; the program, single-threaded or not, comes to its end."""
    os.mkfifo(tmp_path / "t.out")
    name, argument = program.split()
    result = proc.traced([PROGRAMS / name, argument], tmp_path / "t.out", timeout=15).ok()
    assert "No such device or address; the program was not affected" in result.stderr


@pytest.mark.parametrize("mask, mode", [(0, 0o600), (0o277, 0o400)])
def test_mode(tmp_path, mask, mode):
    """A new file is the user's alone, whatever the umask; one of the user's own keeps its mode."""
    mask = os.umask(mask)
    try:
        result = proc.traced(THREADS, tmp_path / "t.out", env={"GOTRACE_FORMAT": "go1.5"}).ok()
    finally:
        os.umask(mask)
    for path in (result.trace, tmp_path / "t.out.elf"):
        assert stat.S_IMODE(path.stat().st_mode) == mode
    result.trace.chmod(0o644)
    gotools.check(proc.traced(THREADS, result.trace).ok().trace)
    assert stat.S_IMODE(result.trace.stat().st_mode) == 0o644


@pytest.mark.parametrize("format", gotools.some("go1.5", of=["go1.5", "go1.21", "go1.23", "go1.26"]))
def test_no_text_of_the_program(tmp_path, format):
    """Arguments, environment, and what goes through its memory and descriptors stay where they are."""
    argv = ["/usr/bin/python3", SOURCES / "security/gives_away.py", "argument-secret"]
    env = {"PASSWORD": "environment-secret", "GOTRACE_FORMAT": format}
    proc.traced(argv, tmp_path / "t.out", env=env, cwd=tmp_path).ok()
    files = list(tmp_path.glob("t.out*"))
    assert len(files) == 1 + (format == "go1.5") and all(b"libc.so.6" in path.read_bytes() for path in files[:1])
    for path in files:
        assert b"secret" not in path.read_bytes()


def test_single_threaded_program_without_room(tmp_path):
    """It writes its trace itself: what RLIMIT_FSIZE and a FIFO refuse us must not become its signals."""
    for limit in ("0", "8"):
        command = f"ulimit -f {limit}; exec {PROGRAMS / 'sleeps'} 2000"
        result = proc.traced(["bash", "-c", command], tmp_path / limit).ok()
        assert "File too large; the program was not affected" in result.stderr or limit == "8", str(result)
    os.mkfifo(tmp_path / "t.out")
    reader = os.open(tmp_path / "t.out", os.O_RDONLY | os.O_NONBLOCK)
    child = proc.spawn([PROGRAMS / "sleeps", "5"], env=proc.traced_env(tmp_path / "t.out", {"GOTRACE_QUIET": "1"}))
    os.close(reader)  # before it ends or not: no process reads
    assert child.wait(15) == 0
