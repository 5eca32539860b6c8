"""SIGKILLs of whole families of processes at random moments: what every process had recorded, by its own journal, is in what
is left: python3 test/long/kills.py [--times=1000] [--seed=N] [--first=N]

Programs: test/prog/journals.c and journals.py, alone and with children of each kind. What a kill is made with follows from
the seed and its number: `--first=NUMBER --times=1` makes it again. What a failure has left is kept, and where is said. Every
trace is read by Go and by `gotrace info --check`. test/bench/kills.py does the same to one busy process of C, with less
chance around it and more counters.
"""

import argparse
import collections
import csv
import dataclasses
import io
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

import traces
from lib import BUILT, PROGRAMS, gotools, proc

MEMORY = "/dev/shm"
THREADS, LINE = 3, 64  # of a journal
GOTRACE = BUILT / "gotrace"
FORMATS = [f for f in gotools.FORMATS if int(f[4:]) >= 11]  # which have logs
C = [str(PROGRAMS / "journals")]
PYTHON = ["/usr/bin/python3", str(pathlib.Path(__file__).parent / "journals.py")]
KINDS = {"alone": [C, PYTHON], "fork": [C, PYTHON], "vfork": [C], "spawn": [C], "multiprocessing": [PYTHON], "subprocess": [PYTHON]}
RINGS = [None, None, "64M", "1M"]
OTHERS = {
    "GOTRACE_CHILDREN": ["1", "all"],
    "GOTRACE_SYSCALLS": ["all", "blocking", "none"],
    "GOTRACE_SCHED": ["on", "off", "off"],
    "GOTRACE_CPU_HZ": ["0", "0", "200"],
    "GOTRACE_NAMES": ["now", "later"],
    "GOTRACE_MAX_MEM": ["256M", "2M"],
    "GOTRACE_HEAP": ["on", "off"],
}
WAYS = ["each", "clean", "family"]  # recover BOX, recover --clean, and gotrace -f, which does it


class Lost(Exception):
    """Not all that a journal has is there, or it is more than once, or a reader refuses it."""


@dataclasses.dataclass
class Kill:
    program: list
    kind: str
    way: str
    settings: dict
    after: float  # seconds, from the moment that all threads run
    first: float  # so long before all others, or none, one that is chosen by chance
    seed: str

    @property
    def keeps_all(self):
        """Not a small flight recorder, nor any in a process that executes another program: a new one begins there."""
        ring = self.settings.get("GOTRACE_RING")
        return not ring or ring == "64M" and self.kind != "fork"


def choose(seed, number):
    chance = random.Random(f"{seed} {number}")
    kind = chance.choice(list(KINDS))
    settings = {"GOTRACE_LIVE": "on", "GOTRACE_QUIET": "1", "GOTRACE_FORMAT": chance.choice(FORMATS)}
    settings |= {name: chance.choice(values) for name, values in OTHERS.items()}
    way = chance.choice(WAYS)
    ring = chance.choice(RINGS)
    if ring and way != "family":
        settings["GOTRACE_RING"] = ring
    elif way == "clean" and chance.random() < 0.3:
        settings["GOTRACE_ROTATE"] = "1M"
    after = 0.002 * 100 ** chance.random()  # to 0.2 s
    first = chance.random() * 0.05 if chance.random() < 0.5 else 0
    return Kill(chance.choice(KINDS[kind]), kind, way, settings, after, first, f"{seed} {number}")


