"""What tracing costs, side by side: `make bench`, or run.py [--only REGEX] [--tracers NAME…] [--runs N].

Every case is run bare and under each tracer in turn, several times; the tables show medians. The result goes to standard
output; `make bench RECORD=1` (--record, of everything) also writes it to RESULTS.md. `make bench-smoke` (--smoke) runs
everything once and briefly, bare and under libgotrace, and fails if a row does not come out; its numbers mean nothing.
--instructions counts instead (callgrind; the same on every machine of an architecture) and writes instructions.md.
"""

import argparse
import contextlib
import datetime
import os
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "test"), str(pathlib.Path(__file__).parent)]

import instructions  # noqa: E402
import looks  # noqa: E402
import peers  # noqa: E402
import servers  # noqa: E402
from lib import proc  # noqa: E402

BUILD, HERE = ROOT / "build/test/bench", pathlib.Path(__file__).parent
NOTE = (
    "libgotrace records stacks and wakers, and no lock that did not wait. async-profiler samples the stacks of waits for locks. "
    "The others record every call, without stacks or wakers."
)
MICRO = {
    "lock": "lock+unlock, uncontended",
    **{
        f"lock{n}{section}": f"lock+unlock, {n} threads contend{held}"
        for section, held in (("", ""), ("-200", ", held for 200 ns"), ("-1000", ", held for 1 µs"))
        for n in (2, 4, 16)
    },
    "hot": "lock+unlock, waited for 10 s ago at most",
    "cond": "condition variable, there and back",
    "malloc": "malloc+free",
    "malloc2": "malloc+free, 2 threads",
    "read": "read 1 byte of /dev/zero",
    "look": "poll that does not wait",
    "pipe": "pipe, a byte there and back",
    "create": "create+join",
}
DEPTHS = (5, 20, 100)
STACKS = {"C": "", "C++": "-cxx", "C++ with frame pointers": "-cxx-fp"}  # descend.h → what its programs' names end with
WALKS = ["same", "moved", "known", "first", "libunwind"]
STORM = 5_100_000  # events/s: some more than what is aimed at
GOS = {"1.21": "/usr/lib/go-1.21/bin/go", "1.23": "/usr/lib/go-1.23/bin/go", "newest": "/usr/local/go/bin/go"}


class Bench:
    def __init__(self, args, scratch):
        self.smoke = args.smoke
        self.runs, self.only, self.scratch = args.runs, re.compile(args.only), pathlib.Path(scratch)
        self.missing = {t.name: t.missing() for t in peers.TRACERS if t.name in args.tracers}
        self.tracers = [t for t in peers.TRACERS if t.name in args.tracers and not self.missing[t.name]]
        self.results = {}  # (case, tracer) → {column: median}
        self.text, self.failed = [], []

    def wanted(self, case):
        return self.only.search(case)

    def say(self, *lines):
        self.text += lines
        print("\n".join(lines), flush=True)

    def table(self, head, rows):
        self.say("", "| " + " | ".join(head) + " |", "|" + "---|" * len(head))
        for row in rows:
            self.say("| " + " | ".join(map(str, row)) + " |")
        self.say("")

    def measure(self, case, once, once_for_peers=False, tracers=None):
        """Runs once(tracer) → {column: number or None} under each tracer in turn, several times; keeps medians."""
        tracers = list(tracers or [t for t in self.tracers if t.name == "bare" or case in t.sees])
        samples = {t.name: [] for t in tracers}
        for i in range(self.runs):
            first = i % max(len(tracers), 1)
            turn = tracers[first:] + tracers[:first]  # who comes after whom matters, by 5 to 10 %
            for tracer in [t for t in turn if i == 0 or not once_for_peers or not t.peer]:
                try:
                    samples[tracer.name].append(once(tracer))
                except (AssertionError, subprocess.SubprocessError, OSError, ValueError, IndexError, TypeError) as error:
                    tracers.remove(tracer)
                    self.failed.append(f"{case} under {tracer.name}: {str(error).strip().splitlines()[0][:120]}")
        for name, runs_of in samples.items():
            columns = runs_of[0] if runs_of else {}
            known = {c: [r[c] for r in runs_of if r[c] is not None] for c in columns}
            self.results[case, name] = {c: statistics.median(v) for c, v in known.items() if v}
            self.results[case, name] |= {f"{c} range": (min(v), max(v)) for c, v in known.items() if v}

    def of(self, case, tracer, column):
        return self.results.get((case, tracer), {}).get(column)


