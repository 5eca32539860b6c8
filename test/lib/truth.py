"""Programs that know how long their threads waited (test/prog/rows.h), against what the Go tools read in the trace."""

import collections
import dataclasses
import re

from . import LIBC, ROOT

# What is between the two is the machine's: the thread could go on and had no CPU.
TOLERANCE = 0.05


@dataclasses.dataclass(frozen=True)
class Truth:
    hook: str
    waiter: int  # kernel threads; a waker of 0: none of this process
    waker: int
    ns: int  # from call to return
    arranged: int  # how much of it the program brought about
    kind: str  # sync, cond, network, sleep, syscall
    start: int  # ns, by the program's clock

    def covers(self, ns):
        return (1 - TOLERANCE) * self.arranged <= ns <= (1 + TOLERANCE) * self.ns


@dataclasses.dataclass
class Slice:
    """A wait or a system call of a goroutine, as the trace has it."""

    leaf: str
    reason: str  # of a wait; "syscall" of a system call
    start: int
    ns: int = None  # None: the trace ends first
    ender: int = None  # the kernel thread that ended it


def rows(program, *kinds):
    """The names of the rows of these kinds, read in the program's source: the program may not be built yet."""
    table = (ROOT / f"test/prog/{program}.c").read_text().partition("struct row table[] = {\n")[2]
    rows = re.findall(r'^(?:#if __GLIBC_PREREQ\(2, (\d+)\)\n)?    (\w?)[({]"([^"]+)"(.*(?:\n     .*)*)', table, re.M)
    kind_of = lambda macro, rest: (re.findall(r"\.kind = (\w+)", rest) or ["COUNTED" if macro in ("X", "T") else "TIMED"])[0].lower()
    return [name for least, macro, name, rest in rows if int(least or 0) <= LIBC and kind_of(macro, rest) in kinds]


def skipped(result):
    """Why this machine cannot do some rows, by row."""
    return dict(re.findall(r"^skip (\S+): (.*)$", result.stdout, re.M))


def truths(result):
    lines = [line.rsplit(maxsplit=6) for line in result.stdout.splitlines()]
    return [
        Truth(f[0], *map(int, f[1:5]), f[5], int(f[6])) for f in lines if len(f) == 7 and not f[0].startswith(("result", "skip"))
    ]


def by_row(result):
    """The truths of a run of several rows, by row: the results of a row end it."""
    rows, these = collections.defaultdict(list), []
    for line in result.stdout.splitlines():
        if line.startswith("result "):
            rows[line.split()[1]] += these
            these = []
        else:
            these += truths(dataclasses.replace(result, stdout=line))
    return rows


def results(result):
    """What the calls returned, with errno: the same in every run."""
    return [line for line in result.stdout.splitlines() if line.startswith(("result ", "skip "))]


def name(leaf):
    """`__pread64_chk` → `pread`: the other names a function has for buffer checks and large files."""
    leaf = {"__getdelim": "getline", "getdelim": "getline", "fts64_read": "fts_read"}.get(leaf, leaf)
    leaf = re.sub(r"^__(\w+)_(chk|2)$", r"\1", leaf)
    leaf = re.sub(r"^__([fl]?)x(stat\w*)$", r"\1\2", leaf)  # before glibc 2.33
    return re.sub(r"64(v2)?$", lambda version: version[1][1:] if version[1] else "", leaf)


def goroutines(events):
    """Kernel thread id → goroutine."""
    return {e.m: e.goid for e in events if e.is_go("Runnable", "Running")} | {
        e.m: e.goid for e in events if e.is_go("Undetermined", "Running")
    }


def slices(events):
    """Goroutine → its Slices, in order."""
    found = collections.defaultdict(list)
    for e in events:
        if e.goid is None or e.old == e.new:
            continue
        if e.new in ("Waiting", "Syscall"):
            leaf = name(e.stack[0].func) if e.stack else "?"
            found[e.goid].append(Slice(leaf, e.reason if e.new == "Waiting" else "syscall", e.time))
        elif e.old in ("Waiting", "Syscall"):
            last = found[e.goid][-1]
            last.ns, last.ender = e.time - last.start, e.m
    return found


def within_generations(shown, events):
    """Of these slices those that no generation ended in: a call that runs at that moment is shown, however short."""
    ends = [e.time for e in events if e.kind == "Sync"]
    return [s for s in shown if not any(s.start < end <= s.start + s.ns for end in ends)]


REASON = {"sync": "sync", "cond": "sync.(*Cond).Wait", "network": "network", "sleep": "sleep", "syscall": "syscall"}


def check(expected, events, *, but=()):
    """Every expected wait is in the trace with its time, place, reason and waker; its thread has no other.

    `but` are reasons of slices that are not looked at. A lock, and a condition variable because of its mutex, may be
    given away before the woken thread gets it: then one wait is in several parts.
    """
    g_of, found = goroutines(events), slices(events)
    by_thread = collections.defaultdict(list)
    for t in expected:
        by_thread[t.waiter].append(t)
    for thread, its in by_thread.items():
        assert thread in g_of, f"{its[0]}: thread not in the trace"
        parts = [s for s in found[g_of[thread]] if s.reason not in but]
        if len(its) == 1 and its[0].kind in ("sync", "cond"):
            groups = [parts]
        else:
            assert len(parts) == len(its), f"{len(its)} expected, {len(parts)} in the trace: {its}; {parts}"
            groups = [[part] for part in parts]
        for t, group in zip(its, groups):
            _check_one(t, group)


def _check_one(t, parts):
    assert parts, f"{t}: not in the trace"
    assert {p.leaf for p in parts} == {t.hook}, f"{t}: {parts}"
    # later parts of a wait at a condition variable may be at its mutex
    assert parts[0].reason == REASON[t.kind], f"{t}: {parts}"
    assert {p.reason for p in parts[1:]} <= {REASON[t.kind], "sync"}, f"{t}: {parts}"
    assert None not in [p.ns for p in parts], f"{t}: has no end: {parts}"
    if t.arranged:
        assert t.covers(sum(p.ns for p in parts)), f"{t}: {parts}"
    # A condition variable is signalled first and its mutex may come from others afterwards.
    waker = parts[0].ender if t.kind == "cond" else parts[-1].ender
    assert waker == (t.waker or t.waiter), f"{t}: {parts}"


def check_profile(expected, profile, kinds):
    """The sums of a blocking profile, by leaf function, for the truths of these kinds."""
    sums = collections.defaultdict(lambda: [0, 0])
    for t in expected:
        if t.kind in kinds:
            sums[t.hook][0] += t.arranged
            sums[t.hook][1] += t.ns
    leaves = collections.Counter()
    for leaf, ns in profile.leaf_ns().items():
        leaves[name(leaf)] += ns
    assert sums
    for hook, (least, most) in sums.items():
        assert (1 - TOLERANCE) * least <= leaves[hook] <= (1 + TOLERANCE) * most, (
            f"{hook}: {leaves[hook]} ns for {least} to {most}"
        )
