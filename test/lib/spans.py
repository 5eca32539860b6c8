"""What threads did in a trace, by our own reader; and whether Go's readers take it."""

import collections
import re

from . import BUILD, gotools, proc
from .reports import GOTRACE

SLACK = 1000  # ns: effects are written after causes


def sums(trace, *window, where=True):
    """(goroutine, kind, function) → ns in that window, and None → the trace's length, as our own reader has it."""
    lines = proc.run([BUILD / "test/fuzz/sums", trace, *window], timeout=120).ok().stdout.splitlines()
    found = collections.Counter({None: int(lines[0].split()[1])})
    for g, kind, leaf, ns in (line.split(maxsplit=2)[:2] + line.split(maxsplit=2)[2].rsplit(maxsplit=1) for line in lines[1:]):
        found[int(g), kind, leaf if where else "-"] += int(ns)
    return found


def window(trace, start, end, **options):
    """The same of a part of its time, with the length that it is to have."""
    found, length = sums(trace, start, end, **options), sums(trace)[None]
    found[None] = min(end, length) - start
    return found


def differences(one, other, slack=SLACK):
    return {key: (one[key], other[key]) for key in one.keys() | other.keys() if abs(one[key] - other[key]) > slack}


def check_readers(format, *traces):
    """By every Go that reads it: not one may be refused."""
    for go in gotools.readers_of(format).values():
        if format == "go1.5":
            for trace in traces:
                gotools.check(trace, go=go)
            continue
        result = proc.run([gotools.read_all(go), *traces], timeout=600).ok()
        assert not result.stdout, f"{go}: {result.stdout[:2000]}"


def event_counts(trace):
    text = proc.run([GOTRACE, "info", trace], timeout=60).ok().stdout
    return {kind: int(n) for n, kind in re.findall(r"^ +(\d+)  (\w+)$", text, re.M)}