def number(value, unit=""):
    if value is None:
        return "–"
    return f"{value:,.0f}{unit}" if abs(value) >= 100 else f"{value:.1f}{unit}" if abs(value) >= 10 else f"{value:.2f}{unit}"


# --- small operations


def micro(bench):
    def once(op, depth, program="micro"):
        settings = {"GOTRACE_SYSCALL_MIN": 0} if op == "yield" else {}  # every one is written
        settings |= {"BENCH_BATCHES": 1} if bench.smoke else {}

        def measure(tracer):
            with tracer.around(op, [BUILD / program, op, depth], bench.scratch) as run:
                out = proc.run(run.argv, env=run.env | settings, cwd=run.directory, timeout=20)
            found = re.search(r"^([\d.]+) (\d+)$", out.stdout, re.M)
            assert out.returncode == 0 and found, f"ended with {out.returncode}"
            return {"ns": float(found[1]), "bytes": run.size / int(found[2])}

        return measure

    ops = [op for op in MICRO if bench.wanted(op)]
    for op in ops:
        bench.measure(op, once(op, 5))
    names = [t.name for t in bench.tracers if t.name != "bare"]
    rows = []
    for op in ops:
        bare, row = bench.of(op, "bare", "ns"), [MICRO[op], number(bench.of(op, "bare", "ns"))]
        for name in names:
            ns, size = bench.of(op, name, "ns"), bench.of(op, name, "bytes")
            row.append("–" if ns is None else f"{ns - bare:+,.{0 if abs(ns - bare) >= 30 else 1}f} ({ns / bare:.2f}×), {size:,.0f} B")
        rows.append(row)
    if rows:
        bench.say("## Operations", "", "Added ns (and the ratio to bare), bytes of trace, for each operation. " + NOTE)
        bench.table(["", "bare, ns", *names], rows)
        floors(bench)
    deep = [op for op in ("read", "yield") if bench.wanted(f"depth {op}")]
    stacks = [(frames, depth) for frames in STACKS for depth in DEPTHS]
    sees = [t for t in bench.tracers if t.name in ("bare", "libgotrace")]
    for op in deep:
        for frames, depth in stacks:
            bench.measure(f"{op} {depth} {frames}", once(op, depth, "micro" + STACKS[frames]), tracers=sees)
    if deep:
        bench.say("## Stacks", "", "gcc -O2, which omits frame pointers: recursion in C; in C++ virtual functions, lambdas, templates, `std::sort`, `std::ostream`,")
        bench.say("hardly two return addresses alike. For comparison the same C++ with `-fno-omit-frame-pointer`, which its libraries are not.", "")
        bench.say("Added ns of an operation with a stack of that depth (a yield is two events).")
        bench.table(["frames", "depth", *deep], [[f, d, *(number(added(f"{op} {d} {f}", bench)) for op in deep)] for f, d in stacks])
        walk(bench, stacks)


def floors(bench):
    """What events are made of."""
    out = subprocess.run([BUILD / "floor"], capture_output=True, text=True, check=True).stdout
    ns = dict(map(str.split, out.splitlines()))
    bench.say(f"Floors: a look at the clock takes {ns['clock']} ns, a lock of ours, taken and given back, {ns['lock']} ns,")
    bench.say(f"a cache line that another CPU wrote last {ns.get('line', '–')} ns.", "")


def walk(bench, stacks):
    """The walk alone, without an event."""
    rows = []
    for frames, d in stacks:
        argv = [BUILD / f"walk{STACKS[frames]}", str(d)]
        out = subprocess.run(argv, capture_output=True, text=True, check=True, cwd=bench.scratch).stdout
        ns = bench.results[f"walk {d} {frames}", "libgotrace"] = {name: float(ns) for name, ns in map(str.split, out.splitlines())}
        rows.append([frames, d, *(number(ns.get(w)) for w in WALKS)])
    bench.say("The walk alone, ns: the stack of the last time; one frame further in or out; layouts known; none known.")
    bench.table(["frames", "depth", *WALKS], rows)


# --- whole processes


def ms_of(bench, case, tracer, argv):
    with tracer.around(case, argv, bench.scratch) as run:
        begin = time.perf_counter()
        proc.run(run.argv, env=run.env, cwd=run.directory, timeout=120).ok()
        return (time.perf_counter() - begin) * 1000


