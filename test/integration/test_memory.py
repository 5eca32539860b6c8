"""What the library keeps of a program that runs for months does not grow with it: what it says of its memory holds.

Old ones are given back by eras (encoder/base/era.h). CHURN=long makes as many as a program makes in months; the output
goes nowhere, but to a reader that throws it away.
"""

import collections
import fcntl
import os
import re
import select
import shutil
import struct
import subprocess
import sys
import threading

import pytest

from lib import PROGRAMS, ROOT, SOURCES, gotools, proc
from lib.reports import GOTRACE
from lib.seeds import seeded

CHURN = PROGRAMS / "churn"
LONG = os.environ.get("CHURN") == "long"
SIZES = {  # as in CI; long
    "libraries": (3_000, 1_000_000),
    "stacks": (15_000, 5_000_000),  # in each of two threads
    "alone": (20_000, 1_000_000),
    "names": (60_000, 1_000_000),
    "threads": (3_000, 1_000_000),
    "forks": (100, 10_000),
}
MODES = {
    "ring": {"GOTRACE_MAX_MEM": "1M", "GOTRACE_RING": "1M"},
    "v2": {"GOTRACE_MAX_MEM": "1M", "GOTRACE_FORMAT": "go1.23"},
    "v1": {"GOTRACE_MAX_MEM": "1M", "GOTRACE_FORMAT": "go1.21"},
    "manual": {"GOTRACE_MAX_MEM": "1M", "GOTRACE_START": "manual"},
}
MIB = 1024  # KiB
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def churn(tmp_path, mode, what, *libraries):
    """Its resident memory at each tenth of the way, in KiB, its trace, and the last line on standard error."""
    trace = tmp_path / "t.out"
    sink = None
    if LONG and mode in ("v1", "v2"):
        os.mkfifo(trace)
        sink = proc.spawn(["cat", trace], stdout=subprocess.DEVNULL)
    env = proc.traced_env(trace, MODES[mode])
    result = proc.run([CHURN, what, SIZES[what][LONG], *libraries], env=env, timeout=7000 if LONG else 110).ok()
    if sink:
        proc.stop(sink)
    sizes = [int(line) for line in result.stdout.split()]
    print(what, mode, sizes)
    return sizes, None if sink or mode == "manual" else trace, result.stderr


def check(sizes, trace, said):
    # Of the two eras that there can be each may take twice its share of half a MiB while threads wait.
    assert max(sizes) - sizes[0] < 4 * MIB, sizes
    assert "lost" not in said or "nothing lost" in said, said
    if trace:
        gotools.check(trace)


@pytest.mark.measured
@pytest.mark.limit(7200 if LONG else 120)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("what", ["stacks", "alone", "names", "threads"])
def test_bound(tmp_path, mode, what):
    check(*churn(tmp_path, mode, what))


@pytest.mark.measured
def test_threads_that_wait(tmp_path):
    """One that does nothing else costs 20 KiB at most: a page of its buffer, of its stack, and what the library knows of it."""
    threads = 3_000
    bare = proc.run([CHURN, "idle", threads], timeout=60).ok().stdout.split()
    traced = proc.run([CHURN, "idle", threads], env=proc.traced_env(tmp_path / "t.out"), timeout=60).ok().stdout.split()
    more, less = (int(sizes[-1]) - int(sizes[1]) for sizes in (traced, bare))
    assert (more - less) / (threads * 0.8) < 20, (traced, bare)


@pytest.mark.measured
@pytest.mark.limit(7200 if LONG else 120)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.long
def test_forks_in_the_middle(tmp_path, mode):
    """What is being given back at a fork is the child's as much as the parent's: both go on."""
    sizes, trace, said = churn(tmp_path, mode, "forks")
    check(sizes, trace, said)
    children = list(tmp_path.glob("t.out.*"))
    assert mode == "manual" or len(children) == int(re.search(r"^(\d+) PIDs$", said, re.M)[1])  # on a busy machine two children may have the same
    for trace in seeded().sample(children, min(5, len(children))):
        gotools.check(trace)


