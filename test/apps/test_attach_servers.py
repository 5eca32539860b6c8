"""`gotrace attach` and `detach` again and again, on servers that others use meanwhile: each request is answered, and right.

ATTACH_CYCLES=1000 for how often; test/README.md has the results. The observations are printed: `pytest -rP`.
"""

import contextlib
import glob
import os
import pathlib
import platform
import pwd
import re
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

import pytest

from lib import LIBC, PROGRAMS, ROOT, SOURCES, apps, gotools, proc

GOTRACE = ROOT / "build/gotrace"
CYCLES = int(os.environ.get("ATTACH_CYCLES", "5"))
PG_BIN = max(glob.glob("/usr/lib/postgresql/*/bin"), default="/nonexistent", key=lambda path: int(path.split("/")[4]))
NOBODY = {"user": "nobody", "group": pwd.getpwnam("nobody").pw_gid, "extra_groups": []} if os.geteuid() == 0 else {}
CLIENTS = 4
PAUSE_MS = 50  # for which the program may stand still

pytestmark = [
    pytest.mark.skipif(platform.machine() != "x86_64", reason="attaching is there for x86-64 only"),
    pytest.mark.skipif(LIBC < 34, reason="nothing is attached to where threads are a library of their own"),
    pytest.mark.limit(60 + 6 * CYCLES),
]

# --- clients: each knows what the answer must be


