"""Whole programs under load. Each returns operations a second, the 99th percentile of their latency in µs (or None) and
the peak of resident memory in MiB."""

import contextlib
import glob
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import sys
import time

from lib import apps, proc

BUILD = pathlib.Path(__file__).resolve().parents[2] / "build/test/bench"
SECONDS = 3
PG = max(glob.glob("/usr/lib/postgresql/*/bin"), default="/nonexistent", key=lambda path: int(path.split("/")[4]))
NOBODY = {"user": "nobody", "group": pwd.getpwnam("nobody").pw_gid, "extra_groups": []} if os.getuid() == 0 else {}


def members(group, argv):
    """The processes of the group that run the program: a tracer's own are none."""
    program = os.path.basename(os.path.realpath(shutil.which(argv[0]) or argv[0]))
    for directory in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.getpgid(int(directory.name)) == group and os.path.basename(os.readlink(directory / "exe")) == program:
                yield directory


def peak_rss(group, argv):
    """MiB, of all of them."""
    kib = 0
    for directory in members(group, argv):
        with contextlib.suppress(OSError, TypeError):
            kib += int(re.search(r"VmHWM:\s+(\d+)", (directory / "status").read_text())[1])
    return kib / 1024


def weighed(run, report):
    """The command that runs it and leaves its peak of memory in `report`: time(1) makes the process, because what a
    process was before exec counts, and we are large."""
    settings = [f"{name}={value}" for name, value in run.env.items()]
    return ["/usr/bin/time", "-f", "%M", "-o", str(report), "env", *settings, *run.argv]


def peak_of(report):
    return int(report.read_text().split()[-1]) / 1024


def client(*argv, **options):
    return subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=True, timeout=60, **options).stdout


_samples = None  # where serving leaves samples of its server


@contextlib.contextmanager
def sampled(data):
    """Servers are sampled meanwhile; yields a function that says then how many percent of that is in libgotrace.so."""
    global _samples
    _samples = data

    def share():
        text = client("perf", "report", "-i", data, "--no-children", "--stdio", "--sort", "dso")
        return sum(float(percent) for percent in re.findall(r"([\d.]+)%\s+libgotrace\.so", text))

    yield share
    _samples = None


