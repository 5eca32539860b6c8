"""What the reports of `gotrace` say, as numbers."""

import dataclasses
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


@dataclasses.dataclass
class Shares:
    name: str
    lived: float  # ns
    cpu: float  # this and what follows, in percent
    queue: float
    sync: float
    network: float
    syscall: float
    sleep: float
    other: float
    unseen: float

    def sum(self):
        return sum(dataclasses.astuple(self)[2:])


def shares(trace):
    """thread → Shares, by `gotrace info`; no wait is set apart as idle."""
    text = proc.run([GOTRACE, "info", "--wide", "--idle=none", trace], timeout=60).ok().stdout
    assert re.search(r"routine +from +lived +on cpu +runnable +idle +sync .* unseen$", text, re.M), text
    rows = re.findall(r"^ +(\d+)  (\S+) +\S.*? +\S+ +([\d.]+[mun]?s)[ +]((?: +[\d.]+%)+)$", text, re.M)
    result = {}
    for tid, name, lived, rest in rows:
        cpu, queue, idle, *waits = map(float, re.findall(r"[\d.]+", rest))
        assert idle == 0
        result[int(tid)] = Shares(name, ns_of(lived), cpu, queue, *waits)
    return result


def waits(trace, kind):
    """What was waited for → (ns, count), by `gotrace top`; idle threads' waits, too."""
    text = proc.run([GOTRACE, "top", "--idle=none", f"--kind={kind}", "-n", "1000", trace]).ok().stdout
    rows = re.findall(r"^ *([\d.]+[mun]?s) +[\d.]+% +[\d.]+% +(\d+) +\S+ +\S+ +\w+ +(.*)$", text, re.M)
    return [(ns_of(ns), int(count), what) for ns, count, what in rows]
