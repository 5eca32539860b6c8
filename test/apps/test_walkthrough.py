"""The walk-through of gotrace-tutorial(7), on memcached with a real problem: a monitoring script dumps the keys of a full cache.

`stats cachedump` walks a list of items with its lock held, which every `set` that has to evict an item needs.
"""

import json
import re
import socket
import subprocess
import threading
import time

import pytest

from lib import ROOT, apps, gotools, proc

GOTRACE = ROOT / "scripts/gotrace"
SECONDS = 3


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """memcached's source directory, built with debug information."""
    sources = ROOT / "build/sources"
    if (sources / "memcached.gone").exists():
        pytest.skip("the sources of this system's memcached are gone from where its packages come from: scripts/deps says which")
    (original,) = sources.glob("memcached-*/")
    source = tmp_path_factory.mktemp("memcached") / "source"
    subprocess.run(["cp", "-a", original, source], check=True)
    for command in (["./configure", "CFLAGS=-g -O2"], ["make", "-j2", "memcached"]):
        proc.run(command, cwd=source, timeout=200).ok()
    return source


def exchange(server, request, is_answered):
    server.sendall(request)
    answer = b""
    while not is_answered(answer):
        answer += server.recv(1 << 20)


def set_keys(port, who, until):
    with socket.create_connection(("127.0.0.1", port)) as server:
        i = 0
        while time.monotonic() < until:
            keys = range(i, i + 20)
            request = b"".join(b"set k%d.%d 0 0 100\r\n%s\r\n" % (who, k, b"x" * 100) for k in keys)
            exchange(server, request, lambda answer: answer.count(b"\r\n") == 20)
            i += 20


def dump_keys(port, until):
    with socket.create_connection(("127.0.0.1", port)) as server:
        while time.monotonic() < until:
            exchange(server, b"stats cachedump 4 0\r\n", lambda answer: answer.endswith(b"END\r\n"))


def trace(source, path):
    port = apps.free_port()
    memcached = [source / "memcached", "-u", "root", "-t", "4", "-m", "16", "-U", "0", "-p", port]
    argv = [GOTRACE, "-o", path, "--", *memcached]
    with apps.server(argv, path.with_suffix(".log"), lambda: apps.listens(port)):
        until = time.monotonic() + SECONDS
        clients = [threading.Thread(target=set_keys, args=(port, who, until)) for who in range(3)]
        clients.append(threading.Thread(target=dump_keys, args=(port, until)))
        for client in clients:
            client.start()
        for client in clients:
            client.join()


def sync_rows(path):
    """Of the report: [what, function, file, line, and the same of who ended it], by waited time."""
    place = r"(\S+) <- (\S+) \((\w+\.c):(\d+)\)"
    report = proc.run([GOTRACE, "top", "--kind=sync", "--wakers", path]).ok().stdout
    return [match.groups() for match in re.finditer(rf"sync\s+{place}, ended by {place}", report)]


@pytest.mark.alone
@pytest.mark.foreign
@pytest.mark.long
def test_the_lock_and_who_holds_it(source, tmp_path):
    path = tmp_path / "t.out"
    trace(source, path)
    gotools.check_all(path)
    lines = (source / "items.c").read_text().splitlines()
    rows = sync_rows(path)
    what, waiter, file, line, *_ = rows[0]
    assert (what, waiter, file) == ("pthread_mutex_lock", "lru_pull_tail", "items.c"), rows
    assert "pthread_mutex_lock(&lru_locks[" in lines[int(line) - 1]
    unlock, _, file, line = next(row for row in rows if row[5] == "item_cachedump")[4:]
    assert (unlock, file) == ("pthread_mutex_unlock", "items.c")
    assert "pthread_mutex_unlock(&lru_locks[" in lines[int(line) - 1]
    report = proc.run([GOTRACE, "top", "--holders", path]).ok().stdout
    first = re.search(r" pthread_mutex_lock <- lru_pull_tail .*, lru_locks\+\d+\n +([\d.]+)% .*\(worker_libevent\), by item_cachedump: running$", report, re.M)
    assert first and float(first[1]) > 50, report
    later = tmp_path / "later.out"  # connections are accepted before
    proc.run([GOTRACE, "cut", "--from=1s", "-o", later, path]).ok()
    for trace_of in path, later:
        said = json.loads(proc.run([GOTRACE, "why", "--json", trace_of]).ok().stdout)
        (convoy,) = (f for f in said["findings"] if f["finding"] == "convoy")
        assert re.search(r"queue for the lock lru_locks\+\d+, ", convoy["text"]) and "item_cachedump" in convoy["text"], convoy
        assert said["read_as"] == "server", said