@pytest.mark.measured
@pytest.mark.limit(7200 if LONG else 120)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("libraries", [1, 2])
@pytest.mark.long
def test_libraries_that_come_and_go(tmp_path, mode, libraries):
    """One again and again; or two, that take turns at the same place."""
    names = [tmp_path / f"lib{i}.so" for i in range(libraries)]
    for i, name in enumerate(names):
        proc.compile(SOURCES / "memory/waits.c", name, "-shared", "-fPIC", f"-DNUMBER={i}")
    check(*churn(tmp_path, mode, "libraries", *names))


@pytest.mark.measured
@pytest.mark.parametrize("format", ["go1.23", "go1.21"])
def test_names_that_cannot_be_read_again(tmp_path, format):
    """Libraries that are gone are forgotten, but no names: files of those that are there are out of reach."""
    names = [tmp_path / f"lib{i}.so" for i in range(100)]
    proc.compile(SOURCES / "memory/waits.c", names[0], "-shared", "-fPIC")
    for name in names[1:]:
        shutil.copy(names[0], name)
    program = proc.compile(SOURCES / "memory/confined.c", tmp_path / "confined", "-O1", "-g", "-pthread", "-fno-crossjumping")
    env = proc.traced_env(tmp_path / "t.out", {"GOTRACE_MAX_MEM": "1M", "GOTRACE_FORMAT": format})
    result = proc.run([program, *names], env=env, timeout=60)
    if result.returncode == 77:
        pytest.skip("this kernel has no Landlock")
    assert result.returncode == 0 and "nothing lost" in result.stderr, result
    gotools.check_all(tmp_path / "t.out")
    if format == "go1.23":
        begin = proc.run([GOTRACE, "sql", "--csv", tmp_path / "t.out", "SELECT MAX(begin_ns) FROM waits WHERE kind != 'sleep'"]).ok().stdout.split()[-1]
        proc.run([GOTRACE, "cut", f"--from={int(begin) - 1000000}ns", "-o", tmp_path / "part.out", tmp_path / "t.out"]).ok()
        last = [e.stack for e in gotools.parse(tmp_path / "part.out") if e.is_go("Running", "Waiting")][-1]  # all of it takes minutes
        assert [f.func for f in last[:3]] == ["pthread_cond_timedwait", "wait_in_vain", "main"], last
        assert last[1].file.endswith(".c") and last[1].line, last


@pytest.fixture(params=["as it is", pytest.param("never", marks=ROOT_ONLY), pytest.param("always", marks=ROOT_ONLY)])
def folder(request, tmp_path):
    """A folder, also in file systems that never and always give large pages."""
    if request.param == "as it is":
        yield tmp_path
        return
    if proc.run(["mount", "-t", "tmpfs", "-o", f"huge={request.param}", "none", tmp_path]).returncode:
        pytest.skip("no file system with large pages here")
    yield tmp_path
    proc.run(["umount", tmp_path]).ok()


