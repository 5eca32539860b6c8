"""SIGKILL, SIGSEGV and a full disk at random moments: no hang, no invalid whole generation, no other file touched."""

import contextlib
import dataclasses
import os
import pathlib
import random
import resource
import signal
import subprocess
import time

import pytest

from lib import HOSTILE, PROGRAMS, cut, gotools, proc, seeds

RUNS = int(os.environ.get("RANDOM_ENDS", "15"))  # the claim in test/README.md is 1000
BATCH = 20  # runs whose traces are read together

ENDLESS = [
    [PROGRAMS / "forever"],
    [PROGRAMS / "yields", "8", "100000000"],
    [PROGRAMS / "heap", "storm", "4", "100000000"],
    [HOSTILE / "signals", "storm"],
    [HOSTILE / "forks", "under-fire"],
]
ENDING = [
    [HOSTILE / "resources", "none"],
    [PROGRAMS / "yields", "4", "30000"],
    [PROGRAMS / "threads", "200"],
    [PROGRAMS / "sleeps", "3000"],  # writes its trace itself, having one thread
]
FORMATS = ["go1.23", "go1.23", "go1.22", "go1.25", "go1.26", "go1.11", "go1.19", "go1.21"]
SIGNALS = {"SIGKILL": signal.SIGKILL, "SIGSEGV": signal.SIGSEGV}


@dataclasses.dataclass
class Run:
    seed: int
    directory: pathlib.Path
    kind: str = ""
    argv: list = None
    format: str = ""
    traces: list = dataclasses.field(default_factory=list)

    def __str__(self):
        return f"repeat: RANDOM_ENDS=1 RANDOM_FIRST={self.seed} (moments differ): {self.kind}, {self.format}, {self.argv}"


class Sentinel:
    """Files that are the program's: some in its directory, some that it has open. No process may write to them."""

    def __init__(self, directory):
        self.directory = directory
        self.contents = {f"its.{i}": os.urandom(100 + i) for i in range(6)}
        for name, data in self.contents.items():
            (directory / name).write_bytes(data)
        self.fds = [os.open(directory / name, os.O_RDWR) for name in self.contents]

    def check(self, run):
        for fd in self.fds:
            os.close(fd)
        found = {p.name: p for p in self.directory.iterdir() if not p.name.startswith("t.out")}
        assert set(found) == set(self.contents), run
        for name, data in self.contents.items():
            assert found[name].read_bytes() == data, f"{name} was written to; {run}"


def moment(rng):
    """Early ones more often: starting and ending is where the states are many."""
    return rng.uniform(0, rng.choice([0.05, 0.3, 1, 2]))


def end_by_signal(run, rng, env, fds):
    run.argv = rng.choice(ENDLESS)
    child = proc.spawn(run.argv, env=env, cwd=run.directory, pass_fds=fds, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(moment(rng))  # the random moment is the point
        child.send_signal(SIGNALS[run.kind])
        # storm and under-fire may have ended before, with 0
        assert child.wait(20) in (-SIGNALS[run.kind], 0), f"ended with {child.returncode}; {run}"
    except subprocess.TimeoutExpired:
        raise proc.Hang(str(run)) from None
    finally:
        proc.kill_group(child)


@contextlib.contextmanager
def small_disk(directory, size):
    directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", directory], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", directory], check=True)


def limited(run, env, fds, size):
    """Runs it to its end with files of at most `size` bytes."""
    child = proc.spawn(
        run.argv,
        env=env,
        cwd=run.directory,
        pass_fds=fds,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        preexec_fn=(lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))) if size else None,
    )
    try:
        out, _ = child.communicate(timeout=30)
        return child.returncode, out
    except subprocess.TimeoutExpired:
        raise proc.Hang(str(run)) from None
    finally:
        proc.kill_group(child)


def end_of_disk(run, rng, env, fds):
    """The program goes on to its own end, as without us."""
    run.argv = rng.choice(ENDING)
    size = rng.randrange(0, 600_000)
    expected = limited(run, {}, fds, 0)
    if os.geteuid() == 0 and rng.random() < 0.5:
        run.kind = f"disk of {size >> 12} pages"
        disk = run.directory.with_suffix(".disk")
        with small_disk(disk, max(size & ~4095, 4096)):
            result = limited(run, env | {"GOTRACE_OUTPUT": f"{disk}/t.out"}, fds, 0)
            for trace in disk.iterdir():
                (run.directory / trace.name).write_bytes(trace.read_bytes())
    else:
        run.kind = f"files of {size} bytes"
        result = limited(run, env, fds, size)
    assert result == expected, f"{result} instead of {expected}; {run}"


def whole(run, trace):
    """Cuts off what may be incomplete, which no kill leaves in a v1 file, and no full disk in any."""
    data = trace.read_bytes()
    if run.kind in SIGNALS and cut_apart(run.format):
        number, end = cut.whole_generations(data) if data else (0, 0)
        data = data[:end] if number else b""
        trace.write_bytes(data)
    return len(data) > 0


def cut_apart(format):
    return int(format.removeprefix("go1.")) >= 22


def one_run(seed, directory):
    rng, run = random.Random(seed), Run(seed, directory)
    directory.mkdir()
    sentinel = Sentinel(directory)
    run.kind, run.format = rng.choice([*SIGNALS, "disk"]), rng.choice(FORMATS)
    env = proc.traced_env(directory / "t.out", proc.EVERY_YIELD | {"GOTRACE_FORMAT": run.format, "GOTRACE_QUIET": "1"})
    (end_by_signal if run.kind in SIGNALS else end_of_disk)(run, rng, env, sentinel.fds)
    sentinel.check(run)
    run.traces = [trace for trace in sorted(directory.glob("t.out*")) if whole(run, trace)]
    return run


def check(runs):
    for format in {run.format for run in runs}:
        traces = {str(trace): run for run in runs if run.format == format for trace in run.traces}
        readers = list(gotools.readers_of(format).values())
        for go in {readers[0]: 0, readers[-1]: 0} if traces else ():
            result = proc.run([gotools.read_all(go), *traces], timeout=300).ok()
            complaints = [f"{line}; {traces.get(line.split(':')[0])}" for line in result.stdout.splitlines()]
            assert not complaints, "\n".join(complaints[:10])


@pytest.mark.chance
@pytest.mark.limit(120 + 20 * RUNS)
def test_random_ends(tmp_path):
    start, seen = seeds.seed("RANDOM_FIRST", moments=True), {}  # the seed of the first run
    for first in range(start, start + RUNS, BATCH):
        runs = [one_run(seed, tmp_path / str(seed)) for seed in range(first, min(first + BATCH, start + RUNS))]
        check(runs)
        for run in runs:
            kind = run.kind.split()[0]
            n, traces = seen.get(kind, (0, 0))
            seen[kind] = (n + 1, traces + len(run.traces))
            for path in run.directory.iterdir():
                path.unlink()
    print("runs, traces with whole generations:", seen)
    assert sum(traces for _, traces in seen.values()) > RUNS / 2
