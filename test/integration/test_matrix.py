"""Whatever a program does, and however it is traced: it writes and ends as without us, and what is left can be read.

lib/matrix.py has the table; MATRIX=long runs all of its rows, else a tenth of them, or a fortieth where nobody asks for all tests.
"""

import collections
import functools
import os
import re
import shlex

import pytest

from lib import LIBRARIES, LIBRARY, PROGRAMS, ROOT, SOURCES, gotools, matrix, own_functions, proc

pytestmark = pytest.mark.limit(120)

GOTRACE = ROOT / "build/gotrace"
PROGRAM = PROGRAMS / "matrix"
ALLOCATORS = {"jemalloc": "libjemalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4", "mimalloc": "libmimalloc.so.[0-9]*"}
OURS = re.compile(r"^(?:lib)?gotrace: .*\n", re.M)
EVERY = 1 if os.environ.get("MATRIX") == "long" else 10 if os.environ.get("ALL_NEEDS") else 40  # row is run
PYTHON = "/usr/bin/python3"
CARGO_IMAGES = 4  # it may be rustup's, and becomes cargo-matrix, a script of sh's, which becomes the program
KILLS = {"parallel"}  # processes of its own, by SIGKILL
LOSSES = "events lost|stacks lost|samples lost|gaps in when|not watched|stopped at|cannot write|no file|could not be written|nothing is recorded"

RUN = "import subprocess, sys\nresult = subprocess.run(sys.argv[1:])\nsys.stdout.write(f'python saw {result.returncode}\\n')"


def needs(row):
    marks = [pytest.mark.needs(command) for command in matrix.PARENTS[row["parent"]]]
    allocator = row["neighbour"].split()[0]
    if allocator == "own" and not own_functions.ARE_THERE:
        return [*marks, pytest.mark.skip(reason=own_functions.WHERE)]
    there = allocator not in ALLOCATORS or any(LIBRARIES.glob(ALLOCATORS[allocator]))
    return marks if there else [*marks, pytest.mark.skip(reason=f"{allocator} is not here; ./scripts/deps all installs it")]


def rows(chosen):
    """Every so many, beginning elsewhere in each set."""
    return [
        pytest.param(settings, row, marks=needs(row), id="-".join([*settings, *(row[place] for place in matrix.AROUND)]))
        for settings, row in chosen[len(chosen) % EVERY :: EVERY]
    ]


# --- what is around the program


@pytest.fixture(scope="session")
def around(tmp_path_factory):
    """What parents and neighbours need: a folder with it."""
    folder = tmp_path_factory.mktemp("around")
    proc.compile(SOURCES / "matrix/audit.c", folder / "audit.so", "-shared", "-fPIC")
    if own_functions.ARE_THERE:
        own_functions.build(folder, "own.so", "-shared", "-fPIC")
    (folder / "two").mkdir()
    for name in ("one", "other"):
        (folder / "two" / name).write_text(name)
    proc.run(["tar", "-cf", folder / "two.tar", "-C", folder / "two", "one", "other"]).ok()
    (folder / "bin").mkdir()
    (folder / "bin/cargo-matrix").write_text(f'#!/bin/sh\nshift\nexec {PROGRAM} "$@"\n')
    (folder / "bin/cargo-matrix").chmod(0o755)
    (folder / "Makefile").write_text("both: one other\none other:\n\t@$(COMMAND)\n")
    return folder


def command(row, around):
    line = [str(PROGRAM), *(row[place] for place in matrix.PROGRAM)]
    text = shlex.join(line)
    return {
        "alone": line,
        "sh": ["sh", "-c", f"{text}; echo sh saw $?"],
        "bash": ["bash", "-c", f"({text}) | cat; echo bash saw ${{PIPESTATUS[0]}}"],
        "xargs": ["sh", "-c", f"find {around}/two -type f | xargs -n 1 {text}; echo xargs saw $?"],
        "tar": ["tar", "-xf", around / "two.tar", f"--to-command={text}"],
        "git": ["git", "-c", f"alias.matrix=!{text}", "matrix"],
        "make": ["make", "-s", "-k", "-j2", "-f", around / "Makefile", f"COMMAND={text}"],
        "parallel": ["parallel", "-j2", "--ungroup", f"{text} {{}}", ":::", "one", "other"],
        "cargo": ["cargo", "matrix", *line[1:]],
        "python": [PYTHON, "-c", RUN, *line],
    }[row["parent"]]


