"""GOTRACE_SCHED=on against the kernel's own trace of the same run: its tracepoints, recorded by perf."""

import collections
import dataclasses
import os
import re
import subprocess
import time

import pytest

from lib import PROGRAMS, gotools, proc
from lib.reports import GOTRACE, ns_of, shares, waits

pytestmark = [pytest.mark.measured, pytest.mark.needs("perf"), pytest.mark.limit(180)]
EVENTS = ["-e", "sched:sched_switch", "-e", "sched:sched_wakeup", "-e", "sched:sched_wakeup_new"]
SECONDS = 2
FIRST_NAMESPACE = 0xEFFFFFFC  # PROC_PID_INIT_INO: tracepoints have the numbers that threads have there


@pytest.fixture(scope="module", autouse=True)
def allowed(tmp_path_factory):
    if os.stat("/proc/self/ns/pid").st_ino != FIRST_NAMESPACE:
        pytest.skip("threads have other numbers here than in the kernel's tracepoints: a PID namespace")
    data = tmp_path_factory.mktemp("allowed") / "perf.data"
    if proc.run(["perf", "record", "-q", "-a", *EVENTS, "-o", data, "--", "true"]).returncode:
        pytest.skip("perf may not record the whole machine here")


@dataclasses.dataclass
class Times:
    kind: str = ""
    running: float = 0  # ns, as what follows
    runnable: float = 0
    waiting: float = 0
    state: str = ""
    since: float = 0

    def move(self, state, now):
        if self.state:
            setattr(self, self.state, getattr(self, self.state) + now - self.since)
        self.state, self.since = state, now

    @property
    def whole(self):
        return self.running + self.runnable + self.waiting


def kernel(data):
    """thread → Times"""
    text = proc.run(["perf", "script", "-i", data, "--ns", "-F", "time,event,trace"], timeout=60).ok().stdout
    threads = collections.defaultdict(Times)
    for seconds, ns, event, rest in re.findall(r"^ *(\d+)\.(\d{9}): +sched:(\w+): (.*)$", text, re.M):
        now = int(seconds) * 1e9 + int(ns)
        if event != "sched_switch":
            thread = threads[int(re.search(r"\bpid=(\d+)", rest)[1])]
            if thread.state != "running":  # one that is about to sleep does not, when it is woken
                thread.move("runnable", now)
            continue
        before, state, after = re.search(r"prev_pid=(\d+) .*prev_state=(\S+) ==> .*next_pid=(\d+)", rest).groups()
        threads[int(before)].move("runnable" if state in ("R", "R+") else "waiting", now)
        threads[int(after)].move("running", now)
    return threads


@pytest.fixture(params=["go1.11", pytest.param("go1.22", marks=pytest.mark.long), "go1.26"], scope="module")
def run(request, tmp_path_factory):
    """(trace, thread → Times, as the tracepoints have it; thread → as the kernel counts) of a starved program."""
    directory = tmp_path_factory.mktemp("kernel")
    trace, data, pipe = directory / "t.out", directory / "perf.data", subprocess.PIPE
    env = proc.traced_env(trace, {"GOTRACE_SCHED": "on", "GOTRACE_FORMAT": request.param})
    argv = ["perf", "record", "-q", "-a", *EVENTS, "-k", "CLOCK_MONOTONIC_RAW", "-m", "4M", "-o", data, "--"]
    program = [PROGRAMS / "account", "spin=3", "pinned=1", "sleep=2", "hidden=1", "fault=1"]
    child = proc.spawn([*argv, "env", *[f"{n}={v}" for n, v in env.items()], *program], stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    assert child.stdout.readline() == "ready\n", child.stderr.read()
    time.sleep(SECONDS)
    out, err = child.communicate(timeout=60)
    proc.kill_group(child)
    assert child.returncode == 0 and "nothing lost" in err, err
    seen = kernel(data)
    threads, counted = {}, {}
    for tid, kind, cpu, queue, *_, lived in (line.split() for line in out.splitlines()):
        if kind != "main":  # it has no work, and began before the trace
            threads[int(tid)] = dataclasses.replace(seen[int(tid)], kind=kind)
            counted[int(tid)] = int(cpu), int(queue), int(lived)
    return trace, threads, counted


@pytest.mark.long
def test_states(run):
    """
    Within 2 % of the time; but where nothing says when a thread was woken, that is in its wait. And what the kernel saw
    of it before the trace began and after it ended, on a busy machine, may have been anything.
    """
    trace, threads, _ = run
    found = gotools.states(trace)
    for tid, truth in threads.items():
        times = collections.Counter(found[tid])
        outside = truth.whole - sum(ns for state, ns in times.items() if state != "NotExist")
        most = truth.whole / 50 + max(0, outside)
        assert truth.whole > 0.9 * SECONDS * 1e9 and outside < truth.whole / 10
        if truth.kind == "fault":  # which also waits in calls, and computes there
            assert truth.running - 2 * truth.whole / 50 - most < times["Running"] < truth.running + most, (truth, times)
            continue
        assert abs(times["Running"] - truth.running) < most, (truth, times)
        off = times["Waiting"] + times["Runnable"]
        assert abs(off - truth.waiting - truth.runnable) < most, (truth, times)
        if truth.kind in ("spin", "pinned", "sleep"):
            assert abs(times["Runnable"] - truth.runnable) < most, (truth, times)


def test_shares(run):
    """What `gotrace info` says, which has the account, too: within 1 %, seen by a hook or not."""
    trace, threads, counted = run
    found = shares(trace)
    for tid, truth in threads.items():
        share, (cpu, queue, lived) = found[tid], counted[tid]
        percent, more = share.lived / 100, share.lived - lived  # it went on after it had looked
        assert -1 < share.cpu - cpu / percent < 1 + more / percent, (share, counted[tid])
        assert -1 < share.queue - queue / percent < 1 + more / percent, (share, counted[tid])
        # The tracepoints have what interrupts do in a thread's time, which the kernel does not count as its; and not
        # what a switch itself takes, which it does: 10 us each of 40,000 here, if it waits for pages of a disk.
        percent = truth.whole / 100
        if truth.kind != "fault":
            points = 3 + abs(truth.whole - share.lived) / percent
            assert abs(share.cpu - truth.running / percent) < points, (share, truth)
            assert abs(share.queue - truth.runnable / percent) < points, (share, truth)


def test_latency_profile(run):
    """What go tool trace has for it is what the kernel made threads wait for a CPU."""
    trace, threads, _ = run
    told = {"spin", "pinned", "sleep"}
    delays = sum(truth.runnable for truth in threads.values() if truth.kind in told)
    others = sum(truth.runnable for truth in threads.values() if truth.kind not in told)
    profile = gotools.pprof(trace, "sched").total_ns
    assert 0.95 * delays < profile < 1.05 * (delays + others), (profile, delays, others)


def test_top(run):
    """`gotrace top --kind=sched` has all of the time in run queues, if not where all of it was."""
    trace, threads, counted = run
    text = proc.run([GOTRACE, "top", "--kind=sched", trace]).ok().stdout
    told = sum(ns for ns, _, _ in waits(trace, "sched"))
    more = ns_of(re.search(r"^ *(\S+) more in run queues", text, re.M)[1])
    queue = sum(queue for _, queue, _ in counted.values())
    after = sum(threads[tid].whole - lived for tid, (_, _, lived) in counted.items())
    assert 0.97 * queue < told + more < 1.03 * queue + after, (told, more, queue, after)
