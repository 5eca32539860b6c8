"""Python's own tests, Redis', and builds by `make -j`, bare and recorded: what they print and how each test ends is the same.

python3 test/long/suites.py [--modes=default,everything,family] UNIT...

A unit is `python:test_threading` (a file of libpython3-testsuite), `redis:unit/type/list` (one of REDIS/tests) or
`make:DIRECTORY` (a project's sources, which are copied); `python`, `redis` and `make` alone stand for a choice of them.
`redis:*` is every file that Redis' own runner runs, and any other pattern those whose names match. --redis and --source say
where sources are, as `apt-get source redis zlib` unpacks them; Redis' programs are those installed. --tls runs its tests
over TLS, which needs `tcl-tls`. Two runs at once each need a --room and a --port: they use
1,000 ports from there on, and those 10,000 higher.

The modes are those of traces.py and `family`, which is by `gotrace -f`. What differs is run again, --again times each way: a
difference is an end that a test never had bare. Traces of programs that were killed may lack their end, where they were
recorded without GOTRACE_LIVE; they are counted.
"""

import argparse
import collections
import fcntl
import fnmatch
import glob
import hashlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml

import traces
from lib import BUILT

PYTHON = ["/usr/bin/python3", "-m", "test", "-i", "*VSOCK*"]  # which hangs on some hosts
CHOICE = {
    "python": "threading thread threading_local threadsignals threadedtempfile queue sched fork1 subprocess popen signal wait3 wait4"
    " pty select selectors poll epoll eintr asyncio concurrent_futures multiprocessing_main_handling multiprocessing_fork"
    " multiprocessing_spawn multiprocessing_forkserver faulthandler",
    "redis": "unit/auth unit/keyspace unit/scan unit/info unit/protocol unit/quit unit/aofrw unit/shutdown unit/expire unit/dump"
    " unit/multi unit/pubsub unit/scripting unit/introspection unit/latency-monitor unit/lazyfree unit/slowlog unit/wait"
    " unit/type/list unit/type/stream integration/aof integration/rdb integration/logging integration/shutdown"
    " integration/redis-cli integration/redis-benchmark integration/replication-4 integration/block-repl",
    "make": "zlib-* redis-*",
}
REDIS_PROGRAMS = ["server", "cli", "benchmark", "sentinel", "check-aof", "check-rdb"]


def run(argv, cwd, env):
    """Exit status and output of a command. The command's process group is killed after an hour, and a minute after the
    command's end: when Python's tests hang, their children stay, also bare, and would keep the pipe open for ever."""
    child = subprocess.Popen(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, process_group=0)
    limit = time.monotonic() + 3600
    while True:
        try:
            output = child.communicate(timeout=1)[0]
            return child.returncode, output.decode(errors="replace")
        except subprocess.TimeoutExpired:
            if child.poll() is not None:
                limit = min(limit, time.monotonic() + 60)
            if time.monotonic() > limit:
                os.killpg(child.pid, signal.SIGKILL)


def python_ends(name, room, start, env, args):
    status, output = run([*start, *PYTHON, "--timeout", "300", "--junit-xml", "junit.xml", name], room, env)
    if not (room / "junit.xml").exists():
        return {"whole": f"{status}: {output[-1000:]}"}
    cases = xml.parse(room / "junit.xml").getroot().iter("testcase")
    return {case.get("name"): [end.tag for end in case if not end.tag.startswith("system-")] for case in cases} | {"status": status}


def redis_ends(name, room, start, env, args):
    for part in ("tests", "runtest"):
        (shutil.copytree if part == "tests" else shutil.copy)(args.redis / part, room / part)
    (room / "src").mkdir()
    for program in REDIS_PROGRAMS:  # it goes by its name
        (room / "src" / f"redis-{program}").symlink_to(shutil.which(f"redis-{program}") or shutil.which("redis-server"))
    shutil.copy(args.redis / "redis.conf", room)
    if args.tls:
        subprocess.run(["bash", args.redis / "utils/gen-test-certs.sh"], cwd=room, check=True, capture_output=True)
    ports = ["--baseport", str(args.port), "--portcount", "1000"]  # their clusters also use those 10,000 higher
    argv = ["tclsh", "tests/test_helper.tcl", "--clients", "1", *ports, *["--tls"] * args.tls, "--single", name]
    status, output = run([*start, *argv], room, env)
    ends = re.findall(r"\[(ok|err|exception|skip|ignore)\]: (.*?)(?: \(\d+ ms\))?$", re.sub(r"\x1b\[[\d;]*m", "", output), re.M)
    by_chance = {(end, re.sub(r"\d+", "N", test)): 1 for end, test in ends if test.startswith("PSYNC2")}  # chance and time decide which, and how many
    tests = collections.Counter(e for e in ends if not e[1].startswith("PSYNC2")) | by_chance
    return {f"{test}: {end}": n for (end, test), n in tests.items()} | {"status": status}