def timed(bench, case, tracer, argv, times):
    """The median of so many runs; and of one more its peak of memory, and what it wrote."""
    took, report = [ms_of(bench, case, tracer, argv) for _ in range(times)], bench.scratch / "peak"
    with tracer.around(case, argv, bench.scratch) as run:
        child = proc.run(servers.weighed(run, report), cwd=run.directory, timeout=120).ok()
    return {"ms": statistics.median(took), "MiB": servers.peak_of(report), "bytes": run.size, **exit_line(child.stderr)}


def exit_line(log):
    """Events and seconds of all traces that libgotrace says it wrote, and whether any thread had to wait."""
    lines = re.findall(r"gotrace: .*?: [\d.]+ KiB, (\d+) events in ([\d.]+) s, (.*?);", log)
    if not lines:
        return {}
    waited = sum(float(s) for s in re.findall(r"times, ([\d.]+) s, to write", log))
    assert all(text.startswith("nothing lost") for _, _, text in lines), log
    return {"traces": len(lines), "events": sum(int(n) for n, _, _ in lines), "seconds": max(float(s) for _, s, _ in lines), "waited": waited}


def processes(bench):
    if bench.wanted("trivial"):
        bench.measure("trivial", lambda t: timed(bench, "trivial", t, [BUILD / "trivial"], 7))
        bench.say("## Start-up and exit", "", "A program that makes one thread and ends, ms.")
        names = [t.name for t in bench.tracers if bench.of("trivial", t.name, "ms")]
        bench.table(names, [[number(bench.of("trivial", n, "ms")) for n in names]])
    for case, (title, argv) in FAMILIES.items():
        if bench.wanted(case):
            bench.measure(case, lambda t, case=case, argv=argv: timed(bench, case, t, argv(bench.smoke), 1))
            bench.say(title + ", ms.")
            names = [t.name for t in bench.tracers if bench.of(case, t.name, "ms")]
            bench.table(names, [[number(bench.of(case, n, "ms")) for n in names]])
    if bench.wanted("spawn"):
        bench.measure("spawn", lambda t: spawned(bench, t))
        bench.say("A process that makes no thread, `true`: ms of CPU.")
        names = [t.name for t in bench.tracers if bench.of("spawn", t.name, "ms")]
        bench.table(names, [[number(bench.of("spawn", n, "ms")) for n in names]])
    if bench.wanted("big") and not (bench.smoke and not (BUILD / "big").exists()):  # that takes minutes to compile
        if not (BUILD / "big").exists():
            subprocess.run([sys.executable, HERE / "big.py", BUILD], check=True)
        ours = [t for t in bench.tracers if t.name in ("bare", "libgotrace")]
        for t in ours:
            argv = ["env", "GOTRACE_SYSCALL_MIN=0", BUILD / "big"]  # each address is that of a yield
            bench.results["big", t.name] = timed(bench, "big", t, argv, 3)
        bench.say("A program of 10,000 return addresses with inlined calls out of 100 MB of debug information.")
        bench.table(["", "ms", "peak MiB"], [[t.name, *(number(bench.of("big", t.name, c)) for c in ("ms", "MiB"))] for t in ours])
    if bench.wanted("storm"):
        ours = [t for t in bench.tracers if t.name == "libgotrace"]
        for t in ours:
            r = bench.results["storm", t.name] = timed(bench, "storm", t, [BUILD / "storm", 4, bench.storm_seconds, STORM], 1)
            bench.say(f"All threads writing: 4 threads with regions (`gotrace.h`), {STORM:,} events/s wanted for {bench.storm_seconds} s.")
            bench.table(
                ["events/s", "lost", "bytes/event", "waited for the disk", "peak MiB"],
                [[number(r["events"] / r["seconds"]), 0, number(r["bytes"] / r["events"]), number(r["waited"], " s"), number(r["MiB"])]],
            )


FAMILIES = {
    "forks": ("A shell script with 560 forks and more", lambda smoke: ["sh", HERE / "forks.sh", 20 if smoke else 280]),
    "herd": ("3,000 threads made at once", lambda smoke: [ROOT / "build/test/prog/herd", "barrier", 300 if smoke else 3000, 1]),
}