def run(*argv):
    return subprocess.run([str(arg) for arg in argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def start(directory, kill):
    """The program, its threads running; or `gotrace -f`, whose child that is."""
    journals = directory / "journals"
    journals.mkdir()
    argv = [*kill.program, str(journals), kill.kind]
    env = os.environ | kill.settings
    if kill.way == "family":
        argv = [str(GOTRACE), "-f", "-o", str(directory / "all.out"), "--", *argv]
    else:
        env |= proc.traced_env(directory / "%p.out")
    said = open(directory / "said", "w")
    child = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said, text=True, start_new_session=True)
    if child.stdout.readline() != "ready\n":
        raise Lost(f"it did not begin: {(directory / 'said').read_text()}")
    return child


def members(directory):
    """Process ids of the family, as far as they have come to a journal."""
    return [int(name) for name in os.listdir(directory / "journals")]


def kill_one(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def session(leader):
    """Processes of the program's session that live, but for those of gotrace, which also works in children."""
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            fields = (process / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == leader and os.readlink(process / "exe") != str(GOTRACE):
                yield int(process.name)
        except OSError:  # it is gone, or a zombie
            pass


def kill_all(child, kill):
    """The whole session, but never `gotrace -f`, which ends when all that it has started is gone."""
    if kill.way != "family":
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    deadline = time.monotonic() + 60
    while child.poll() is None or any(True for _ in session(child.pid)):
        for pid in session(child.pid):
            kill_one(pid)
        time.sleep(0.005)
        if time.monotonic() > deadline:
            os.killpg(child.pid, signal.SIGKILL)
            raise Lost("gotrace -f did not end in 60 s")


def make(directory, kill):
    chance = random.Random(kill.seed)
    child = start(directory, kill)
    try:
        time.sleep(kill.after)
        if kill.first:
            kill_one(chance.choice(members(directory)))
            time.sleep(kill.first)
    finally:
        kill_all(child, kill)
        child.stdout.close()


def recover(directory, kill):
    """All traces there are, none twice."""
    boxes = sorted(directory.glob("*.live"))
    if kill.way == "clean":
        result = run(GOTRACE, "recover", f"--clean={directory}")
        if result.returncode not in (0, 1):
            raise Lost(f"recover --clean: {result.returncode}, {result.stderr}")
        (directory / "said").write_text(result.stderr)
    elif kill.way == "each":
        for box in boxes:
            result = run(GOTRACE, "recover", box, "-o", f"{box}.out")
            if result.returncode not in (0, 1):
                raise Lost(f"recover {box}: {result.returncode}, {result.stderr}")
            if result.returncode == 0:
                box.with_suffix("").unlink(missing_ok=True)  # of which it is a copy, and more
    return len(boxes), [p for p in sorted(directory.glob("*.out*")) if not p.name.endswith(".live") and p.stat().st_size]


def logs_of(trace):
    statement = "SELECT message FROM logs WHERE category = 'journal'"
    result = run(GOTRACE, "sql", "--csv", trace, statement)
    if result.returncode:
        raise Lost(f"{trace}: {result.stderr}")
    return [row[0] for row in csv.reader(io.StringIO(result.stdout))][1:]


def compare(directory, paths, keeps_all):
    """How many logs all journals have: each of them is there, and one more of a thread at most."""
    found = collections.defaultdict(list)
    for path in paths:
        for message in logs_of(path):
            pid, thread, number = map(int, message.split(":"))
            found[pid, thread].append(number)
    total = 0
    for pid in members(directory):
        data = (directory / "journals" / str(pid)).read_bytes()
        for thread in range(THREADS) if data else ():
            written = struct.unpack_from("<Q", data, thread * LINE)[0]
            numbers = sorted(found.pop((pid, thread), []))
            first = numbers[0] if numbers and not keeps_all else 1
            last = numbers[-1] if numbers else 0
            if (numbers or keeps_all) and (last not in (written, written + 1) or numbers != list(range(first, last + 1))):
                raise Lost(f"thread {thread} of {pid}: journal {written}, found {len(numbers)}: {first} to {last}")
            total += written
    if found:
        raise Lost(f"nobody has written {list(found)[:3]}")
    return total


def once(directory, kill):
    """Counts of boxes, traces and logs."""
    make(directory, kill)
    boxes, paths = recover(directory, kill)
    n, refused, cut = traces.refused_of(paths)
    if refused or cut:
        raise Lost("\n".join(refused + [f"{path} lacks its end" for path in cut]))
    return {"boxes": boxes, "traces": n, "processes": len(members(directory)), "logs": compare(directory, paths, kill.keeps_all)}


def keep(directory):
    kept = pathlib.Path(tempfile.mkdtemp(prefix="kills-"))
    run("cp", "-a", "--sparse=always", f"{directory}/.", kept)
    return kept


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    args = parser.parse_args()
    counts, by = collections.Counter(), collections.defaultdict(collections.Counter)
    for number in range(args.first, args.first + args.times):
        kill, directory = choose(args.seed, number), pathlib.Path(tempfile.mkdtemp(prefix="kills-", dir=MEMORY))
        lost = 0
        try:
            counts.update(once(directory, kill))
        except Lost as why:
            lost = 1
            print(f"{number} of seed {args.seed}: {kill}\n{why}\nin {keep(directory)}", flush=True)
        shutil.rmtree(directory)
        for name in (kill.kind, kill.way, kill.settings["GOTRACE_FORMAT"], "ring" if "GOTRACE_RING" in kill.settings else "file", pathlib.Path(kill.program[0]).name):
            by[name].update({"kills": 1, "lost": lost})
        counts.update({"kills": 1, "lost": lost})
    print(", ".join(f"{name}: {n['kills']} kills, {n['lost']} lost" for name, n in by.items()))
    print(f"seed {args.seed}: {counts['kills']} kills of {counts['processes']} processes, {counts['boxes']} boxes, {counts['traces']} traces read, {counts['logs']} logs; {counts['lost']} lost something")
    return counts["lost"] > 0


sys.exit(main())
