"""GOTRACE_SCHED=on (encoder/cpu/sched.h): when threads have a CPU, against what the kernel counts (test/prog/account.c)."""

import collections
import contextlib
import os
import pathlib
import platform
import re
import shutil
import subprocess
import tempfile
import time

import pytest

from lib import LIBRARY, PROGRAMS, ROOT, SINGLE, SOURCES, gotools, proc
from lib.reports import report, waits

ACCOUNT = PROGRAMS / "account"
GOTRACE = ROOT / "build/gotrace"
ON = {"GOTRACE_SCHED": "on"}
REFUSED = "does not let this user watch threads"
GAPS = r"\d+ gaps in when threads had a CPU"  # are told where our thread gets no CPU for as long as a ring lasts
formats = pytest.mark.parametrize("format", gotools.some("go1.5"))


@pytest.fixture(scope="module", autouse=True)
def allowed(tmp_path_factory):
    """Where the kernel refuses, which test_refused shows by a filter, there is nothing to see."""
    trace = tmp_path_factory.mktemp("allowed") / "t.out"
    if REFUSED in proc.traced([PROGRAMS / "threads", "2"], trace, env=ON).stderr:
        pytest.skip("perf_event_open(2) is not allowed here")


class Running:
    """The program, traced, until its standard input ends."""

    def __init__(self, kinds, trace, before=(), **env):
        pipe = subprocess.PIPE
        env = proc.traced_env(trace, ON | env)
        command = [*before, "env", *(f"{k}={v}" for k, v in env.items()), ACCOUNT, *kinds] if before else [ACCOUNT, *kinds]
        self.child = proc.spawn(command, env={} if before else env, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=trace.parent)
        assert self.child.stdout.readline() == "ready\n", self.child.stderr.read()
        self.pid = self.child.pid

    def used(self):
        """thread → [ns on CPUs, ns in run queues] of each that is still there when it is looked at"""
        found = {}
        for task in pathlib.Path(f"/proc/{self.pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                found[int(task.name)] = [int(n) for n in (task / "schedstat").read_text().split()[:2]]
        return found

    def end(self):
        """thread → (kind, ns on CPUs, ns in run queues)"""
        out, err = self.child.communicate(timeout=30)
        assert self.child.returncode == 0, err
        proc.kill_group(self.child)
        self.stderr = err
        words = [line.split() for line in out.splitlines()]
        return {int(w[0]): (w[1], int(w[2]), int(w[3])) for w in words}


@pytest.mark.measured
@pytest.mark.parametrize("format", ["go1.23", "go1.26"])
def test_events_are_true(tmp_path, format):
    """A thread runs when it has a CPU: to 2 % of the time, without its first 20 ms, which are not watched."""
    program = Running(["spin=3", "pinned=1", "sleep=1", "hidden=1"], tmp_path / "t.out", GOTRACE_FORMAT=format)
    time.sleep(2)
    used = program.end()
    seen = gotools.states(tmp_path / "t.out")
    for tid, (kind, cpu, queue) in used.items():
        times = seen[tid]
        whole = sum(times.values()) - times.get("NotExist", 0)
        runs, waits = times.get("Running", 0) / whole, times.get("Waiting", 0) / whole
        assert abs(runs - cpu / whole) < 0.025, (kind, times, cpu, queue)
        if kind in ("spin", "pinned"):
            assert waits < 0.02 and times["Runnable"] / whole > 1 - cpu / whole - 0.04, (kind, times, cpu, queue)
        if kind == "hidden":
            # The kernel does not say when it was woken: from there to its CPU it waits.
            assert times["Runnable"] <= queue + 0.03 * whole, (kind, times, cpu, queue)
            assert waits > 1 - (cpu + queue) / whole - 0.03, (kind, times, cpu, queue)


@pytest.mark.needs("unshare")
@pytest.mark.measured
def test_time_namespace(tmp_path):
    """Events of perf have the host's clock, which is ten days behind here: a thread still has no CPU when it sleeps."""
    namespace = ["unshare", "--time", "--fork", "--monotonic", "864000", "--boottime", "864000"]
    if proc.run([*namespace, "true"]).returncode:
        pytest.skip("needs the right to make a time namespace")
    program = Running(["hidden=1"], tmp_path / "t.out", namespace)
    time.sleep(1)
    ((kind, cpu, queue),) = [used for used in program.end().values() if used[0] == "hidden"]
    unseen = [ns for ns, _, _ in waits(tmp_path / "t.out", "unseen")]
    assert sum(unseen) > 0.8 * (1e9 - cpu - queue), (unseen, cpu, queue)


@pytest.mark.measured
@pytest.mark.skipif(os.cpu_count() < 2, reason="threads move from one CPU to another")
@pytest.mark.parametrize("format", ["go1.22", "go1.26"])
def test_procs_are_cpus(tmp_path, format):
    """A thread that goes to a CPU and says so is on the P of that number; asleep it has none."""
    program = SINGLE / "sched/moves"
    result = proc.traced([program], tmp_path / "t.out", env=ON | {"GOTRACE_FORMAT": format}).ok()
    events = gotools.parse(result.trace)
    said = [(e.p, int(e.fields["Label"].split()[1])) for e in events if e.kind == "Label" and "cpu" in e.fields["Label"]]
    assert len(said) >= 180
    # But where a generation begins, which is not at one time for all threads.
    assert sum(p != cpu for p, cpu in said) <= 3, said
    sleeps, left, owner = [], {}, {e.goid: e.m for e in events if e.is_go("Runnable", "Running")}
    for e in events:
        if e.is_go("Running", "Waiting") and e.reason == "sleep":
            left[e.goid] = False
        if e.procid is not None and (e.old, e.new) == ("Running", "Idle"):
            left.update({g: True for g in left if owner.get(g) == e.m})
        if e.is_go("Waiting", "Runnable") and e.goid in left:
            sleeps.append(left.pop(e.goid))
    assert len(sleeps) == 60 and all(sleeps)  # asleep it has none


@pytest.mark.measured
@formats
def test_every_format(tmp_path, format):
    """All readers take it, and `unseen` is the time that no hook sees."""
    program = Running(["spin=3", "sleep=1", "hidden=1", "fault=1", "brood=1"], tmp_path / "t.out", GOTRACE_FORMAT=format)
    time.sleep(1.2)
    used = program.end()
    for go in gotools.readers_of(format).values():
        gotools.check(tmp_path / "t.out", go=go)
    unseen = sum(ns for ns, _, _ in waits(tmp_path / "t.out", "unseen"))
    hidden = sum(1.2e9 - cpu - queue for kind, cpu, queue in used.values() if kind == "hidden")
    assert unseen > 0.8 * hidden
    assert sum(ns for ns, _, _ in waits(tmp_path / "t.out", "sched")) > 0.5e9
    if int(format[4:]) < 22:
        return  # where the ends of pages are events, too
    told = re.search(r"([\d]+) events in .*, nothing lost", program.stderr)[1]
    listed = re.search(r"events +(\d+),", proc.run([GOTRACE, "info", tmp_path / "t.out"]).ok().stdout)[1]
    assert abs(int(told) - int(listed)) <= 60, (told, listed)


@pytest.mark.measured
@pytest.mark.parametrize("format", gotools.some("go1.5", of=["go1.5", "go1.21", "go1.23", "go1.26"]))
@pytest.mark.long
def test_flight_recorder(tmp_path, format):
    """Each snapshot, and the file at the end, has the last second before it: `unseen` is what no hook saw of it."""
    program = Running(["spin=3", "hidden=1", "brood=1"], tmp_path / "t.out", GOTRACE_RING="2s", GOTRACE_FORMAT=format)
    traces, seconds = [*(tmp_path / f"{n}.out" for n in range(3)), tmp_path / "t.out"], []
    for trace in traces:
        begin, before = time.monotonic_ns(), program.used()
        time.sleep(1)
        seconds.append((program.used(), before, time.monotonic_ns() - begin))
        if trace != traces[-1]:
            proc.run([GOTRACE, "snapshot", program.pid, trace]).ok()
    (hidden,) = [tid for tid, (kind, *_) in program.end().items() if kind == "hidden"]
    for trace, (after, before, ns) in zip(traces, seconds):
        for go in gotools.readers_of(format).values():
            gotools.check(trace, go=go)
        waited = ns - (sum(after[hidden]) - sum(before[hidden]))
        assert sum(ns for ns, _, _ in waits(trace, "unseen")) > 0.8 * waited, (trace, waited)


@pytest.mark.measured
@pytest.mark.long
def test_recordings_in_a_running_program(tmp_path):
    program = Running(["spin=3", "hidden=1"], tmp_path / "%n.out", GOTRACE_START="manual")
    for n in 1, 2:
        proc.run([GOTRACE, "start", program.pid]).ok()
        before = program.used()
        time.sleep(1)
        after = program.used()
        proc.run([GOTRACE, "stop", program.pid]).ok()
        gotools.check(tmp_path / f"{n}.out")
        for tid, times in gotools.states(tmp_path / f"{n}.out").items():
            used = after[tid][0] - before[tid][0]
            assert abs(times.get("Running", 0) - used) < 0.06e9, (tid, times, used)
    program.end()


@pytest.mark.measured
@pytest.mark.long
def test_threads_that_begin_and_end(tmp_path):
    """Storms of threads that nobody has time to watch, beside some that are, in a family of processes."""
    program = SINGLE / "sched/brief"
    for format in "go1.11", "go1.22", "go1.23":
        for old in tmp_path.glob("*.out"):
            old.unlink()
        result = proc.traced([program], tmp_path / "%p.out", env=ON | {"GOTRACE_FORMAT": format, "GOTRACE_QUIET": "0"}, timeout=60).ok()
        traces = list(tmp_path.glob("*.out"))
        said = [re.search(f"nothing lost|{GAPS}", line) for line in result.stderr.splitlines()]
        assert len(traces) == len(said) == 2 and all(said) and result.stderr.count(" lost") == result.stderr.count("nothing lost"), result
        for trace in traces:
            gotools.check(trace)


@pytest.mark.measured
@pytest.mark.parametrize("sched", ["off", "on"])
@pytest.mark.parametrize("format", gotools.some("go1.11", of=["go1.11", "go1.23", "go1.26"]))
@pytest.mark.long
def test_late_wakeups(tmp_path, format, sched):
    """A sleep or timeout ends when its time is over; from there its thread stands in a run queue."""
    program = SINGLE / "sched/late"
    env = {"GOTRACE_SCHED": sched, "GOTRACE_FORMAT": format}
    result = proc.traced([program], tmp_path / "t.out", env=env, timeout=60).ok()
    late = {line.split()[0]: int(line.split()[1]) for line in result.stdout.splitlines()}
    queue = {line.split()[0]: int(line.split()[2]) for line in result.stdout.splitlines()}
    assert sum(late.values()) > 0.1e9, late  # else there is nothing to see
    for kind in "sleep", "network", "sync":
        for ns, count, what in waits(tmp_path / "t.out", kind):
            name = what.split(" ")[0]
            if name in late:
                # A few lose the CPU before they sleep.
                assert count >= 40 and 40 * 4e6 * 0.95 < ns < 40 * 4e6 + late[name] * 0.15, (what, ns, count, late[name], sched)
    told = collections.Counter()
    for ns, _, what in waits(tmp_path / "t.out", "sched"):
        told[what.split(" ")[0]] += ns
    for name, ns in late.items():
        # The kernel may be late by 50 us of its own will, which are the sleep's.
        # With switches seen it also has lost the CPU between two sleeps: the last stack that is known is that.
        assert ns * 0.85 < told[name] < (ns if sched == "off" else queue[name]) * 1.02, (name, ns, queue[name], told[name], sched)


@pytest.mark.measured
@pytest.mark.parametrize("format", gotools.some("go1.23", of=["go1.11", "go1.23"]))
def test_timeouts_that_are_over(tmp_path, format):
    """A wait whose time was over before it began does not last until its thread has a CPU again."""
    result = proc.traced([SINGLE / "sched/past"], tmp_path / "t.out", env={"GOTRACE_FORMAT": format}).ok()
    lost = dict(line.split() for line in result.stdout.splitlines())
    assert sum(map(int, lost.values())) > 20, lost  # else there is nothing to see
    longest = {}
    for kind in "sync", "sleep", "sched":
        for row in report(tmp_path / "t.out", "top", "--idle=none", f"--kind={kind}", "-n", "1000")["waits"]:
            longest[kind == "sched", row["what"].split(" ")[0]] = row["longest_ns"]
    for name, times in lost.items():
        assert longest[False, name] < 0.1e6, (name, longest)
        assert times == "0" or longest[True, name] > 1e6, (name, longest)


@pytest.mark.measured
def test_timeouts_that_tell_nothing(tmp_path):
    """Of a clock of CPU time; or in memory that is gone when the wait is over; or none at all."""
    program = SINGLE / "sched/timeouts"
    proc.run([program]).ok()
    for env in {}, ON:
        result = proc.traced([program], tmp_path / "t.out", env=env).ok()
        sleeps = [row for row in waits(result.trace, "sched") if "clock_nanosleep" in row[2]]
        assert sum(ns for ns, *_ in sleeps) < int(result.stdout) + 2e6, (sleeps, result.stdout)


@pytest.mark.measured
@pytest.mark.skipif(not {0, 1} <= os.sched_getaffinity(0), reason="threads are bound to CPUs 0 and 1")
@pytest.mark.parametrize("format", gotools.some("go1.5", of=["go1.5", "go1.21", "go1.23", "go1.26"]))
def test_holder_without_a_cpu(tmp_path, format):
    """Who waits for a lock waits for the CPU that its holder lost to others; they are named."""
    program = SINGLE / "sched/convoy"
    result = proc.traced([program], tmp_path / "t.out", env=ON | {"GOTRACE_FORMAT": format}).ok()
    queued = int(result.stdout)
    text = proc.run([GOTRACE, "top", "--preempted", tmp_path / "t.out"]).ok().stdout
    ((lost, unit),) = re.findall(r"^ *([\d.]+)(m?s) .* sync +pthread_mutex_lock <- waiter.* ended by pthread_mutex_unlock <- holder", text, re.M)
    assert abs(float(lost) * {"s": 1e9, "ms": 1e6}[unit] - queued) < 0.1 * queued + 5e6, (queued, text)
    meanwhile, share = report(tmp_path / "t.out", "top", "--kind=sched")["meanwhile"], collections.Counter()
    own = [row for row in meanwhile if row["thread"]]  # other processes may have the CPU, too
    for row in own:
        share[row["cpu"], row["thread"]["routine"]] += 100 * row["ns"] / sum(row["ns"] for row in own)
    assert share[0, "hog"] > 55 and share[0, "holder"] > 20, share
    refused = proc.run([GOTRACE, "top", "--preempted", proc.traced([program], tmp_path / "no.out").ok().trace])
    assert refused.returncode == 1 and "Record with gotrace --sched" in refused.stderr


@pytest.mark.measured
@pytest.mark.long
def test_end_in_a_storm(tmp_path):
    """Recording ends while threads end: they have no CPU then, or are not there."""
    program = SINGLE / "sched/storm"
    for n, format in enumerate(["go1.23", "go1.26", "go1.11"] * 3):
        env = ON | {"GOTRACE_FORMAT": format, "GOTRACE_DURATION": "300ms"}
        gotools.check(proc.traced([program], tmp_path / f"{n}.out", env=env).ok().trace)


@pytest.mark.measured
@pytest.mark.parametrize("pairs, format", [pytest.param(1, "go1.23", marks=pytest.mark.long), (3, "go1.23"), pytest.param(3, "go1.11", marks=pytest.mark.long)])
def test_many_switches(tmp_path, pairs, format):
    """Threads that wake each other as fast as they can: no record is missing, also while a generation is written."""
    program = SINGLE / "sched/switches"
    env = ON | {"GOTRACE_SYSCALLS": "none", "GOTRACE_FORMAT": format}  # so that all of it is unseen
    result = proc.traced([program, str(pairs)], tmp_path / "t.out", env=env, timeout=60).ok()
    assert "nothing lost" in result.stderr, result.stderr
    count = sum(count for _, count, _ in waits(result.trace, "unseen"))
    assert count > 0.97 * int(result.stdout) - 1000, (count, result.stdout)


@pytest.mark.measured
@pytest.mark.skipif(platform.machine() != "x86_64", reason="a system call in its assembly")
@pytest.mark.parametrize("format", gotools.some("go1.11", "go1.22", of=["go1.11", "go1.22", "go1.26"]))
def test_where_nobody_saw_it_wait(tmp_path, format):
    """The kernel copies its stack, once it is known to do so."""
    if not proc.may_sample_kernel():
        pytest.skip("the kernel does not let this user sample")
    program = proc.compile(SOURCES / "sched/unseen.c", tmp_path / "unseen")
    env = ON | {"GOTRACE_FORMAT": format}
    result = proc.traced([program], tmp_path / "t.out", env=env).ok()
    gotools.check(result.trace)
    rows = waits(result.trace, "unseen")
    for name, ns in zip(["long_one", "short_one"], map(int, result.stdout.split())):
        (found,) = [(ns, count) for ns, count, what in rows if name in what]
        assert found[1] == pytest.approx(300, abs=3) and 0.95 * ns < found[0] <= 1.01 * ns, (name, ns, rows)


@pytest.mark.measured
@pytest.mark.skipif(platform.machine() != "x86_64", reason="a system call in its assembly")
@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
@pytest.mark.needs("setpriv")
def test_where_that_is_not_told(tmp_path):
    """To a user who may not sample the kernel: the waits are there, at the place that was known before."""
    if pathlib.Path("/proc/sys/kernel/perf_event_paranoid").read_text() != "2\n":
        pytest.skip("another user may do more, or nothing")
    program = proc.compile(SOURCES / "sched/unseen.c", tmp_path / "unseen")
    directory = pathlib.Path(tempfile.mkdtemp())
    try:
        shutil.copy(program, directory), shutil.copy(LIBRARY, directory)
        shutil.chown(directory, 65534, 65534), directory.chmod(0o755)
        argv = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", f"LD_PRELOAD={directory / LIBRARY.name}"]
        env = {name: value for name, value in proc.traced_env(directory / "t.out", ON).items() if name != "LD_PRELOAD"}
        result = proc.run([*argv, directory / program.name], env=env).ok()
        assert "nothing lost" in result.stderr and REFUSED not in result.stderr, result.stderr
        ((ns, count, what),) = [row for row in waits(directory / "t.out", "unseen") if row[1] > 100]
        assert "work" in what and 0.9 * 600 < count and 0.8 * sum(map(int, result.stdout.split())) < ns
    finally:
        shutil.rmtree(directory)


@pytest.mark.measured
@pytest.mark.long
def test_two_thousand_threads(tmp_path):
    """Their rings are of a page each; all are watched, and nothing is missing: where so many files may be open."""
    program = SINGLE / "sched/two_thousand"
    result = proc.traced(["prlimit", "--nofile=4096:", program], tmp_path / "t.out", env=ON, timeout=60).ok()
    assert "nothing lost" in result.stderr
    gotools.check(result.trace)
    sleeps = [t["Waiting"] for t in gotools.states(result.trace).values() if "Waiting" in t]
    assert len(sleeps) >= 2000 and sorted(sleeps)[100] > 0.9 * 2e9


def has(header):
    return proc.run(["gcc", "-fsyntax-only", "-include", header, "-x", "c", "/dev/null"]).returncode == 0


@pytest.mark.measured
@pytest.mark.parametrize("format", ["go1.11", "go1.23"])
@pytest.mark.skipif(not has("liburing.h"), reason="liburing is not here; ./scripts/deps all installs it")
def test_io_uring(tmp_path, format):
    """Waits of which liburing's calls tell, and work that the kernel does in threads of its own."""
    program = proc.compile(SOURCES / "sched/uring.c", tmp_path / "prog", "-luring")
    result = proc.traced([program], tmp_path / "t.out", env=ON | {"GOTRACE_FORMAT": format})
    if result.returncode == 77:
        pytest.skip("no io_uring here")
    waited, lacked = map(int, result.ok().stdout.split())
    ours = [wait for wait in waits(result.trace, "network") if "_get_cqe" in wait[2] or "_wait_cqe" in wait[2]]
    ((ns, count, what),) = ours
    assert 0.9 * (waited - lacked) < ns <= waited and 15 <= count <= 20 and "waiter" in what, (ours, waited, lacked)


def test_refused(tmp_path):
    """One line says what is missing; the trace is as without."""
    env = proc.traced_env(tmp_path / "t.out", ON)
    result = proc.run([PROGRAMS / "without_perf", PROGRAMS / "threads", "4"], env=env)
    if result.returncode == 77:
        pytest.skip("no filters here")
    result.ok()
    assert result.stderr.count(REFUSED) == 1 and "perf_event_paranoid" in result.stderr
    gotools.check(tmp_path / "t.out")


@pytest.mark.needs("strace")
def test_off(tmp_path):
    """Nothing is watched that was not asked for."""
    result = proc.run(["strace", "-f", "-qq", "-e", "trace=perf_event_open", "-o", tmp_path / "log",
                       *[f"-E{n}={v}" for n, v in proc.traced_env(tmp_path / "t.out").items()], PROGRAMS / "threads", "4"])
    result.ok()
    assert not (tmp_path / "log").read_text()
