"""What the reports of `gotrace` say, as numbers."""

import dataclasses
import json
import re

from . import ROOT, proc

GOTRACE = ROOT / "build/gotrace"
UNITS = {"s": 1e9, "ms": 1e6, "us": 1e3, "µs": 1e3, "ns": 1}


def ns_of(text):
    number, unit = re.fullmatch(r"([\d.]+)([muµn]?s)", text).groups()
    return float(number) * UNITS[unit]


def without_cancellation(functions):
    """But for those of glibc's, from 2.41 on, in which a thread that may be cancelled makes its calls."""
    return [name for name in functions if not re.fullmatch("_*(internal_)?syscall_cancel(_arch)?", name)]


PARTS = ["cpu", "runnable", "sync", "network", "calls", "sleep", "other", "unseen"]


@dataclasses.dataclass
class Shares:
    name: str
    lived: float  # ns
    cpu: float  # this and the parts after it, in percent; in the order of PARTS
    queue: float
    sync: float
    network: float
    syscall: float
    sleep: float
    other: float
    unseen: float

    def sum(self):
        return sum(dataclasses.astuple(self)[2:])


def report(trace, command, *options):
    """The report as an object, by --json."""
    return json.loads(proc.run([GOTRACE, command, "--json", *options, trace], timeout=60).ok().stdout)


def shares(trace):
    """thread → Shares, by `gotrace info`; no wait is set apart as idle."""
    result = {}
    for row in report(trace, "info", "--idle=none")["by_thread"]:
        assert row["idle_ns"] == 0
        parts = (100 * row[f"{part}_ns"] / row["ns"] for part in PARTS if row["ns"])
        if row["ns"] and row["thread"]["tid"]:
            result[row["thread"]["tid"]] = Shares(row["thread"]["name"] or "-", row["lived_ns"], *parts)
    return result


def waits(trace, kind):
    """What was waited for → (ns, count), by `gotrace top`; idle threads' waits, too."""
    rows = report(trace, "top", "--idle=none", f"--kind={kind}", "-n", "1000")["waits"]
    return [(row["total_ns"], row["count"], row["place"]) for row in rows]


def table(text, *heads):
    """
    The rows of the table that has these heads, among others: each a dict, head → cell.

    A cell lies below its head and is one word, but the last one ends with the line. A line without a
    cell before the last column continues the row above it, as on a terminal. Other lines without a
    first cell, such as the holders below a lock, are left out.
    """
    lines = text.splitlines()
    found = {head: re.compile(rf"(?<!\S){re.escape(head)}(?!\S)") for head in heads}
    at = next(i for i, line in enumerate(lines) if all(its.search(line) for its in found.values()))
    spans = {head: its.search(lines[at]).span() for head, its in found.items()}
    last = max(heads, key=spans.get)
    assert spans[last][1] == len(lines[at]), f"{last} is not the last head: {lines[at]}"
    first, rows, is_row = min(heads, key=spans.get), [], False
    for line in lines[at + 1 :]:
        if not line or line[0] != " " or re.match(r" +\(", line[:4]):
            break
        words = {head: [word[0] for word in re.finditer(r"\S+", line) if word.start() < end and word.end() > start] for head, (start, end) in spans.items()}
        cell = line[spans[last][0] :].strip()
        if line[: spans[last][0]].strip():
            is_row = bool(words[first])
            rows += [{head: its[0] if its else "" for head, its in words.items()} | {last: cell}] if is_row else []
        elif is_row:
            rows[-1][last] += f" {cell}"
    return rows