WAYS = {"barrier": "a barrier", "broadcast": "a broadcast", "posts": "a post for each", "futex": "one FUTEX_WAKE"}
WAKES = [(way, threads) for way in WAYS for threads in (4000, 8000, 16000)]


def woken(bench):
    """All waiters are woken at once: ns a wake-up, without what making the threads and ending takes."""
    ours = [t for t in bench.tracers if t.name in ("bare", "libgotrace")]
    rows = []
    for way, threads in WAKES:
        case = f"woken {way} {threads}"
        if not bench.wanted(case):
            continue
        rounds = 2 if bench.smoke else 96_000 // threads
        n = threads // 100 if bench.smoke else threads

        def once(tracer, way=way, n=n, rounds=rounds):
            few, many = (ms_of(bench, "herd", tracer, [ROOT / "build/test/prog/herd", way, n, r]) for r in (1, 1 + rounds))
            return {"ns": (many - few) * 1e6 / (rounds * n)}

        bench.measure(case, once, tracers=ours)
        rows.append([WAYS[way], f"{n:,}", *(number(bench.of(case, t.name, "ns")) for t in ours)])
    if rows:
        bench.say("## All woken at once", "", "ns for each thread that is woken by:")
        bench.table(["", "threads", *(t.name for t in ours)], rows)


def spawned(bench, tracer):
    with tracer.around("spawn", [BUILD / "spawn", 20 if bench.smoke else 300, "/bin/true"], bench.scratch) as run:
        out = proc.run(run.argv, env=run.env, cwd=run.directory, timeout=60).ok()
    us, n = map(float, re.search(r"^([\d.]+) (\d+)$", out.stdout, re.M).groups())
    return {"ms": us / 1000, "bytes": run.size / n}


def spread(bench, case, tracer, column, unit=""):
    """The median, and the least and the most of all runs."""
    least, most = bench.of(case, tracer, f"{column} range") or (None, None)
    return number(bench.of(case, tracer, column), unit) + (f" ({number(least)} to {number(most)})" if least != most else "")


PAIRED = {"memcached", "nginx", "python-pool"}  # what a goal asks for
PAIRS = 15


def paired(bench, name, once):
    """Short runs, bare and traced in turn: keeps the medians of their ratios. A pair has one moment of a busy machine."""
    tracers = {t.name: t for t in bench.tracers if t.name in ("bare", "libgotrace")}
    if name not in PAIRED or len(tracers) < 2 or not all((name, t) in bench.results for t in tracers):
        return
    seconds, ratios = servers.SECONDS, []
    servers.SECONDS = 1
    try:
        for i in range(1 if bench.smoke else PAIRS):
            run = {t: once(tracers[t]) for t in sorted(tracers, reverse=i % 2 == 1)}
            ratios.append({c: run["libgotrace"][c] / run["bare"][c] for c in ("rate", "p99")})
    except (AssertionError, subprocess.SubprocessError, OSError, ValueError) as error:
        bench.failed.append(f"pairs of {name}: {str(error).strip().splitlines()[0][:120]}")
    finally:
        servers.SECONDS = seconds
    for column in ("rate", "p99") if ratios else ():
        values = sorted(r[column] for r in ratios)
        bench.results[name, "libgotrace"][f"{column} ratio"] = statistics.median(values)
        quarter = len(values) // 4
        bench.say(f"{name}, {column} of bare, {len(values)} pairs: {statistics.median(values):.3f} ({values[quarter]:.3f} to {values[-1 - quarter]:.3f})")


