"""A server under load for long, 64 connections coming and going: flat memory, nothing lost, a trace that opens."""

import os
import random
import re
import socket
import time

import pytest

from lib import apps, proc

pytestmark = pytest.mark.long

SECONDS = float(os.environ.get("SOAK_MINUTES", "0.2")) * 60  # the claim in test/README.md is 30 minutes
CONNECTIONS = 64
IN_FLIGHT = 16
ROUNDS_PER_SECOND = 50


def rss_kib(pid):
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(r"VmRSS:\s+(\d+) kB", status.read())[1])


class Client:
    """Connections to a memcached; each lives for some 20 requests."""

    def __init__(self, port):
        self.port, self.random, self.requests, self.opened = port, random.Random(1), 0, 0
        self.sockets = [self.connect() for _ in range(CONNECTIONS)]

    def connect(self):
        self.opened += 1
        return socket.create_connection(("127.0.0.1", self.port), 30)

    def round(self):
        """Some connections ask at the same time, and are answered."""
        asking = self.random.sample(range(CONNECTIONS), IN_FLIGHT)
        values = [b"%d" % self.random.randrange(1 << 60) * 20 for _ in asking]
        for i, value in zip(asking, values):
            self.sockets[i].sendall(b"set %d 0 0 %d\r\n%s\r\nget %d\r\n" % (i, len(value), value, i))
        for i, value in zip(asking, values):
            expected = b"STORED\r\nVALUE %d 0 %d\r\n%s\r\nEND\r\n" % (i, len(value), value)
            answer = b""
            while len(answer) < len(expected):
                part = self.sockets[i].recv(65536)
                assert part, f"the server hung up after {answer}"
                answer += part
            assert answer == expected
            self.requests += 2
            if self.random.random() < 1 / 20:
                self.sockets[i].close()
                self.sockets[i] = self.connect()

    def close(self):
        for s in self.sockets:
            s.close()


@pytest.mark.measured
@pytest.mark.limit(2 * SECONDS + 120)
def test_soak(tmp_path, record_property):
    port, log, trace = apps.free_port(), tmp_path / "log", tmp_path / "t.out"
    user = ["-u", "root"] if os.geteuid() == 0 else []
    argv = ["memcached", "-t", "4", "-l", "127.0.0.1", "-p", port, *user]
    sizes = []
    with apps.server(argv, log, lambda: apps.listens(port), env=proc.traced_env(trace)) as child:
        client, begin = Client(port), time.monotonic()
        while (now := time.monotonic() - begin) < SECONDS:
            client.round()
            if now >= len(sizes) * SECONDS / 100:
                sizes.append(rss_kib(child.pid))
            time.sleep(1 / ROUNDS_PER_SECOND)  # other tests may run beside it
        client.close()
    (path,) = apps.check_traces(trace, log.read_text())
    figures = {
        "requests": client.requests,
        "connections": client.opened,
        "rss KiB": sizes[:: max(1, len(sizes) // 20)],
        "trace bytes": path.stat().st_size,
        "exit line": log.read_text().strip(),
    }
    record_property("soak", figures)
    print(figures)
    # The server's buffers, our tables of stacks and names, and the symbols, have been filled by then.
    warm = sizes[len(sizes) // 4 :]
    first, second = warm[: len(warm) // 2], warm[len(warm) // 2 :]
    assert max(second) <= max(first) + 256, figures
    assert apps.waits([path], "epoll_wait", above="event_base_loop", kind="net") > client.requests / IN_FLIGHT / 4