def test_a_thread_that_ends_soon_takes_a_page_of_the_box(folder):
    """Its buffer has 16, which wait for the end of the generation."""
    env = proc.traced_env(folder / "t.out", {"GOTRACE_LIVE": "on"})
    child = proc.spawn([sys.executable, SOURCES / "memory/brief.py"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.stdout.readline()
    taken = (folder / "t.out.live").stat().st_blocks * 512
    child.communicate(b"\n")
    assert child.returncode == 0
    gotools.check(folder / "t.out")
    assert 1 << 20 < taken < 1000 * 16384


BOX = "magic layout at size buffers tables_end buffers_end kept outside buffers_outside".split()  # encoder/base/box.h


def read_box(trace):
    with open(f"{trace}.live", "rb") as file:
        return dict(zip(BOX, struct.unpack(f"<{len(BOX)}Q", file.read(8 * len(BOX)))))


@pytest.mark.parametrize("format", gotools.some())
def test_brief_threads_wait_for_a_disk_that_stands_still(tmp_path, format):
    """Each hands over a page. The black box has no more buffers than there are pages in the limit: a quarter of it may wait to be
    written, while another quarter is written."""
    limit, page, buffer = 1 << 20, 4096, 65536
    os.mkfifo(tmp_path / "t.out")
    env = proc.traced_env(tmp_path / "t.out", {"GOTRACE_LIVE": "on", "GOTRACE_MAX_MEM": limit, "GOTRACE_FORMAT": format})
    with open(os.open(tmp_path / "t.out", os.O_RDONLY | os.O_NONBLOCK), "rb") as source, open(tmp_path / "read.out", "wb") as target:
        fcntl.fcntl(source, fcntl.F_SETPIPE_SZ, page)
        os.set_blocking(source.fileno(), True)
        child = proc.spawn([sys.executable, SOURCES / "memory/brief.py"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        status = proc.drain_thread(child.pid) / "status"
        attempts = lambda: int(re.search(r"^voluntary_ctxt_switches:\t(\d+)", status.read_text(), re.M)[1])
        proc.until(lambda: (its := read_box(tmp_path / "t.out"))["buffers_end"] - its["buffers"] >= limit // page // 4 * buffer)
        before = attempts()
        proc.until(lambda: attempts() >= before + 20)  # the library tries to write, in vain
        assert not select.select([child.stdout], [], [], 0)[0], "threads of which nothing is written went on"
        reader = threading.Thread(target=shutil.copyfileobj, args=(source, target))
        reader.start()
        child.stdout.readline()
        box = read_box(tmp_path / "t.out")
        said = child.communicate(b"\n")[1]
        reader.join()
    assert child.returncode == 0 and b"nothing lost" in said, said
    gotools.check(tmp_path / "read.out")
    assert box["magic"] == int.from_bytes(b"gotbox1", "little")
    assert 0 < box["buffers_end"] - box["buffers"] + box["buffers_outside"] <= limit // page * buffer


COPIES, FUNCTIONS = 40, 250


@pytest.fixture(scope="module")
def units(tmp_path_factory):
    """A program of many source files, each with many types: see test/bench/big.py."""
    directory = tmp_path_factory.mktemp("units")
    proc.run([sys.executable, ROOT / "test/bench/big.py", directory, COPIES, 1], timeout=110).ok()
    return directory / "big"


def inner(trace):
    """How often each line of an inlined function yields. Its name has the number of the function around it."""
    stacks = [e.stack for e in gotools.parse(trace) if e.is_go("Running", "Runnable") and e.stack]
    return collections.Counter((s[1].func, s[3].func, s[1].line) for s in stacks if s[1].func.startswith("inner"))


@pytest.mark.measured
@pytest.mark.limit(240)
def test_names_of_many_source_files(tmp_path, units):
    """The debug information of one source file after the other is in memory, not all of it. In a trace that is named
    later, source files come in no order, and again."""
    peak = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True);"
    peak += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    kib = {}
    for when in "later", "now":
        settings = [f"{name}={value}" for name, value in proc.traced_env(tmp_path / when, {"GOTRACE_NAMES": when, **proc.EVERY_YIELD}).items()]
        kib[when] = int(proc.run([sys.executable, "-c", peak, "env", *settings, units], timeout=110).ok().stdout)
    proc.run([GOTRACE, "symbolize", "-o", tmp_path / "named", tmp_path / "later"], timeout=110).ok()
    known = inner(tmp_path / "now")
    assert sorted(known.values()) == [COPIES] * FUNCTIONS and {f"f{i}" for i in range(FUNCTIONS)} == {f.partition("(")[0] for _, f, _ in known}
    assert inner(tmp_path / "named") == known
    assert kib["now"] - kib["later"] < 12 * MIB, kib
