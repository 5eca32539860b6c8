"""Many ends by SIGKILL: kills a busy program of 8 threads at random moments, in each mode that has a black box in turn,
and compares what is recovered with the program's own journal: python3 test/bench/kills.py [TIMES]"""

import itertools
import pathlib
import sys
import tempfile
import time

TEST = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TEST), str(TEST / "integration")]

import test_recover as box  # noqa: E402

MODES = [(kind, format, more) for kind, more in (("file", {}), ("ring", box.RING)) for format in box.gotools.FORMATS]


def once(format, more):
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        box.kill(directory, format=format, **more)
        box.recover_and_check(directory, format)
        return sum(box.journal(directory).values())


def main(times):
    failed = logs = 0
    start = time.monotonic()
    for n, (kind, format, more) in enumerate(itertools.islice(itertools.cycle(MODES), times), 1):
        try:
            logs += once(format, more)
        except AssertionError as error:
            failed += 1
            print(f"{kind} {format}: {error}", flush=True)
        if n % 50 == 0 or n == times:
            print(f"{n} killed, {logs} logs in journals, {failed} failed, {time.monotonic() - start:.0f} s", flush=True)
    return failed > 0


sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