def programs(bench):
    rows = []
    for name, (need, unit, measure) in servers.PROGRAMS.items():
        if not bench.wanted(name):
            continue
        if not shutil.which(need):
            bench.say(f"{name} left out: no {need}")
            continue
        cwd = bench.scratch / name
        cwd.mkdir()
        cwd.chmod(0o777)

        def once(tracer, name=name, cwd=cwd, measure=measure):
            rate, p99, run = measure(lambda argv: tracer.around(name, argv, bench.scratch), cwd)
            return {"rate": rate, "p99": p99, "MiB": run.rss, "bytes": run.size, "events": None, "seconds": None, **exit_line(run.log)}

        bench.measure(name, once, once_for_peers=True)
        paired(bench, name, once)
        for tracer in [t for t in bench.tracers if t.name == "libgotrace" and name in peers.SERVERS and shutil.which("perf")]:
            with servers.sampled(bench.scratch / "perf.data") as share:
                once(tracer)
            bench.results[name, tracer.name]["share"] = share()
        shutil.rmtree(cwd, ignore_errors=True)
        for t in bench.tracers:
            rate, bare = bench.of(name, t.name, "rate"), bench.of(name, "bare", "rate")
            if rate is None or bare is None:
                continue
            p99, size, events = (bench.of(name, t.name, c) for c in ("p99", "bytes", "events"))
            rows.append(
                [f"{name}, {unit}" if t.name == "bare" else "", t.name, spread(bench, name, t.name, "rate"), f"{rate / bare:.3f}"]
                + [spread(bench, name, t.name, "p99", " µs"), number(bench.of(name, t.name, "MiB"))]
                + [number(size / 1e6 if size else None, " MB"), number(size / events if events else None), number(bench.of(name, t.name, "share"), " %")]
            )
    if rows:
        bench.say("## Programs", "", "Load and program share the machine's CPUs. Medians, and the least and the most of all runs; other tracers have one run.")
        bench.say("The share is that of libgotrace.so in what the CPU samples of the server's threads say (`perf record`): what a busy", "machine does to the throughput, it does not do to that.")
        bench.table(["", "", "throughput", "of bare", "p99", "peak MiB", "trace", "bytes/event", "share of CPU"], rows)


def go(bench):
    """The yardstick: the tracer the format comes from."""
    rows = []
    for label, tool in GOS.items():
        if bench.smoke or not bench.wanted("go") or not os.path.exists(tool):
            continue
        env = os.environ | {"GOTOOLCHAIN": "local", "GOFLAGS": "", "GO111MODULE": "off"}
        program, trace = bench.scratch / f"yardstick-{label}", bench.scratch / "go.out"
        subprocess.run([tool, "build", "-o", program, HERE / "yardstick.go"], env=env, check=True, cwd=bench.scratch)
        version = subprocess.run([tool, "version"], env=env, capture_output=True, text=True).stdout.split()[2]
        for op in ("channel", "cond", "read"):
            bare, traced, size = [], [], 0
            for _ in range(bench.runs):
                bare.append(float(subprocess.run([program, op], capture_output=True, text=True).stdout.split()[0]))
                ns, done = subprocess.run([program, op, trace], capture_output=True, text=True).stdout.split()
                traced.append(float(ns))
                size = trace.stat().st_size / int(done)
            plain, cost = statistics.median(bare), statistics.median(traced)
            events = {"channel": 6, "cond": 6, "read": 2}[op]
            rows.append([version, op, number(plain), f"+{number(cost - plain)}", number((cost - plain) / events), number(size / events)])
    if rows:
        bench.say("## Yardstick", "", "Go's own tracer. A ping-pong is 6 events (block, unblock, start on each side), a read 2.")
        bench.table(["", "operation", "ns", "added", "ns/event", "bytes/event"], rows)


# --- what was aimed at


def added(op, bench, to="bare"):
    ns, before = bench.of(op, "libgotrace", "ns"), bench.of(op, to, "ns")
    return None if ns is None or before is None else ns - before


def half_a_yield(frames, bench):
    both = added(f"yield 20 {frames}", bench)
    return both and both / 2


def against_bare(name, column, bench):
    ours, bare = bench.of(name, "libgotrace", column), bench.of(name, "bare", column)
    return None if not ours or not bare else bench.of(name, "libgotrace", f"{column} ratio") or ours / bare


def more_memory(name, bench):
    """Of each process that has threads."""
    ours, bare = bench.of(name, "libgotrace", "MiB"), bench.of(name, "bare", "MiB")
    return None if not ours or not bare else (ours - bare) / max(1, bench.of(name, "libgotrace", "traces") or 0)


def bytes_per_event(name, bench):
    size, events = bench.of(name, "libgotrace", "bytes"), bench.of(name, "libgotrace", "events")
    return size / events if events else None


