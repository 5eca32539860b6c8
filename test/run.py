"""Runs all tests and says whether the commit is good. scripts/test starts it.

usage: test/run.py [--strict] [pytest options]

First come the tests that may run beside others, then those that need the machine for themselves. If at most FLAKY tests
failed, each of them runs once more, alone: one that passes then is flaky. The run is good if no test failed twice and at most FLAKY tests are flaky;
with --strict, none may be. build/failures has the files and messages of each test that failed.
"""

import collections
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
FAILURES = ROOT / "build/failures"
FLAKY = 5
SLOWEST = 20
NO_TESTS = 5  # pytest's exit status where its options choose no test


class Broken(Exception):
    """pytest could not run the tests."""


def run(part, options, seed=()):
    """The results of one run of pytest, with the seed of an earlier one: see lib/results.py."""
    directory = FAILURES / part
    argv = [sys.executable, "-m", "pytest", "-q", "-rs", f"--rootdir={ROOT}", f"--results={directory}", *options]
    status = subprocess.run(argv, cwd=ROOT, env=os.environ | dict(seed), check=False).returncode
    lines = directory / "results.jsonl"
    results = [json.loads(line) for line in lines.read_text().splitlines()] if lines.exists() else []
    # Python's own status is 1, too, if pytest itself fails.
    if status not in (0, 1, NO_TESTS) or (status == 1) != any(result["outcome"] == "failed" for result in results):
        raise Broken(f"pytest ended with status {status}: {shlex.join(map(str, argv))}")
    return results


def look_again(failed):
    """The outcome of each of these tests when it runs alone."""
    print(f"\n{len(failed)} failed. A second look at each, alone:", flush=True)
    again = [result for n, first in enumerate(failed) for result in run(f"again-{n}", [first["test"]], first["seed"])]
    return {result["test"]: result["outcome"] for result in again}


def show_times(results):
    seconds = collections.Counter()
    for result in results:
        seconds[os.path.dirname(result["test"].partition("::")[0])] += result["seconds"]
    print("\nSlowest:")
    for result in sorted(results, key=lambda result: -result["seconds"])[:SLOWEST]:
        print(f"{result['seconds']:8.1f} s  {result['test']}")
    print("Folders: " + ", ".join(f"{folder} {total:.0f} s" for folder, total in seconds.most_common()))


def show(word, results):
    for result in results:
        print(f"{word} {result['test']}: {result['why']}")
        variables = {"ALL_NEEDS": os.environ.get("ALL_NEEDS", "")} | result["seed"]
        print(f"    again: {' '.join(map('='.join, variables.items()))} python3 -m pytest {shlex.quote(result['test'])}")


def verdict(results, again, strict):
    """Prints what came of the tests. Returns whether the run is good."""
    print()
    for result in results:
        if result["outcome"] == "passed" and result["earlier"]:
            print(f"measured {len(result['earlier']) + 1} times: {result['test']}: {result['earlier'][0]}")
    of = collections.defaultdict(list)
    for result in results:
        flaky = result["outcome"] == "failed" and again.get(result["test"]) == "passed"
        of["flaky" if flaky else result["outcome"]].append(result)
    show("FLAKY", of["flaky"])
    show("FAILED", of["failed"])
    if of["flaky"] or of["failed"]:
        print(f"What they have left is in {FAILURES}.")
    print(", ".join(f"{len(of[outcome])} {outcome}" for outcome in ("passed", "failed", "flaky", "skipped")), flush=True)
    return not of["failed"] and len(of["flaky"]) <= (0 if strict else FLAKY)


def main(options):
    strict = "--strict" in options
    options = [option for option in options if option != "--strict"]
    shutil.rmtree(FAILURES, ignore_errors=True)
    # Three at a time on two CPUs, since one of them waits as a rule.
    results = run("beside", ["test", "--part=beside", "-n", "3", "--dist", "loadfile", *options])
    results += run("alone", ["test", "--part=alone", *options])
    failed = [result for result in results if result["outcome"] == "failed"]
    # More than FLAKY failures cannot become a good run.
    again = look_again(failed) if 0 < len(failed) <= FLAKY else {}
    show_times(results)
    good = verdict(results, again, strict)
    return 0 if good and results else 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Broken as broken:
        sys.exit(f"FAILED {broken}")
    except KeyboardInterrupt:
        sys.exit(130)
