"""The Open POSIX test suite, bare and recorded in several modes: python3 test/long/posix.py SUITE [MODE...]

SUITE is testcases/open_posix_testsuite of the Linux Test Project. Its tests are compiled here, once, into SUITE/built.
A verdict is the exit status: 0 pass, 1 fail, 2 unresolved, 4 unsupported, 5 untested, negative a signal, or "hung". Each
test runs in a folder and a session of its own, --jobs at a time: most of them sleep.
A test whose verdict is another than bare is run again, alone, --again times each way: a difference is a verdict then that
the bare program never gave. Not run: those of clock_settime and others that set the machine's clock.
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import traces

SETS_THE_CLOCK = re.compile(r"clock_settime\s*\(|settimeofday\s*\(")
FLAGS = "-g -O1 -std=c99 -D_POSIX_C_SOURCE=200809L -D_XOPEN_SOURCE=700 -w"


def tests_of(suite, only, without):
    """Source and the program that it becomes, of all that run and say a verdict; definitions are compiled only."""
    for kind, pattern in ("conformance", "*[0-9].c"), ("functional", "*.c"):
        for source in sorted((suite / kind).rglob(pattern)):
            name = source.relative_to(suite).with_suffix("")
            text = source.read_text(errors="replace")
            if re.search(only, str(name)) and not re.search(without, str(name)) and "main" in text and "buildonly" not in name.name and not SETS_THE_CLOCK.search(text):
                yield source, suite / "built" / name


def compile(suite, source, program):
    if program.exists():
        return True
    program.parent.mkdir(parents=True, exist_ok=True)
    argv = ["gcc", *FLAGS.split(), f"-I{suite}/include", f"-I{source.parent}", source, suite / "lib/common.c"]
    return subprocess.run([*argv, "-o", program, "-lpthread", "-lrt", "-lm"], capture_output=True).returncode == 0


def verdict(program, env, timeout):
    """What the test ends with; whatever it started ends with it."""
    with tempfile.TemporaryDirectory(prefix="posix-") as room:
        argv = {"cwd": room, "env": env, "stdin": subprocess.DEVNULL, "start_new_session": True}
        child = subprocess.Popen([program], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **argv)
        try:
            return child.wait(timeout)
        except subprocess.TimeoutExpired:
            return "hung"
        finally:
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            child.wait()


def run_all(programs, env, args):
    """Test → verdict."""
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        return dict(zip(programs, pool.map(lambda program: verdict(program, env, args.timeout), programs)))


class Bare:
    """Verdicts without the library: of a whole run, and of more where that is asked for."""

    def __init__(self, programs, args):
        self.args = args
        self.seen = collections.defaultdict(collections.Counter)
        for _ in range(args.bare):
            self.add(run_all(programs, dict(os.environ), args))

    def add(self, ends):
        for program, end in ends.items():
            self.seen[program][end] += 1

    def differences(self, ends, env):
        """Those that bare runs never had, with both sides' verdicts. Beside others a test may have no CPU for seconds: each is
        run again alone, --again times each way, and that counts."""
        first = {program: end for program, end in ends.items() if end not in self.seen[program]}
        for program, end in first.items():
            recorded = collections.Counter()
            for _ in range(self.args.again):
                self.add({program: verdict(program, dict(os.environ), self.args.timeout)})
                recorded[verdict(program, env, self.args.timeout)] += 1
            differs = set(recorded) - set(self.seen[program])
            name = program.relative_to(self.args.suite / "built")
            print(f"  {name}: {end} beside others; alone: bare {dict(self.seen[program])}, recorded {dict(recorded)}", flush=True)
            if differs:
                yield program


def run_mode(mode, programs, bare, args):
    """The number of differences, and of traces that are refused."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix=f"posix-{mode}-", dir=args.keep))
    begin = time.monotonic()
    env = os.environ | traces.environment(mode, directory)
    ends = run_all(programs, env, args)
    differences = list(bare.differences(ends, env))
    n, refused, cut = traces.refused(directory)
    for line in refused:
        print(f"  {line}")
    print(f"{mode}: {len(ends)} tests, {len(differences)} differences, {n} traces, {len(refused)} refused, {len(cut)} of killed processes lack their end, {time.monotonic() - begin:.0f} s", flush=True)
    if not refused and not args.keep:
        shutil.rmtree(directory)
    return len(differences) + len(refused)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("modes", nargs="*", default=["default", "calls", "ring", "children"])
    parser.add_argument("--only", default="", help="tests whose names have this")
    parser.add_argument("--without", default="^$", help="those whose names have this are left out")
    parser.add_argument("--jobs", type=int, default=24)
    parser.add_argument("--bare", type=int, default=2, help="runs without the library")
    parser.add_argument("--again", type=int, default=10)
    parser.add_argument("--timeout", type=float, default=100)
    parser.add_argument("--keep", help="a folder for all traces")
    args = parser.parse_intermixed_args()
    tests = list(tests_of(args.suite, args.only, args.without))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        built = list(pool.map(lambda test: compile(args.suite, *test), tests))
    programs = [program for (_, program), done in zip(tests, built) if done]
    bare = Bare(programs, args)
    counts = collections.Counter(max(seen, key=seen.get) for seen in bare.seen.values())
    unsteady = sum(len(seen) > 1 for seen in bare.seen.values())
    print(f"{len(bare.seen)} tests compiled of {len(tests)}; bare: {dict(counts)}, {unsteady} not the same twice", flush=True)
    bad = sum(run_mode(mode, programs, bare, args) for mode in args.modes)
    print(f"{sum(built)} tests in {len(args.modes)} modes: {'nothing differs, no trace is refused' if not bad else f'{bad} differences and refused traces'}")
    return bad > 0


sys.exit(main())
