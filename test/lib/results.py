"""What `pytest --results=DIR` leaves in DIR for test/run.py: a line for each test, and the files of tests that failed."""

import collections
import json
import pathlib
import re
import subprocess

from lib import seeds
from lib.classes import reason

FILE = "results.jsonl"


def folder(directory, test):
    """Where DIR has the files and messages of a test that failed."""
    return pathlib.Path(directory) / re.sub(r"[^\w.=-]+", "-", test)[-180:]


def keep(directory, test, path):
    """Moves what a test that failed has made out of pytest's temporary directory, of which only the last three remain."""
    target = folder(directory, test)
    target.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mv", path, target / f"run-{len(list(target.glob('run-*'))) + 1}"], check=False)  # mv takes sockets and FIFOs, too


class Results:
    """A pytest plugin, in the process that shows the results. A line: test, outcome, seconds, why, seed, earlier."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.running = collections.defaultdict(lambda: {"outcome": "passed", "seconds": 0.0, "why": "", "seed": {}, "earlier": []})

    def pytest_runtest_logreport(self, report):
        result = self.running[report.nodeid]
        result["seconds"] += report.duration
        result["earlier"] = [text for name, text in report.user_properties if name == "earlier"]
        if report.failed:
            result.update(outcome="failed", why=result["why"] or reason(report))
            result["seed"] |= re.findall(seeds.PRINTED, report.capstdout, re.M)
            target = folder(self.directory, report.nodeid)
            target.mkdir(parents=True, exist_ok=True)
            with open(target / "messages", "a") as file:
                print(report.longreprtext, report.capstdout, sep="\n", file=file)
        elif report.skipped:
            result["outcome"] = "skipped"
        if report.when not in ("setup", "call"):  # also when the process that ran it has crashed
            with open(self.directory / FILE, "a") as file:
                print(json.dumps({"test": report.nodeid} | self.running.pop(report.nodeid)), file=file)
