"""What `gotrace stacks` does to programs under load: each is looked at again and again; kept in looks.md."""

import contextlib
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import types

import servers
from lib import SOURCES, apps

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = pathlib.Path(__file__).with_name("looks.md")
HEAD = """# Looks at running programs

Written by `python3 test/bench/run.py --looks {looks}`: so many times `gotrace stacks PID` of a program that serves a load
on the same {cpus} CPUs, of several processes by turns; load average at the end {load:.1f}. `failed`: looks that ended with an error,
or whose threads were not all seen. `errors`: what the clients could not do, beside the same load without looks. `stopped`: how long the
process stood still.

| program | threads | looks | failed | errors | without | requests/s of without | stopped: median | 99 % | most |
|---|---|---|---|---|---|---|---|---|---|
"""
NODE = """require('http').createServer((q, a) => setTimeout(() => a.end('x'.repeat(1000)), 1)).listen(Number(process.argv[1]), '127.0.0.1')"""


def wrk(port):
    """A second of load: (requests, what went wrong)."""
    text = servers.client("wrk", "-t1", "-c16", "-d1s", f"http://127.0.0.1:{port}/f")
    errors = sum(map(int, re.findall(r"(?:connect|read|write|timeout|Non-2xx or 3xx responses:?) (\d+)", text)))
    return int(re.search(r"(\d+) requests in", text)[1]), errors


def redis_load(port):
    servers.client("redis-benchmark", "-p", port, "-t", "set", "-n", 20000, "-c", 50, "-q")
    return 20000, 0  # redis-benchmark ends with an error at the first one


def memcached_load(port):
    rate, _ = servers.client(servers.BUILD / "load", port, 16, 1).split()
    return float(rate), 0  # so does load


def postgresql_load(port):
    to = ["-h", "127.0.0.1", "-p", port, "-U", "bench", "postgres"]
    text = servers.client(f"{servers.PG}/pgbench", "-c", 8, "-j", 2, "-T", 1, "-n", *to)
    done = int(re.search(r"actually processed: (\d+)", text)[1])
    return done, int(re.search(r"failed transactions: (\d+)", text)[1])


@contextlib.contextmanager
def plain(argv):
    yield types.SimpleNamespace(argv=[str(a) for a in argv], env=os.environ)


def listening(cwd, port, argv, **options):
    """A server that is ready when it listens."""
    return servers.serving(plain, cwd, argv, lambda: apps.listens(port), **options)


def nginx(cwd, port):
    (cwd / "files").mkdir()
    (cwd / "files/f").write_bytes(os.urandom(16384))
    return listening(cwd, port, apps.nginx(cwd, port))


@contextlib.contextmanager
def postgresql(cwd, port):
    servers.client(f"{servers.PG}/initdb", "-D", cwd / "data", "--no-sync", "-A", "trust", "-U", "bench", cwd=cwd, **servers.NOBODY)
    argv = [f"{servers.PG}/postgres", "-D", cwd / "data", "-p", port, "-k", cwd, "-h", "127.0.0.1", "-F"]
    to = ["-h", "127.0.0.1", "-p", str(port), "-U", "bench"]

    def ready():
        return subprocess.run([f"{servers.PG}/pg_isready", *to], capture_output=True).returncode == 0

    with servers.serving(plain, cwd, argv, ready, end=signal.SIGINT, **servers.NOBODY) as run:
        servers.client(f"{servers.PG}/pgbench", *to, "-i", "-q", "postgres", cwd=cwd)
        yield run


USER = ["-u", "nobody"] if servers.NOBODY else []
# name: the server, a second or so of load
PROGRAMS = {
    "redis-io4": (lambda cwd, port: listening(cwd, port, ["redis-server", "--port", port, "--save", "", "--io-threads", 4]), redis_load),
    "memcached": (lambda cwd, port: listening(cwd, port, ["memcached", "-t", 4, "-l", "127.0.0.1", "-p", port, *USER]), memcached_load),
    "nginx": (nginx, wrk),
    "postgresql": (postgresql, postgresql_load),
    "node": (lambda cwd, port: listening(cwd, port, ["node", "-e", NODE, port]), wrk),
    "JVM": (lambda cwd, port: listening(cwd, port, ["java", SOURCES / "attach_servers/Served.java", port]), wrk),
    "python3": (lambda cwd, port: listening(cwd, port, [sys.executable, SOURCES / "attach_servers/served.py", port]), wrk),
}


class Load:
    """The load, again and again, while its block runs."""

    def __init__(self, load, port):
        self.load, self.port, self.done, self.errors, self.seconds = load, port, 0, 0, 0.0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        while not self.over.is_set():
            begin = time.perf_counter()
            try:
                done, errors = self.load(self.port)
            except subprocess.SubprocessError:  # a client that could not go on
                done, errors = 0, 1
            self.seconds += time.perf_counter() - begin
            self.done, self.errors = self.done + done, self.errors + errors

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def rate(self):
        return self.done / self.seconds


def look(pid):
    """(how long it was stopped, in ms, how many threads it has); None: it failed."""
    run = subprocess.run([ROOT / "scripts/gotrace", "stacks", "--json", str(pid)], capture_output=True, text=True, timeout=60)
    told = json.loads(run.stdout) if run.returncode == 0 else {"threads": []}  # 3: a deadlock, where there is none
    if not told["threads"] or not all(thread["stack"] for thread in told["threads"]):
        return None
    return told["stopped_ns"] / 1e6, len(told["threads"])


def looks_at(run, times):
    """(what each look saw, how many failed): the server's processes by turns. One that ends meanwhile does not count."""
    seen, failed, pids = [], 0, []
    while len(seen) + failed < times:
        pids = pids or [directory.name for directory in servers.members(run.group, run.argv)]
        pid = pids.pop()
        one = look(pid)
        if one:
            seen.append(one)
        elif os.path.exists(f"/proc/{pid}"):
            failed += 1
    return seen, failed


def row(name, times):
    serve, load = PROGRAMS[name]
    port = apps.free_port()
    with tempfile.TemporaryDirectory(prefix="gotrace-bench-") as scratch:
        os.chmod(scratch, 0o777)
        with serve(pathlib.Path(scratch), port) as run:
            with Load(load, port) as alone:
                time.sleep(3)
            with Load(load, port) as looked_at:
                seen, failed = looks_at(run, times)
    stopped = sorted(ms for ms, _ in seen)
    cells = [name, max(n for _, n in seen), len(seen) + failed, failed, looked_at.errors, alone.errors]
    cells += [f"{looked_at.rate() / alone.rate():.2f}", *(f"{ms:.1f} ms" for ms in (statistics.median(stopped), stopped[len(stopped) * 99 // 100], stopped[-1]))]
    return "| " + " | ".join(map(str, cells)) + " |\n"


def write(times):
    rows = [row(name, times) for name in PROGRAMS]
    TABLE.write_text(HEAD.format(looks=times, cpus=os.cpu_count(), load=os.getloadavg()[0]) + "".join(rows))
    print(TABLE.read_text())
