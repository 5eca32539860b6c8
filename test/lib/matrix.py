"""The table of what a program may do and how it may be traced, and sets of rows that have every pair of it.

A place (SWITCH, CHILD, …) has values; `pairs` chooses rows, one value of each place, so that any two values of different
places meet in some row. Which rows those are depends on the table alone.
"""

import collections
import itertools

from . import gotools

DIRECTORY = "DIRECTORY"  # stands for one that there is

# Each switch of preload/shared/options.c with a value of each class that it tells apart, also of those that it refuses.
SWITCHES = {
    "GOTRACE_QUIET": ["", "0", "1", "loud"],
    "GOTRACE": ["on", "off", "maybe"],
    "GOTRACE_OUTPUT": ["%p.out", "%e-%u.out", f"{DIRECTORY}/t.out", "missing/t.out", ""],
    "GOTRACE_CHILDREN": ["0", "1", "all", "some"],
    "GOTRACE_MAX_PROCESSES": ["1", "1000", "few"],
    "GOTRACE_MAX_SIZE": ["4K", "100M", "big"],
    "GOTRACE_MAX_MEM": ["1M", "64M", "1K"],
    "GOTRACE_SYSCALL_MIN": ["0", "1000000", "1ms"],
    "GOTRACE_SYSCALLS": ["all", "blocking", "none", "some"],
    "GOTRACE_HOLD_MIN": ["0", "1s", "long"],
    "GOTRACE_FORMAT": [*gotools.FORMATS, "go1.99"],
    "GOTRACE_NAMES": ["now", "later", "never"],
    "GOTRACE_HEAP": ["on", "off", "maybe"],
    "GOTRACE_SCHED": ["on", "off", "maybe"],
    "GOTRACE_START": ["auto", "manual", "soon"],
    "GOTRACE_DELAY": ["1ms", "1h", "soon"],
    "GOTRACE_DURATION": ["1ms", "1h", "long"],
    "GOTRACE_RING": ["1M", "30s", "1s,2M", "much"],
    "GOTRACE_ROTATE": ["1M", "100ms", "1s,1M", "1ns"],
    "GOTRACE_KEEP": ["0", "2", "20000"],
    "GOTRACE_LIVE": ["on", "off", DIRECTORY, "maybe"],
    "GOTRACE_HANG": ["100ms", "1h", "long"],
    "GOTRACE_SIGNAL": ["USR2", "RTMIN+3", "KILL"],
    "GOTRACE_CPU_HZ": ["0", "1000", "20000"],
}

# With these, or one of theirs, nothing is recorded, or not for long: beside them other switches show nothing.
MASKS = {"GOTRACE=off", "GOTRACE_START=manual", "GOTRACE_DELAY=1h", "GOTRACE_CHILDREN=0", "GOTRACE_MAX_PROCESSES=1", "GOTRACE_MAX_SIZE=4K"} | {
    f"GOTRACE_OUTPUT={value}" for value in SWITCHES["GOTRACE_OUTPUT"]
}

# test/prog/matrix.c
CHILDREN = ["none", "fork", "vfork", "spawn", "system", "popen", "raw_clone", "clone", "self", "another"]
WHENS = ["never", "before", "after", "second", "handler"]
DESCRIPTORS = ["dup", "dup2", "dup3", "fcntl", "pipe", "socketpair", "eventfd", "accept", "open", "locks", "closefrom", "close_range", "closes"]
ENDS = ["return", "exit", "_exit", "quick_exit", "abort", "SIGINT", "SIGTERM", "SIGKILL", "exec", "exec_other", "daemon"]
PROGRAM = {"child": CHILDREN, "when": WHENS, "descriptor": DESCRIPTORS, "end": ENDS}

PARENTS = {  # what starts it → what has to be there for that
    "alone": [],
    "sh": [],
    "bash": ["bash"],
    "xargs": ["find", "xargs"],
    "tar": ["tar"],
    "git": ["git"],
    "make": ["make"],
    "parallel": ["parallel"],
    "cargo": ["cargo"],
    "python": [],
}

NEIGHBOURS = ["none", *(f"{allocator} {where}" for allocator in ("jemalloc", "tcmalloc", "mimalloc", "own") for where in ("before", "after")), "audit"]

AROUND = PROGRAM | {"parent": list(PARENTS), "neighbour": NEIGHBOURS}


def settings(masks=True):
    return [f"{name}={value}" for name, values in SWITCHES.items() for value in values if masks or f"{name}={value}" not in MASKS]


def pairs(places):
    """Rows (place → value) in which all pairs of values of different places are. Each begins with a pair that no row has
    yet, and takes for every other place the value that makes the most new ones."""
    values = [[(name, value) for value in places[name]] for name in places]
    places_two = itertools.combinations(range(len(values)), 2)
    ahead = [(a, b) for one, other in places_two for a in values[one] for b in values[other]]
    left = {x: set() for place in values for x in place}  # value → those that it has yet to meet
    for a, b in ahead:
        left[a].add(b)
        left[b].add(a)
    uses, rows = collections.Counter(), []
    for first, second in ahead:
        if second not in left[first]:
            continue
        row = [first, second]
        for place in values:
            if place[0][0] not in (first[0], second[0]):
                row.append(max(place, key=lambda x: (sum(had in left[x] for had in row), -uses[x])))
        for x in row:
            left[x].difference_update(row)
        uses.update(row)
        rows.append(dict(row))
    return rows


def each_switch():
    """Every value of every switch with all that may happen; alone, but for whether each child is recorded."""
    return [
        ([row["setting"], *row["children"]], row)
        for row in pairs({"setting": settings(), "children": [("GOTRACE_CHILDREN=all",), ()]} | AROUND)
    ]


def switches_together():
    """Every two of them, and all that may happen."""
    unset = {name: [None, *(s for s in settings(masks=False) if s.startswith(f"{name}="))] for name in SWITCHES if name != "GOTRACE"}
    return [([row[name] for name in unset if row[name]], row) for row in pairs(unset | AROUND)]


def every_switch_off():
    """GOTRACE=off, whatever the others are."""
    some = {name: [s for s in settings() if s.startswith(f"{name}=")] for name in SWITCHES if name != "GOTRACE"}
    return [(["GOTRACE=off", *(row[name] for name in some)], row) for row in pairs(some | AROUND)]
