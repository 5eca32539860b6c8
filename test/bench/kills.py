"""Many ends by SIGKILL: kills a busy program of 8 threads at random moments, in each format, and compares what is
recovered with the program's own journal: python3 test/bench/kills.py [--times=1000] [--seed=N] [FORMAT...]

What a kill is made with follows from the seed and its number, which a failure says: `--first=NUMBER --times=1` with that
seed and format makes it again, at about the same moment. What a failure has left is kept, and where is said. One
in ten is read by a Go, too. The table at the end is what kills.md has; most columns are where the kills met the program,
as kills.c reads it in the box.
"""

import argparse
import collections
import dataclasses
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TEST = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TEST)]

from lib import BUILT, PROGRAMS, gotools, proc  # noqa: E402

MEMORY = "/dev/shm"
AT_ONCE = 50  # traces that a Go reads
JOURNAL = 8 * 64  # bytes


@dataclasses.dataclass
class Kill:
    """What one is made with, all by chance."""

    format: str
    after: float  # seconds, from the program's start
    settings: dict
    end: list  # what else the program does
    read: str  # by that Go, too; or none

    @property
    def ring(self):
        return self.settings.get("GOTRACE_RING")


def choose(seed, format, number):
    chance = random.Random(f"{seed} {format} {number}")
    settings = {"GOTRACE_LIVE": "on", "GOTRACE_FORMAT": format, "GOTRACE_SYSCALL_MIN": "0"}
    after = 0.005 * 40 ** chance.random()  # to 0.2 s, as many before 31 ms as after
    ring = chance.choice([None, None, None, "256M", "1M"])
    if ring:
        settings["GOTRACE_RING"] = ring
    elif chance.random() < 0.25:
        settings["GOTRACE_ROTATE"] = "1M"
    if chance.random() < 0.3:
        settings["GOTRACE_SCHED"] = "on"
    if chance.random() < 0.3:
        settings["GOTRACE_MAX_MEM"] = "2M"  # generations are over when that is full
    if chance.random() < 0.5:
        settings["GOTRACE_NAMES"] = "later"
    end = ["busy"]
    if chance.random() < 0.1:
        ms = chance.randrange(80)
        end = ["soon", str(ms)]
        after = 0.01 + (ms + chance.randrange(60)) / 1000
    go = chance.choice(sorted(gotools.readers_of(format).values())) if chance.random() < 0.1 else None
    return Kill(format, after, settings, end, go)


class Lost(Exception):
    """Not all that the journal has is there."""


