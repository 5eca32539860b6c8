"""Instructions of the hot paths: counted by callgrind, kept in instructions.md, compared by a test."""

import os
import pathlib
import re
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MICRO, TABLE = ROOT / "build/test/bench/micro", pathlib.Path(__file__).with_name("instructions.md")
CASES = [("lock", 5), ("malloc", 5), *((op, depth) for op in ("read", "yield") for depth in (5, 20, 100))]
MODES = {"recording": {}, "ring": {"GOTRACE_RING": "30s"}, "manual": {"GOTRACE_START": "manual"}}
HEAD = """# Instructions of hot paths

Written by `python3 test/bench/run.py --instructions` (callgrind, x86-64, gcc 12 -O2): those of the thread that makes the
calls. `bare`: without the library; what it adds while recording to a file, with the flight recorder (`GOTRACE_RING`), and
while nothing is recorded (`GOTRACE_START=manual`). `test/integration/test_instructions.py` fails when one grows by a
tenth.

| operation | depth | bare | recording | ring | manual |
|---|---|---|---|---|---|
"""


def count(op, depth, library, mode):
    """Per operation: the difference between a short and a long run. `mode`: its variables."""

    def total(times):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as scratch:
            # Under callgrind some calls take long enough to be events: none of them is to be.
            settings = {"GOTRACE_OUTPUT": f"{scratch}/t.out", "GOTRACE_SYSCALL_MIN": str(10**12)}
            env = os.environ | settings | mode | ({"LD_PRELOAD": str(library)} if library else {})
            options = ["--tool=callgrind", "--separate-threads=yes", f"--callgrind-out-file={scratch}/callgrind"]
            argv = ["valgrind", *options, str(MICRO), op, str(depth), str(times)]
            subprocess.run(argv, env=env, capture_output=True, timeout=120, check=True)
            text = pathlib.Path(f"{scratch}/callgrind-01").read_text()
        return int(re.search(r"^(?:totals|summary): (\d+)", text, re.M)[1])

    return (total(6000) - total(1000)) / 5000


def added(op, depth, library=ROOT / "libgotrace.so"):
    """(bare, {mode: added})"""
    bare = count(op, depth, None, {})
    return bare, {name: count(op, depth, library, mode) - bare for name, mode in MODES.items()}


def write():
    rows = []
    for op, depth in CASES:
        bare, more = added(op, depth)
        rows.append(" | ".join([f"| {op}", str(depth), *(f"{n:.0f}" for n in (bare, *more.values()))]) + " |\n")
    TABLE.write_text(HEAD + "".join(rows))
    print(TABLE.read_text())


def kept():
    """{(operation, depth): {mode: added}}"""
    rows = re.findall(r"^\| (\w+) \| (\d+) \| \d+((?: \| -?\d+)+) \|$", TABLE.read_text(), re.M)
    return {(op, int(depth)): dict(zip(MODES, map(int, more.split("|")[1:]))) for op, depth, more in rows}
