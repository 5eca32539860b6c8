"""Instructions of the hot paths: counted by callgrind, kept in instructions.md, compared by a test."""

import os
import pathlib
import re
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD, TABLE = ROOT / "build/test/bench", pathlib.Path(__file__).with_name("instructions.md")
STACKS = {"C": "micro", "C++": "micro-cxx"}
DEEP = [("C", 5), ("C", 20), ("C", 100), ("C++", 20), ("C++", 100)]
CASES = [("lock", "C", 5), ("malloc", "C", 5), ("look", "C", 5), *((op, *deep) for op in ("read", "yield") for deep in DEEP)]
MODES = {"recording": {}, "ring": {"GOTRACE_RING": "30s"}, "manual": {"GOTRACE_START": "manual"}}
HEAD = """# Instructions of hot paths

Written by `python3 test/bench/run.py --instructions` (callgrind, x86-64, gcc 12 -O2): those of the thread that makes the
calls, on a stack of so many frames of `descend.c` or `descend.cc`. `bare`: without the library; what it adds while
recording to a file, with the flight recorder (`GOTRACE_RING`), and while nothing is recorded (`GOTRACE_START=manual`).
Each yield is written (`GOTRACE_SYSCALL_MIN=0`), and no read.
`test/integration/test_instructions.py` fails when one grows by a tenth; by a fifth, where another compiler built it.

| operation | frames | depth | bare | recording | ring | manual |
|---|---|---|---|---|---|---|
"""


def count(op, frames, depth, library, mode):
    """Per operation: the difference between a short and a long run. `mode`: its variables."""

    def total(times):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as scratch:
            # Under callgrind some calls take long enough to be events: none of them is to be, and every yield.
            least = 0 if op == "yield" else 10**12
            settings = {"GOTRACE_OUTPUT": f"{scratch}/t.out", "GOTRACE_SYSCALL_MIN": str(least)}
            env = os.environ | settings | mode | ({"LD_PRELOAD": str(library)} if library else {})
            options = ["--tool=callgrind", "--separate-threads=yes", f"--callgrind-out-file={scratch}/callgrind"]
            argv = ["valgrind", *options, str(BUILD / STACKS[frames]), op, str(depth), str(times)]
            subprocess.run(argv, env=env, capture_output=True, timeout=120, check=True)
            text = pathlib.Path(f"{scratch}/callgrind-01").read_text()
        return int(re.search(r"^(?:totals|summary): (\d+)", text, re.M)[1])

    return (total(6000) - total(1000)) / 5000


def added(op, frames, depth, library=ROOT / "libgotrace.so"):
    """(bare, {mode: added})"""
    bare = count(op, frames, depth, None, {})
    return bare, {name: count(op, frames, depth, library, mode) - bare for name, mode in MODES.items()}


def write():
    rows = []
    for op, frames, depth in CASES:
        bare, more = added(op, frames, depth)
        rows.append(" | ".join([f"| {op}", frames, str(depth), *(f"{n:.0f}" for n in (bare, *more.values()))]) + " |\n")
    TABLE.write_text(HEAD + "".join(rows))
    print(TABLE.read_text())


def kept():
    """{(operation, frames, depth): {mode: added}}"""
    rows = re.findall(r"^\| (\w+) \| (\S+) \| (\d+) \| \d+((?: \| -?\d+)+) \|$", TABLE.read_text(), re.M)
    return {(op, frames, int(depth)): dict(zip(MODES, map(int, more.split("|")[1:]))) for op, frames, depth, more in rows}