def preloaded(neighbour, around, traces):
    """The environment that the neighbour needs."""
    name, *where = neighbour.split()
    if name == "audit":
        return {"LD_AUDIT": str(around / "audit.so")} | ({"LD_PRELOAD": str(LIBRARY)} if traces else {})
    other = [str(max(LIBRARIES.glob(ALLOCATORS[name])))] if name in ALLOCATORS else [str(around / "own.so")] if name == "own" else []
    ours = [str(LIBRARY)] if traces else []
    both = other + ours if where == ["before"] else ours + other
    return {"LD_PRELOAD": ":".join(both)} if both else {}


# --- comparing


def seen(result):
    """All that others see of it. Processes that run at the same time write in any order; numbers of processes differ."""
    errors = re.sub(r"\d{3,}", "N", OURS.sub("", result.stderr))
    return result.returncode, sorted(result.stdout.splitlines()), sorted(errors.splitlines())


@functools.lru_cache(maxsize=None)
def bare(around, *happening):
    row = dict(happening)
    return seen(execute(row, around, around, {}, traces=False))


def execute(row, around, cwd, env, traces=True):
    path = f"{around}/bin:{os.environ['PATH']}"
    return proc.run(command(row, around), env={"PATH": path} | env | preloaded(row["neighbour"], around, traces), cwd=cwd)


def check_lines(stderr, row, quiet):
    """Whatever is lost, each process says. All else only the one that was started says: each image of it, that a recording has
    ended, and what there is to say of the switches."""
    said = OURS.findall(stderr)
    if quiet == "1":
        assert said == []
    if quiet in ("0", "1"):
        return
    notes = collections.Counter(line for line in said if not re.search(LOSSES, line))
    ends = sum("; next: " in line for line in notes)
    images = (CARGO_IMAGES if row["parent"] == "cargo" else 1) + (row["parent"] in ("alone", "cargo") and row["end"] in ("exec", "exec_other"))
    assert max(ends, *notes.values(), 0) <= images, said


def check_files(folder, killed):
    """Each is a trace that Go, the oldest that reads its format and the newest, and `gotrace info` read. A process that was
    killed may leave a black box, and a file that had not yet got its name."""
    batches = {}
    for path in sorted(folder.rglob("*")):
        if path.is_dir() or path.suffix == ".elf" or killed and path.suffix in (".live", ".new"):
            continue
        header = path.read_bytes()[:16]
        found = re.match(rb"go (1\.\d+) trace", header)
        assert found, f"{path.name} begins with {header!r}"
        readers = gotools.readers_of(f"go{found[1].decode()}")
        for go in {readers[min(readers)], readers[max(readers)]}:
            if found[1] == b"1.5":
                gotools.check(path, go=go)
            else:
                batches.setdefault(go, []).append(path)
        proc.run([GOTRACE, "info", path]).ok()
    for go, paths in batches.items():
        result = proc.run([gotools.read_all(go), *paths]).ok()
        assert not result.stdout, f"{go}: {result}"


def check(settings, row, around, folder):
    env = dict(setting.split("=", 1) for setting in settings)
    env = {name: value.replace(matrix.DIRECTORY, str(folder / "directory")) for name, value in env.items()}
    (folder / "directory").mkdir()
    expected = bare(around, *((place, row[place]) for place in matrix.AROUND))
    result = execute(row, around, folder, {"GOTRACE_OUTPUT": str(folder / "t.out")} | env)
    assert seen(result) == expected, f"bare: {expected}\ntraced: {result}"
    check_lines(result.stderr, row, "1" if env.get("GOTRACE") == "off" else env.get("GOTRACE_QUIET"))
    check_files(folder, killed=row["end"] == "SIGKILL" or row["parent"] in KILLS)


@pytest.mark.parametrize("settings, row", rows(matrix.each_switch()))
def test_each_switch(tmp_path, around, settings, row):
    check(settings, row, around, tmp_path)


@pytest.mark.parametrize("settings, row", rows(matrix.switches_together()))
def test_switches_together(tmp_path, around, settings, row):
    check(settings, row, around, tmp_path)