def run(*argv):
    return subprocess.run([str(arg) for arg in argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def make(directory, kill):
    """Whether the program ended before that."""
    (directory / "journal").write_bytes(bytes(JOURNAL))
    env = os.environ | proc.traced_env(directory / "t.out", kill.settings)
    with open(directory / "said", "w") as said:
        argv = [PROGRAMS / "killed", directory / "journal", *kill.end]
        child = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
    time.sleep(kill.after)
    child.kill()
    status = child.wait()
    if status != -signal.SIGKILL and (status != 0 or kill.end[0] != "soon"):
        raise Lost(f"it has ended by itself, with {status}")
    return status == 0


def recover(directory):
    """The box; traces in which all has to be; whether there was anything in it."""
    box, trace = directory / "t.out.live", directory / "all.out"
    if not box.exists():
        return "-", [], ["no box"]
    result = run(BUILT / "gotrace", "recover", box, "-o", trace)
    (directory / "recovered").write_text(result.stderr)
    if result.returncode not in (0, 1):
        raise Lost(f"recover: {result.returncode}, {result.stderr}")
    if "there was no space" in result.stderr or "no whole events" in result.stderr:
        raise Lost(result.stderr)
    return (box, [trace], []) if result.returncode == 0 else (box, [], ["empty box"])


def once(directory, kill):
    """Logs in the journal; where the kill met the program."""
    ended = ["ended"] if make(directory, kill) else []
    box, traces, met = recover(directory)
    if ended and box != "-":
        raise Lost("it has left its box\n")
    if kill.ring and not traces and kill.end[0] == "soon":
        return 0, [*met, *ended]  # the recorder has written a file of its own, or nothing yet
    if not kill.ring:
        traces += sorted(path for path in directory.glob("t.out*") if re.fullmatch(r"t\.out(\.\d+)?", path.name))
    rotated = ["rotated"] if len(traces) > 2 else []
    result = run(BUILT / "test/bench/kills", directory / "journal", "any" if kill.ring == "1M" else "begin", box, *traces)
    if result.returncode != 0:
        raise Lost(result.stdout + result.stderr)
    logs, *words = result.stdout.split()
    return int(logs), [*met, *words, *rotated, *ended]


class Readers:
    """Go's own readers: each gets many traces at once."""

    def __init__(self):
        self.room = pathlib.Path(tempfile.mkdtemp(prefix="kills-read-", dir=MEMORY))
        self.waiting = collections.defaultdict(list)
        self.n = 0

    def add(self, go, directory, name):
        trace = directory / "all.out"
        if trace.exists():
            self.waiting[go].append(trace.rename(self.room / name))

    def read(self):
        """What they refuse."""
        refused = []
        for go, traces in self.waiting.items():
            said = run(gotools.read_all(go), *traces).stdout
            refused += said.splitlines()
            self.n += len(traces)
            for trace in traces:
                if str(trace) not in said:
                    trace.unlink()
        self.waiting.clear()
        return refused

    def close(self):
        if not any(self.room.iterdir()):
            self.room.rmdir()


def keep(directory):
    kept = pathlib.Path(tempfile.mkdtemp(prefix="kills-"))
    run("cp", "-a", "--sparse=always", f"{directory}/.", kept)
    return kept


def kill_all(seed, formats, first, times, readers):
    """Of each format: how often what was met."""
    met = {format: collections.Counter() for format in formats}
    for number in range(first, first + times):
        for format in formats:
            kill, counts = choose(seed, format, number), met[format]
            directory = pathlib.Path(tempfile.mkdtemp(prefix="kills-", dir=MEMORY))
            try:
                logs, words = once(directory, kill)
                counts.update(words)
                counts["logs"] += logs
                if kill.read:
                    readers.add(kill.read, directory, f"{format}.{number}")
            except Lost as why:
                counts["lost"] += 1
                print(f"{format} {number} of seed {seed}: {kill}\n{why}\nin {keep(directory)}", flush=True)
            counts["kills"] += 1
            for name in ("GOTRACE_RING", "GOTRACE_SCHED"):
                counts[name] += name in kill.settings
            shutil.rmtree(directory)
        if number % AT_ONCE == AT_ONCE - 1 or number == first + times - 1:
            for line in readers.read():
                met[re.search(r"/(go1\.\d+)\.\d+", line)[1]]["refused"] += 1
                print(f"seed {seed}: {line}", flush=True)
            report(met, readers)
    return met


COLUMNS = {
    "kills": "kills",
    "logs": "logs",
    "lost": "lost",
    "refused": "refused",
    "GOTRACE_RING": "ring",
    "GOTRACE_SCHED": "sched",
    "no box": "no box",
    "empty box": "empty box",
    "first-generation": "first generation",
    "tables-grown": "tables grown",
    "between-generations": "between generations",
    "vain-wake-ups": "vain wake-ups",
    "ring-turned": "ring turned",
    "rotated": "rotated",
    "ended": "ended",
}


def report(met, readers):
    print(f"\n{time.strftime('%H:%M:%S')}, {readers.n} read by Go\n| format | {' | '.join(COLUMNS.values())} |")
    print("|---" * (len(COLUMNS) + 1) + "|")
    for format, counts in met.items():
        print(f"| {format} | {' | '.join(str(counts[name]) for name in COLUMNS)} |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("formats", nargs="*", default=list(gotools.FORMATS))
    parser.add_argument("--times", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    args = parser.parse_args()
    readers = Readers()
    met = kill_all(args.seed, args.formats, args.first, args.times, readers)
    readers.close()
    return any(counts["lost"] or counts["refused"] for counts in met.values())


sys.exit(main())