class Http:
    """A client that asks for /N gets N, and some more."""

    def __init__(self, port, number):
        self.socket = socket.create_connection(("127.0.0.1", port), 30)
        self.file = self.socket.makefile("rb")
        self.number = number

    def ask(self, i):
        path = f"{self.number * 10 + i % 10}"
        self.socket.sendall(f"GET /{path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert b" 200 " in self.file.readline()
        length = 0
        while (line := self.file.readline()) != b"\r\n":
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        assert self.file.read(length) == path.encode() * 1000


class Memcached(Http):
    def ask(self, i):
        key, value = f"{self.number}-{i % 50}", f"{self.number} {i} " * 50
        self.socket.sendall(f"set {key} 0 0 {len(value)}\r\n{value}\r\nget {key}\r\n".encode())
        answer = f"STORED\r\nVALUE {key} 0 {len(value)}\r\n{value}\r\nEND\r\n".encode()
        assert self.file.read(len(answer)) == answer


class Redis(Http):
    def ask(self, i):
        value = f"{self.number} {i} " * 50
        self.socket.sendall(f"SET k{self.number} {value!r}\r\nGET k{self.number}\r\nINCR n{self.number}\r\n".encode())
        answer = f"+OK\r\n${len(value)}\r\n{value}\r\n:{i + 1}\r\n".encode()
        assert self.file.read(len(answer)) == answer


class Postgresql(Http):
    """Each has a row of its own, and adds one to it."""

    def __init__(self, port, number):
        super().__init__(port, number)
        start = struct.pack("!i", 196608) + b"user\0bench\0database\0postgres\0\0"
        self.socket.sendall(struct.pack("!i", len(start) + 4) + start)
        self.rows()
        self.query("create temp table t as select 0 as n")

    def rows(self):
        found = []
        while True:
            kind, size = struct.unpack("!ci", self.file.read(5))
            text = self.file.read(size - 4)
            assert kind != b"E", text
            if kind == b"D":
                found.append(text[6:].decode())
            if kind == b"Z":
                return found

    def query(self, text):
        self.socket.sendall(b"Q" + struct.pack("!i", len(text) + 5) + text.encode() + b"\0")
        return self.rows()

    def ask(self, i):
        assert self.query("update t set n = n + 1 returning n") == [str(i + 1)]


class Load:
    """Requests by several clients while its block runs; each answer was right."""

    def __init__(self, client, port):
        self.over, self.done, self.wrong = False, [0] * CLIENTS, []
        self.threads = [threading.Thread(target=self._run, args=(client, port, n)) for n in range(CLIENTS)]

    def _run(self, client, port, number):
        try:
            one = client(port, number)
            while not self.over:
                one.ask(self.done[number])
                self.done[number] += 1
            one.socket.close()
        except Exception as error:  # told in the test's own thread
            self.wrong.append((number, self.done[number], repr(error)))

    def more(self, n=20):
        """Waits until so many more are answered."""
        until = sum(self.done) + n
        while sum(self.done) < until:  # bounded by the test's limit
            assert not self.wrong, self.wrong
            time.sleep(0.001)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        self.more(CLIENTS)
        return self

    def __exit__(self, *_):
        self.over = True
        for thread in self.threads:
            thread.join()
        assert not self.wrong, self.wrong


# --- servers

EXIT = {"java": 143}  # what it ends with on SIGTERM


def prepare_nginx(cwd):
    (cwd / "files").mkdir(mode=0o755)
    for i in range(10 * CLIENTS):
        (cwd / f"files/{i}").write_text(str(i) * 1000)


def start_nginx(cwd, port):
    return apps.nginx(cwd, port, "keepalive_requests 1000000;")


def prepare_java(cwd):
    proc.run(["javac", "-d", cwd, SOURCES / "attach_servers/Served.java"], timeout=60).ok()


def prepare_postgresql(cwd):
    argv = [f"{PG_BIN}/initdb", "-D", cwd / "data", "--no-sync", "-A", "trust", "-U", "bench"]
    assert proc.spawn(argv, stdout=subprocess.DEVNULL, cwd=cwd, **NOBODY).wait(60) == 0


def start_postgresql(cwd, port):
    return [f"{PG_BIN}/postgres", "-D", cwd / "data", "-p", port, "-k", cwd, "-h", "127.0.0.1", "-F"]


def children_first(pid):
    """Children of an attached parent have the library, too."""
    return [*map(int, pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()), pid]


USER = ["-u", "nobody"] if NOBODY else []
NOTHING = lambda cwd: None
# name: the client, the preparation, the command, its end, whether its memory is steady under that load
SERVERS = {
    "redis": (Redis, NOTHING, lambda cwd, port: ["redis-server", "--port", port, "--save", "", "--io-threads", 4], signal.SIGTERM, True),
    "memcached": (Memcached, NOTHING, lambda cwd, port: ["memcached", "-t", 4, "-l", "127.0.0.1", "-p", port, *USER], signal.SIGTERM, True),
    "nginx": (Http, prepare_nginx, start_nginx, signal.SIGTERM, True),
    "postgresql": (Postgresql, prepare_postgresql, start_postgresql, signal.SIGINT, True),
    "node": (Http, NOTHING, lambda cwd, port: ["node", SOURCES / "attach_servers/served.js", port], signal.SIGTERM, False),
    "java": (Http, prepare_java, lambda cwd, port: ["java", "-Xms64m", "-Xmx64m", "-XX:+AlwaysPreTouch", "-cp", cwd, "Served", port], signal.SIGTERM, False),
    "python": (Http, NOTHING, lambda cwd, port: [sys.executable, SOURCES / "attach_servers/served.py", port], signal.SIGTERM, True),
}


class Running:
    """A server and its load; or a program that checks itself, which is its own load."""

    def __init__(self, child, load=None):
        self.pid, self.load = child.pid, load

    def more(self):
        self.load.more() if self.load else time.sleep(0.01)


class Server:
    def __init__(self, name, cwd):
        self.name, self.cwd = name, cwd
        self.client, prepare, self.start, self.signal, self.steady = SERVERS[name]
        prepare(cwd)

    def answers(self, port):
        with contextlib.suppress(OSError, AssertionError):
            self.client(port, 0).socket.close()
            return True

    @contextlib.contextmanager
    def running(self):
        port, log = apps.free_port(), self.cwd / "log"
        user = NOBODY if self.name == "postgresql" else {}
        with open(log, "w") as out:
            child = proc.spawn(self.start(self.cwd, port), stdout=out, stderr=out, cwd=self.cwd, **user)
        try:
            while not self.answers(port):  # bounded by the test's limit
                assert child.poll() is None, log.read_text()
                time.sleep(0.01)
            with Load(self.client, port) as load:
                yield Running(child, load)
            assert child.poll() is None, log.read_text()
            assert proc.stop(child, sig=self.signal) == EXIT.get(self.name, 0), log.read_text()
            assert "gotrace:" not in log.read_text()
        finally:
            proc.kill_group(child)


class Checker:
    """test/prog/attached.c"""

    steady = True

    def __init__(self, cwd, *what):
        self.cwd, self.what = cwd, what

    @contextlib.contextmanager
    def running(self):
        child = proc.spawn([PROGRAMS / "attached", *self.what], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            assert child.stdout.readline() == "ready\n"
            yield Running(child)
            out, _ = child.communicate(timeout=30)
            assert child.returncode == 0 and re.fullmatch(r"\d+ rounds\n", out), (child.returncode, out)
        finally:
            proc.kill_group(child)


@pytest.fixture(params=[*SERVERS, "many 200", "forks"])
def program(request):
    name = request.param
    if name == "postgresql" and not shutil.which(f"{PG_BIN}/initdb") or not shutil.which({"redis": "redis-server"}.get(name, name)) and name in SERVERS and name != "postgresql":
        pytest.skip(f"{name} is not here; ./scripts/deps all installs it")
    with tempfile.TemporaryDirectory(prefix="gotrace-") as cwd:
        os.chmod(cwd, 0o777)
        cwd = pathlib.Path(cwd)
        yield Server(name, cwd) if name in SERVERS else Checker(cwd, *name.split())


# --- cycles


def gotrace(command, *argv):
    return proc.run([GOTRACE, command, *argv], timeout=60)


def ms(text):
    number, unit = re.fullmatch(r"([\d.]+)(ns|us|ms|s)", text).groups()
    return float(number) * {"ns": 1e-6, "us": 1e-3, "ms": 1, "s": 1e3}[unit]


def spread(values):
    values = sorted(values)
    return f"median {statistics.median(values):.2f}, 99 % {values[len(values) * 99 // 100]:.2f}, most {values[-1]:.2f}"


def attach(pid, trace):
    """The outcome; None: the process has ended without a signal of the test."""
    result = gotrace("attach", "--verbose", "-o", trace, pid)
    if result.returncode and not os.path.exists(f"/proc/{pid}"):
        return None
    return result.ok()


@pytest.mark.alone
@pytest.mark.foreign
@pytest.mark.long
def test_first_attach(program):
    """To a new process each time. It stands still for a moment only."""
    still, borrowed, took = [], [], []
    while len(took) < CYCLES:
        with program.running() as server:
            for pid in children_first(server.pid) if program.steady and isinstance(program, Server) else [server.pid]:
                trace = program.cwd / f"{pid}.out"
                if (result := attach(pid, trace)) is None:
                    continue
                server.more()
                gotrace("detach", pid).ok()
                all_for, one_for = re.search(r"stood still for more than (\S+), but one for (\S+)\n", result.stdout).groups()
                still.append(ms(all_for))
                borrowed.append(ms(one_for))
                took.append(result.seconds * 1000)
                gotools.check_all(trace) if len(took) <= 20 else proc.run([GOTRACE, "info", trace]).ok()
                trace.unlink()
    print(f"{len(took)} first attaches, in ms: all stood still {spread(still)}; one {spread(borrowed)}; took {spread(took)}")
    assert statistics.median(still) < PAUSE_MS and statistics.median(borrowed) < PAUSE_MS, (still, borrowed)


def holdings(pid):
    """KiB, threads, descriptors, mappings."""
    status = open(f"/proc/{pid}/status").read()
    kib, threads = (int(re.search(rf"^{name}:\s+(\d+)", status, re.M)[1]) for name in ("VmRSS", "Threads"))
    return kib, threads, len(os.listdir(f"/proc/{pid}/fd")), len(open(f"/proc/{pid}/maps").readlines())


@pytest.mark.alone
@pytest.mark.chance
@pytest.mark.long
def test_again_and_again(program):
    """To one process, which does not grow by that."""
    trace, took, early = program.cwd / "t.out", [], None
    with program.running() as server:
        for i in range(CYCLES):
            took.append(attach(server.pid, trace).seconds * 1000)
            server.more()
            gotrace("detach", server.pid).ok()
            early = early or (holdings(server.pid) if i >= CYCLES // 5 else None)
        late = holdings(server.pid)
    proc.run([GOTRACE, "info", trace]).ok()
    print(f"{CYCLES} attaches, in ms: {spread(took)}; KiB, threads, descriptors, mappings: {early} then, {late} at the end")
    if program.steady:
        assert late[0] < early[0] + 2048 and late[1] <= early[1] + 1 and late[2] <= early[2] + 2 and late[3] <= early[3] + 20, (early, late)