SERVED = "a request's calls and waits, 50 to 150 ns each: the share of CPU above; beyond that, how much bare runs differ"
YIELD = "the walk as below, a look at the clock, 9 ns, and the bytes: 450 instructions"
READ = "no event and no stack: the clock is read before and after, 9 ns each"
LAYOUTS = "each frame's layout is looked for in its object's call frame information"
DEEP = ("C", "C++")
# what, the unit, the least and the most that is aimed at, the result, where the floor is
REACH = [
    ("lock+unlock, uncontended, beyond empty hooks", "ns", None, 2, lambda b: added("lock", b, to="empty hooks"), ""),
    ("malloc+free", "ns", None, 5, lambda b: added("malloc", b), ""),
    *((f"an event with a known stack (half a yield, depth 20, {f})", "ns", None, 45, lambda b, f=f: half_a_yield(f, b), YIELD) for f in DEEP),
    *((f"read, depth {d}, {f}", "ns", None, 60, lambda b, d=d, f=f: added(f"read {d} {f}", b), READ) for d in (20, 100) for f in DEEP),
    ("pipe, there and back", "ns", None, 350, lambda b: added("pipe", b), "4 calls as above, which are too short to be events"),
    *((f"a stack seen before, depth 20, {f}", "ns", None, 60, lambda b, f=f: b.of(f"walk 20 {f}", "libgotrace", "same"), "") for f in DEEP),
    *((f"a first-seen stack, depth 20, {f}, layouts known", "ns", None, 3000, lambda b, f=f: b.of(f"walk 20 {f}", "libgotrace", "known"), "") for f in DEEP),
    *((f"first stack of a process, depth 20, {f}", "ns", None, 5000, lambda b, f=f: b.of(f"walk 20 {f}", "libgotrace", "first"), LAYOUTS) for f in DEEP),
    ("start-up and exit of a trivial program", "ms", None, 5, lambda b: added_ms("trivial", b), "libc6-dbg, where it is installed, is compressed: unpacking up to the units of the threads' start"),
    ("10,000 PCs out of 100 MB", "ms", None, 1000, lambda b: b.of("big", "libgotrace", "ms"), ""),
    ("10,000 PCs out of 100 MB", "MiB", None, 150, lambda b: b.of("big", "libgotrace", "MiB"), ""),
    ("storm", "events/s", 5e6, None, lambda b: b.of("storm", "libgotrace", "events") and b.of("storm", "libgotrace", "events") / b.of("storm", "libgotrace", "seconds"), ""),
    *((f"{n}: bytes/event", "B", None, 10, lambda b, n=n: bytes_per_event(n, b), "") for n in ("redis", "redis-io4", "sysbench-mutex", "sysbench-threads")),
    *((f"{n}: throughput of bare", "", 0.98, None, lambda b, n=n: against_bare(n, "rate", b), SERVED) for n in sorted(peers.SERVERS)),
    *((f"{n}: p99 of bare", "", None, 1.05, lambda b, n=n: against_bare(n, "p99", b), SERVED) for n in sorted(peers.SERVERS)),
    *((f"{n}: more memory", "MiB", None, 21, lambda b, n=n: more_memory(n, b), "") for n in sorted(peers.SERVERS)),
]


def added_ms(name, bench):
    ours, bare = bench.of(name, "libgotrace", "ms"), bench.of(name, "bare", "ms")
    return None if ours is None or bare is None else ours - bare


def reach(bench):
    rows = []
    for what, unit, least, most, value, floor in REACH:
        reached = value(bench)
        if reached is None:
            continue
        good = (least is None or reached >= least) and (most is None or reached <= most)
        aim = " to ".join(number(v) for v in (least, most) if v is not None)
        sign = "≥ " if most is None else "≤ " if least is None else ""
        rows.append([what, f"{sign}{aim} {unit}", f"{number(reached)} {unit}", "yes" if good else "no", "" if good else floor])
    if bench.failed:
        bench.say("## Failed", "", *(f"- {line}" for line in bench.failed), "")
    if rows:
        bench.say("## Reach", "", "Added cost where nothing else is said.")
        bench.table(["", "aim", "reached", "", "where the rest goes"], rows)


# --- in ten seconds

