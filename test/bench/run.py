"""What tracing costs, as Markdown tables. `make bench`, or run.py [--runs N] [--instructions] [--library PATH…].

Bare and traced runs alternate, so that what else the machine does meets both; each run reports the best of its batches,
and the table their medians in nanoseconds. --instructions counts instead of measuring (callgrind; exact, and the same
on every machine of an architecture) and is what instructions.md was written with.
"""

import argparse
import os
import pathlib
import re
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/test/bench"
CASES = [(op, depth) for op in ("lock", "malloc") for depth in (5,)]
CASES += [(op, depth) for op in ("read", "yield", "cond", "pipe", "create") for depth in (5, 20, 100)]
WALKS = ["same", "moved", "known", "first", "libunwind"]


def run(argv, library, scratch):
    env = os.environ | {"GOTRACE_OUTPUT": f"{scratch}/t.out"} | ({"LD_PRELOAD": str(library)} if library else {})
    result = subprocess.run([str(a) for a in argv], env=env, capture_output=True, text=True, timeout=300, check=True)
    for trace in pathlib.Path(scratch).glob("t.out*"):
        trace.unlink()
    return result


def nanoseconds(op, depth, library, scratch):
    return float(run([BUILD / "micro", op, depth], library, scratch).stdout)


def instructions(op, depth, library, scratch):
    """Per operation, of the thread that makes them: the difference between a short and a long run."""

    def count(times):
        out = pathlib.Path(scratch) / "callgrind"
        options = ["--tool=callgrind", "--separate-threads=yes", f"--callgrind-out-file={out}"]
        run(["valgrind", *options, BUILD / "micro", op, depth, times], library, scratch)
        total = int(re.search(r"^(?:totals|summary): (\d+)", pathlib.Path(f"{out}-01").read_text(), re.M)[1])
        for part in pathlib.Path(scratch).glob("callgrind*"):
            part.unlink()
        return total

    return (count(22000) - count(2000)) / 20000


def table(head, rows):
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(f"{v:.0f}" if isinstance(v, float) else str(v) for v in row) + " |")
    print(flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("--library", nargs="*", default=[ROOT / "libgotrace.so"], help="one more column pair for each")
    args = parser.parse_args()
    libraries = [None, *(pathlib.Path(path).resolve() for path in args.library)]
    measure, runs, unit = (instructions, 1, "instructions") if args.instructions else (nanoseconds, args.runs, "ns")
    cases = [c for c in CASES if c[0] not in ("cond", "pipe", "create")] if args.instructions else CASES
    with tempfile.TemporaryDirectory(dir="/dev/shm") as scratch:
        rows = []
        for op, depth in cases:
            figures = [[] for _ in libraries]
            for _ in range(runs):
                for values, library in zip(figures, libraries):
                    values.append(measure(op, depth, library, scratch))
            bare, *traced = map(statistics.median, figures)
            rows.append([op, depth, bare, *(v for t in traced for v in (t, t - bare))])
        table([f"{unit} per", "depth", "bare", *("traced", "difference") * len(args.library)], rows)
        if args.instructions:
            return
        walks = {d: dict(l.split() for l in run([BUILD / "walk", d], None, scratch).stdout.splitlines()) for d in (5, 20, 100)}
        table(["ns per stack", *WALKS], [[f"depth {d}", *(w.get(n, "-") for n in WALKS)] for d, w in walks.items()])


if __name__ == "__main__":
    main()