def make_ends(name, room, start, env, args):
    """Its output, lines in any order, since what runs beside what is decided by time; and every file that is there then."""
    shutil.copytree(name, room / "project", symlinks=True)
    command = "[ ! -x configure ] || ./configure; make -j4 MALLOC=libc OPTIMIZATION=-O0 && echo made"
    status, output = run([*start, "sh", "-c", command], room / "project", env | {"SOURCE_DATE_EPOCH": "1"})
    files = {path.relative_to(room): hashlib.sha256(path.read_bytes()).hexdigest() for path in room.rglob("*") if path.is_file() and path.name != "configure.log"}
    return {"status": status, "made": output.endswith("made\n"), "output": sorted(output.splitlines())} | files


ENDS = {"python": python_ends, "redis": redis_ends, "make": make_ends}


def redis_files(pattern, args):
    """Those files of the list in Redis' own runner whose names match."""
    runner = (args.redis / "tests/test_helper.tcl").read_text()
    return fnmatch.filter(re.search(r"set ::all_tests {(.*?)}", runner, re.S)[1].split(), pattern)


def units_of(words, args):
    for word in words:
        kind, _, name = word.partition(":")
        names = [name] if name else CHOICE[kind].split()
        if kind == "python":
            names = [n if n.startswith("test_") else f"test_{n}" for n in names]
        if kind == "redis":
            names = [file for n in names for file in (redis_files(n, args) if "*" in n else [n])]
        if kind == "make":
            names = [path for n in names for path in sorted(glob.glob(str(args.source / n))) if os.path.isdir(path)]
        yield from ((kind, n) for n in names)


class Recorded:
    """A folder of traces, and what begins and surrounds a command whose traces go there."""

    def __init__(self, mode, directory):
        self.mode, self.directory = mode, directory
        self.start, self.env = [], dict(os.environ)
        if mode == "family":
            self.start = [str(BUILT / "gotrace"), "-q", "-f", "--live=on", "-o", str(directory / "all.out"), "--"]
        elif mode:
            self.env |= traces.environment(mode, directory)

    def check(self):
        """As traces.refused."""
        if any(self.directory.glob("*.live")):
            subprocess.run([BUILT / "gotrace", "recover", f"--clean={self.directory}"], capture_output=True)
        return traces.refused(self.directory)


def ends_of(unit, recorded, args):
    """The room has the same name each time: it is in what is printed and built."""
    kind, name = unit
    room = args.room / kind
    shutil.rmtree(room, ignore_errors=True)
    room.mkdir(parents=True)
    return ENDS[kind](name, room, recorded.start, recorded.env, args)


def is_new(ends, seen):
    """What none of the runs before had."""
    return {test for run in [ends, *seen] for test in run if not any(run_before.get(test) == ends.get(test) for run_before in seen)}


def say_different(when, tests, bare, ends):
    for test in sorted(tests, key=str)[:20]:
        print(f"  {when}{test}: bare {[run.get(test) for run in bare]}, recorded {ends.get(test)}"[:2000], flush=True)


def run_unit(unit, bare, mode, args):
    """Differences from bare runs, which are made as needed; traces, refused ones and those that lack their end."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix=f"suites-{mode}-"))
    recorded, begin = Recorded(mode, directory), time.monotonic()
    ends = ends_of(unit, recorded, args)
    new = is_new(ends, bare)
    say_different("at first, ", new, bare, ends)
    for _ in range(args.again if new else 0):
        bare.append(ends_of(unit, Recorded(None, directory), args))
        ends = ends_of(unit, recorded, args)
        new = {test for test in new | is_new(ends, bare) if not any(run.get(test) == ends.get(test) for run in bare)}
        if not new:
            break
    n, refused, cut = recorded.check()
    say_different("", new, bare, ends)
    for line in refused[:20]:
        print(f"  {line[:500]}")
    tests = len(bare[0])
    print(f"{':'.join(unit)} {mode}: {tests} results, {len(new)} differ, {n} traces, {len(refused)} refused, {len(cut)} of killed processes lack their end, {time.monotonic() - begin:.0f} s", flush=True)
    if not refused:
        shutil.rmtree(directory)
    return collections.Counter(results=tests, differ=len(new), traces=n, refused=len(refused), killed=len(cut))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("units", nargs="*", default=["make", "python", "redis"])
    parser.add_argument("--modes", default="default,everything,family")
    parser.add_argument("--redis", type=pathlib.Path)
    parser.add_argument("--source", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--again", type=int, default=3)
    parser.add_argument("--tls", action="store_true", help="run Redis' tests over TLS")
    parser.add_argument("--port", type=int, default=31000, help="the first of the ports of Redis' tests")
    parser.add_argument("--room", type=pathlib.Path, default=pathlib.Path("/tmp/suites"))
    args = parser.parse_intermixed_args()
    args.room.mkdir(parents=True, exist_ok=True)
    room = os.open(args.room, os.O_DIRECTORY)
    try:
        fcntl.flock(room, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        parser.error(f"another run has {args.room}: use another --room, and a --port 2,000 away")
    total = collections.Counter()
    for unit in units_of(args.units, args):
        bare = [ends_of(unit, Recorded(None, None), args)]
        for mode in args.modes.split(","):
            total += run_unit(unit, bare, mode, args)
    print(f"{total['results']} results: {total['differ']} differ; {total['traces']} traces: {total['refused']} refused, {total['killed']} of killed processes lack their end")
    return total["differ"] + total["refused"] > 0


sys.exit(main())