HOT = "going through a library, and a place noted before each try: 6 ns. Waiters try for 2 µs; async-profiler's sleep, which leaves the mutex to one thread for longer"
COND = "6 events with 4 stacks: 6,100 instructions, some 750 ns; the rest is what libc and the kernel lose of their caches"
BIRTH = "two system calls at its end, 1.3 to 1.5 µs: its CPU time and its page faults; the rest is spread over 40 functions"
PAGES = "2.3 pages more for each thread: its struct gt_thread, its stack as last seen, a third of a page for its events. A page costs 2.2 µs here"
HERD = "each thread's memory is cold when it wakes, and the mutex is held meanwhile"
START = "some 95 page faults: in the library's pages and in those that it touches of libc, and in tables that a forked child resets; more than half of what the loader executes binds 113 symbols"
MOST_OF_PEER = 1.1  # of async-profiler's ns, where threads contend for a mutex
# A row, the case, its column, the most of bare or None, the most more than bare or None, a least share of bare or None
GOALS = [
    *((f"{n} threads contend for a mutex, ns", f"lock{n}", "ns", 1.2, None, None, HOT) for n in (2, 4, 16)),
    *((f"{n} threads contend, held for {ns} ns", f"lock{n}-{ns}", "ns", 1.05, None, None, HOT) for ns in (200, 1000) for n in (2, 4, 16)),
    ("create+join, ns", "create", "ns", 1.1, 2000, None, BIRTH),
    ("3,000 threads made at once, ms", "herd", "ms", 1.1, None, None, PAGES),
    *((f"{n:,} threads woken by {WAYS[way]}, ns each", f"woken {way} {n}", "ns", 1.5, None, None, HERD) for way, n in WAKES),
    ("condition variable, there and back, ns", "cond", "ns", None, 500, None, COND),
    ("one process without threads, ms of CPU", "spawn", "ms", None, 0.15, None, START),
    ("a shell script with 560 forks, ms", "forks", "ms", 1.15, None, None, START),
    ("python3, a pool of threads, tasks/s", "python-pool", "rate", None, None, 0.95, "frames of Python are read at each wait"),
    ("nginx, requests/s", "nginx", "rate", None, None, 0.98, "7 % of its CPU is ours"),
    ("memcached, 99th percentile, µs", "memcached", "p99", 1.05, None, None, "bare runs differ by more"),
    ("names looked up at exit, peak MiB", "big", "MiB", None, 10, None, "events and stacks take 7 MiB, elfutils with a libc of its own 3, debug information the rest: 1 MiB of it at a time"),
]


def best_peer(bench, case, column):
    """Of those that record what we do: the least cost, or the most throughput."""
    known = [(bench.of(case, t.name, column), t.name) for t in bench.tracers if t.peer]
    known = [(value, name) for value, name in known if value is not None]
    return (max if column == "rate" else min)(known, default=None)


def summary(bench):
    """Where we stand: the first table."""
    rows = []
    for what, case, column, most_of_bare, most_more, least_of_bare, why in GOALS:
        bare, ours = bench.of(case, "bare", column), bench.of(case, "libgotrace", column)
        if not bare or ours is None:
            continue
        ratio = bench.of(case, "libgotrace", f"{column} ratio") or ours / bare
        goals = [(f"≤ {most_of_bare}×", ratio <= most_of_bare)] if most_of_bare else []
        lock_peer = case in peers.CONTENDED and bench.of(case, "async-profiler", column)
        goals += [(f"≤ {MOST_OF_PEER}× async-profiler ({number(lock_peer)})", ours <= MOST_OF_PEER * lock_peer)] if lock_peer else []
        goals += [(f"≤ +{number(most_more)}", ours - bare <= most_more)] if most_more else []
        goals += [(f"≥ {least_of_bare}", ratio >= least_of_bare)] if least_of_bare else []
        peer, met = best_peer(bench, case, column), all(ok for _, ok in goals)
        rows.append(
            [what, number(bare), number(ours), f"{number(peer[0])} ({peer[1]})" if peer else "–", f"{ratio:.2f}×"]
            + [", ".join(goal for goal, _ in goals), "yes" if met else "no", "" if met else why]
        )
    if rows:
        bench.say("## Where we stand", "")
        bench.table(["", "bare", "libgotrace", "best peer", "of bare", "goal", "met", "what holds it"], rows)


# A row, the case, the most ns that GOTRACE_SCHED=on may add to tracing beyond what the kernel takes for its records
SCHED_GOALS = [("create+join", "create", 1000)]