def _sampling(group, argv):
    if not _samples:
        return None
    pids = ",".join(directory.name for directory in members(group, argv))
    perf = ["perf", "record", "-q", "-e", "cpu-clock", "-F", "2000", "-p", pids, "-o", _samples]
    return proc.spawn(perf, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@contextlib.contextmanager
def serving(around, cwd, argv, ready, end=signal.SIGTERM, **options):
    """A server under the tracer, the process group `group`; on leaving, its `rss` is known and it has ended."""
    log = cwd / "log"
    with around(argv) as run, open(log, "w") as out:
        child = proc.spawn(run.argv, stdout=out, stderr=out, cwd=cwd, env=run.env, **options)
        run.group = child.pid
        try:
            deadline = time.monotonic() + 20
            while not ready():
                assert child.poll() is None, f"it ended: {log.read_text()}"
                assert time.monotonic() < deadline, "it does not begin to serve"
                time.sleep(0.02)
            samples = _sampling(child.pid, argv)
            yield run
            if samples:
                proc.stop(samples, sig=signal.SIGINT)
            run.rss = peak_rss(child.pid, argv)
            os.killpg(child.pid, end)  # the server may be a tracer's child
            child.wait(20)
        finally:
            proc.kill_group(child)
        run.log = log.read_text()


def redis_benchmark(port, requests):
    text = client("redis-benchmark", "-p", port, "-t", "set", "-n", requests, "-c", 50, "--csv")
    head, row = (line.replace('"', "").split(",") for line in text.strip().splitlines()[-2:])
    values = dict(zip(head, row))
    return float(values["rps"]), float(values["p99_latency_ms"]) * 1000


def redis(around, cwd, io_threads):
    port = apps.free_port()
    argv = ["redis-server", "--port", port, "--save", "", "--io-threads", io_threads, "--io-threads-do-reads", "yes"]
    with serving(around, cwd, argv, lambda: apps.listens(port)) as run:
        rate, _ = redis_benchmark(port, 2000)
        rate, p99 = redis_benchmark(port, int(rate * SECONDS))
    return rate, p99, run


def memcached(around, cwd):
    port = apps.free_port()
    user = ["-u", "nobody"] if NOBODY else []
    with serving(around, cwd, ["memcached", "-t", 4, "-l", "127.0.0.1", "-p", port, *user], lambda: apps.listens(port)) as run:
        rate, p99 = client(BUILD / "load", port, 16, SECONDS).split()
    return float(rate), float(p99), run


def nginx(around, cwd):
    port = apps.free_port()
    (cwd / "files").mkdir(exist_ok=True)
    (cwd / "files/f").write_bytes(os.urandom(16384))
    with serving(around, cwd, apps.nginx(cwd, port), lambda: apps.listens(port), end=signal.SIGTERM) as run:
        text = client("wrk", "-t1", "-c16", f"-d{SECONDS}s", "--latency", f"http://127.0.0.1:{port}/f")
    amount, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", text).groups()
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", text)[1])
    return rate, float(amount) * {"us": 1, "ms": 1e3, "s": 1e6}[unit], run


def postgresql(around, cwd):
    port, data = apps.free_port(), cwd / "data"
    to = ["-h", "127.0.0.1", "-p", str(port), "-U", "bench"]
    if not data.exists():
        client(f"{PG}/initdb", "-D", data, "--no-sync", "-A", "trust", "-U", "bench", cwd=cwd, **NOBODY)
    argv = [f"{PG}/postgres", "-D", data, "-p", port, "-k", cwd, "-h", "127.0.0.1", "-F"]

    def ready():
        return subprocess.run([f"{PG}/pg_isready", *to], capture_output=True).returncode == 0

    with serving(around, cwd, argv, ready, end=signal.SIGINT, **NOBODY) as run:
        if not (cwd / "filled").exists():
            client(f"{PG}/pgbench", *to, "-i", "-q", "postgres", cwd=cwd)
            (cwd / "filled").touch()
        load = ["-c", 8, "-j", 2, "-T", SECONDS, "-M", "prepared", "-S", "-n", "-l", "--log-prefix", cwd / "pgbench"]
        text = client(f"{PG}/pgbench", *to, *load, "postgres", cwd=cwd)
    took = []
    for log in cwd.glob("pgbench.*"):
        took += [int(line.split()[2]) for line in log.read_text().splitlines()]
        log.unlink()
    return float(re.search(r"tps = ([\d.]+)", text)[1]), float(sorted(took)[len(took) * 99 // 100]), run


def command(around, cwd, argv, stdout=subprocess.PIPE):
    """Runs a tool to its end; its seconds and what it printed."""
    with around(argv) as run, open(cwd / "log", "w+") as log:
        begin = time.perf_counter()
        child = subprocess.Popen(weighed(run, cwd / "peak"), stdout=stdout, stderr=log, text=True, cwd=cwd)
        text = child.communicate()[0]
        seconds = time.perf_counter() - begin
        log.seek(0)
        run.log = log.read()
        assert child.returncode == 0, run.log
        run.rss = peak_of(cwd / "peak")
    return seconds, text, run


def compressor(*argv, size):
    def measure(around, cwd):
        path = cwd / "data"
        if not path.exists():  # neither constant nor noise
            path.write_bytes(b"".join(os.urandom(64) + b"gotrace " * 24 for _ in range(size << 12)))
        seconds, _, run = command(around, cwd, [*argv, path], stdout=subprocess.DEVNULL)
        return size / seconds, None, run

    return measure


def sysbench(*argv):
    def measure(around, cwd):
        seconds, text, run = command(around, cwd, ["sysbench", "--percentile=99", *argv, "run"])
        rate = float(re.search(r"total number of events:\s+(\d+)", text)[1]) / float(re.search(r"total time:\s+([\d.]+)s", text)[1])
        return rate, float(re.search(r"99th percentile:\s+([\d.]+)", text)[1]) * 1000, run

    return measure


def python_pool(around, cwd):
    _, text, run = command(around, cwd, [sys.executable, pathlib.Path(__file__).with_name("pool.py")])
    rate, p99 = map(float, [l for l in text.splitlines() if re.match(r"[\d.]+ [\d.]+$", l)][0].split())
    return rate, p99, run


# name: what it needs, the unit of its throughput, how it is measured
PROGRAMS = {
    "redis": ("redis-server", "requests/s", lambda around, cwd: redis(around, cwd, 1)),
    "redis-io4": ("redis-server", "requests/s", lambda around, cwd: redis(around, cwd, 4)),
    "memcached": ("memcached", "requests/s", memcached),
    "nginx": ("wrk", "requests/s", nginx),
    "postgresql": (f"{PG}/pgbench", "queries/s", postgresql),
    "pigz": ("pigz", "MiB/s", compressor("pigz", "-p4", "-c", size=256)),
    "xz": ("xz", "MiB/s", compressor("xz", "-T2", "-1", "-c", "--block-size=1MiB", size=64)),
    "sysbench-mutex": ("sysbench", "events/s", sysbench("mutex", "--threads=4", "--mutex-locks=2000000", "--mutex-loops=100")),
    "sysbench-threads": ("sysbench", "events/s", sysbench("threads", "--threads=4", "--thread-locks=4", f"--time={SECONDS}")),
    "python-pool": (sys.executable, "tasks/s", python_pool),
}
