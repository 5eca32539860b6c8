"""Many ends by SIGKILL: kills a busy program of 8 threads at random moments, in each format, with a flight recorder
and CPU state, in turn, and compares what is recovered with the program's own journal: python3 test/bench/kills.py [TIMES [FORMAT...]]

What a failure has left is kept, and where is said."""

import itertools
import pathlib
import shutil
import sys
import tempfile
import time
import traceback

TEST = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TEST), str(TEST / "integration")]

import test_recover as box  # noqa: E402

KINDS = {"file": {}, "ring": box.RING, "sched": box.SCHED, "sched in a ring": box.SCHED | box.RING}


def once(directory, format, more):
    box.kill(directory, "busy", format=format, **more)
    box.recover_and_check(directory, format)
    return sum(box.journal(directory).values())


def main(times, formats):
    failed = logs = 0
    start = time.monotonic()
    modes = itertools.cycle(itertools.product(KINDS, formats))
    for n, (kind, format) in enumerate(itertools.islice(modes, times), 1):
        directory = pathlib.Path(tempfile.mkdtemp(prefix="kills-"))
        try:
            logs += once(directory, format, KINDS[kind])
            shutil.rmtree(directory)
        except AssertionError:
            failed += 1
            print(f"{kind} {format}: {directory}: {traceback.format_exc()}", flush=True)
        if n % 50 == 0 or n == times:
            print(f"{n} killed, {logs} logs in journals, {failed} failed, {time.monotonic() - start:.0f} s", flush=True)
    return failed > 0


sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000, sys.argv[2:] or box.gotools.FORMATS))