def sched_summary(bench):
    """What GOTRACE_SCHED=on adds to tracing, and what the kernel's records alone add to a bare run."""
    rows = []
    for what, case, most in SCHED_GOALS:
        bare, kernel, ours, sched = (bench.of(case, t, "ns") for t in ("bare", "kernel's records", "libgotrace", "libgotrace, sched"))
        if None in (bare, kernel, ours, sched):
            continue
        kernel_part, beyond = kernel - bare, sched - ours - (kernel - bare)
        columns = map(number, (bare, ours, sched, kernel_part, beyond))
        rows.append([what, *columns, f"≤ +{number(most)}", "yes" if beyond <= most else "no"])
    if rows:
        bench.say("What GOTRACE_SCHED=on adds, in ns: the kernel's part for its records of switches, and what is added beyond that.")
        bench.table(["", "bare", "libgotrace", "libgotrace, sched", "kernel's part", "beyond that", "goal", "met"], rows)


def first(bench, lines):
    """What is known at the end stands at the beginning."""
    rest, bench.text = bench.text, bench.text[:lines]
    summary(bench)
    sched_summary(bench)
    bench.text += rest[lines:]


def head(bench):
    with open("/proc/cpuinfo") as f:
        cpu = re.search(r"model name\s*: (.*)", f.read())
    bench.say("# Results", "", "Written by `make bench`: run it again rather than edit it.", "")
    bench.say(f"{datetime.date.today()}, {cpu[1] if cpu else platform.machine()}, {os.cpu_count()} CPUs, Linux {platform.release()}, glibc {platform.libc_ver()[1]}.")
    bench.say(f"Medians of {bench.runs} runs, bare and traced in turn. Load average at the start: {os.getloadavg()[0]:.1f}.", "")
    for t in peers.TRACERS:
        if t.name != "bare" and t.name in bench.missing:
            bench.say(f"- {t.name}: " + (f"left out, {bench.missing[t.name]}" if bench.missing[t.name] else t.version_text()))
    bench.say("")


CASES = {*MICRO, *(f"woken {way} {n}" for way, n in WAKES), "yield", *FAMILIES, "trivial", "spawn", "big", "storm", "go", *servers.PROGRAMS}


def refuse_unknown(parser, args):
    names = [t.name for t in peers.TRACERS]
    for name in args.tracers:
        if name not in names:
            parser.error(f"{name}: no such tracer; there are: {', '.join(names)}")
    cases = CASES | {f"depth {op}" for op in ("read", "yield")}
    if not any(re.search(args.only, case) for case in cases):
        parser.error(f"--only {args.only}: no such benchmark; there are: {', '.join(sorted(cases))}")
    if args.record and (args.only or len(args.tracers) != len(names)):
        parser.error("--record is of everything: without --only and --tracers")


def missing_rows(bench):
    """Of what can be run here: bare and ours, both."""
    run = {case for case, _ in bench.results}
    return [f"{case} under {t}" for case in sorted(run) for t in ("bare", "libgotrace") if (case, t) in bench.results and not bench.results[case, t]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="cases that match the regular expression")
    parser.add_argument("--tracers", nargs="*", default=[t.name for t in peers.TRACERS], help="bare is always one")
    parser.add_argument("--seconds", type=int, default=servers.SECONDS, help="of load on each server")
    parser.add_argument("--storm-seconds", type=int, default=20)
    parser.add_argument("--record", action="store_true", help="write RESULTS.md, too")
    parser.add_argument("--smoke", action="store_true", help="everything once and briefly: does each row come out?")
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("--looks", type=int, help="only `gotrace stacks`, so often at each server")
    args = parser.parse_args()
    if args.instructions:
        instructions.write()
        return
    if args.looks:
        looks.write(args.looks)
        return
    refuse_unknown(parser, args)
    if args.smoke:
        args.runs, args.seconds, args.storm_seconds, args.tracers = 1, 1, 1, ["libgotrace", "libgotrace -f"]
    servers.SECONDS = args.seconds
    args.tracers = ["bare", *args.tracers]
    with contextlib.ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="gotrace-bench-"))
        os.chmod(scratch, 0o777)
        if "LTTng-UST" in args.tracers:
            stack.enter_context(peers.lttng_daemon())
        bench = Bench(args, scratch)
        bench.storm_seconds = args.storm_seconds
        head(bench)
        lines = len(bench.text)
        for part in (micro, processes, woken, programs, go, reach):
            part(bench)
        first(bench, lines)
    if args.record:
        (HERE / "RESULTS.md").write_text("\n".join(bench.text) + "\n")
    if args.smoke and (bench.failed or missing_rows(bench)):
        sys.exit("\n".join(["bench-smoke: no result:", *bench.failed, *missing_rows(bench)]))


if __name__ == "__main__":
    main()