@pytest.mark.parametrize("settings, row", rows(matrix.every_switch_off()))
def test_off_whatever_the_others_are(tmp_path, around, settings, row):
    check(settings, row, around, tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


ANY_TIME = {"futex", "sched_yield", "restart_syscall", "brk", "mmap", "munmap", "mremap", "mprotect", "madvise"}
KILLED = "\nkill("
MAIN = "prlimit64(0, RLIMIT_CORE"  # the first call that main makes
EXECUTES = r"^(?:execve\(|<... execve resumed).* = 0$"  # of another thread it is the first one's that is resumed


def calls(line, folder, env):
    """How often each sequence of system calls is, from main or a fork to the next exec or the end, over all threads: but for
    memory, and waits for each other. How far a thread gets that has killed its process is unknown."""
    folder.mkdir()
    proc.run(["strace", "-ff", "-o", folder / "calls", *(f"-E{name}={value}" for name, value in env.items()), *line])
    found = []
    for path in folder.glob("calls.*"):
        first, *executed = re.split(EXECUTES, path.read_text(), flags=re.M)
        for part in [first, *(part.partition(MAIN)[2] for part in executed)]:
            names = re.findall(r"^(\w+)\(", part.partition(KILLED)[0], re.M)
            found.append(tuple(name for name in names if name not in ANY_TIME))
    return sorted(found)


PROGRAM_ROWS = matrix.pairs(matrix.PROGRAM)


@pytest.mark.needs("strace")
@pytest.mark.parametrize("row", [pytest.param(row, id="-".join(row.values())) for row in PROGRAM_ROWS[::EVERY]])
def test_off_makes_no_system_call_of_its_own(tmp_path, row):
    line = [PROGRAM, *row.values()]
    settings = {name: values[0] for name, values in matrix.SWITCHES.items()} | {"GOTRACE_SYSCALLS": "all", "GOTRACE_CPU_HZ": "1000"}
    off = settings | {"GOTRACE_CHILDREN": "all", "GOTRACE": "off", "LD_PRELOAD": LIBRARY}
    assert calls(line, tmp_path / "off", off) == calls(line, tmp_path / "bare", {})


@pytest.mark.parametrize("row", [pytest.param(row, id="-".join(row.values())) for row in PROGRAM_ROWS[::EVERY]])
def test_the_program_does_the_same_each_time(row):
    assert seen(proc.run([PROGRAM, *row.values()])) == seen(proc.run([PROGRAM, *row.values()]))


@pytest.mark.needs("make")
def test_a_child_of_clone_ends_whatever_our_thread_was_at(tmp_path, around):
    """It may have had the loader's lock, which exit(3) takes, and which nobody gives back in a child."""
    row = dict(child="clone", when="second", descriptor="accept", end="return", parent="make", neighbour="none")
    expected = bare(around, *row.items())
    for _ in range(15):
        assert seen(execute(row, around, tmp_path, {"GOTRACE_OUTPUT": str(tmp_path / "t.out"), "GOTRACE_RING": "1M"})) == expected


def test_a_descendant_that_is_not_followed_reads_nothing_before_blocks_of_another_allocator(tmp_path, around):
    """The first one of a thread's is at the beginning of what jemalloc has mapped."""
    row = dict(child="spawn", when="second", descriptor="dup2", end="SIGKILL", parent="xargs", neighbour="jemalloc before")
    if not any(LIBRARIES.glob(ALLOCATORS["jemalloc"])):
        pytest.skip("jemalloc is not here")
    check(["GOTRACE_CHILDREN=0"], row, around, tmp_path)


# --- the table itself


def test_the_table_has_every_switch():
    of_the_library = re.findall(r'^ +\{"(GOTRACE\w*)",', (ROOT / "preload/shared/options.c").read_text(), re.M)
    assert len(of_the_library) > 20 and set(matrix.SWITCHES) == set(of_the_library)


def test_the_table_has_all_that_the_program_does():
    assert [line.split() for line in proc.run([PROGRAM]).ok().stdout.splitlines()] == list(matrix.PROGRAM.values())


def test_every_pair_is_in_a_row():
    rows = [row for _, row in matrix.each_switch()]
    for setting in matrix.settings():
        for place, values in matrix.AROUND.items():
            assert {row[place] for row in rows if row["setting"] == setting} == set(values), (setting, place)
    pairs = {(row["child"], row["end"]) for row in rows}
    assert len(pairs) == len(matrix.CHILDREN) * len(matrix.ENDS)
