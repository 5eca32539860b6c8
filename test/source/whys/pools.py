"""Python programs that are slow for a known reason: pools.py NAME [half|fixed]. Prints the ns that it took."""

import asyncio
import os
import queue
import signal
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

half, fixed = sys.argv[2:] == ["half"], sys.argv[2:] == ["fixed"]


def sleep(ms):
    time.sleep(ms / (2000 if half else 1000))


def cached():
    """A cache's lock is held while a missing entry is fetched. Fixed: it is fetched before the lock is taken."""
    lock, cache = threading.Lock(), {}

    def fetch_entry(key):
        sleep(10)
        return key

    def look_up(key):
        if fixed:
            cache[key] = fetch_entry(key)
        with lock:
            if key not in cache:
                cache[key] = fetch_entry(key)
            return cache[key]

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(look_up, range(40)))


def pipelined():
    """The second of three stages is slow. Half: that stage takes half as long."""
    first, second = queue.Queue(4), queue.Queue(4)

    def read_page():
        for i in range(60):
            time.sleep(0.001)
            first.put(i)
        first.put(None)

    def parse_page():
        while (item := first.get()) is not None:
            sleep(8)
            second.put(item)
        second.put(None)

    def store_page():
        while second.get() is not None:
            time.sleep(0.002)

    threads = [threading.Thread(target=each) for each in (read_page, parse_page, store_page)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def few_slots():
    """Six threads share two connections. Fixed: there are three."""
    slots = threading.Semaphore(3 if fixed else 2)

    def ask_database(_):
        with slots:
            sleep(10)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(ask_database, range(60)))


def gathered():
    """One part of five that run at once takes five times as long. Half: that part takes half as long."""

    def load_part(i):
        sleep(300) if i == 2 else time.sleep(0.06)

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(load_part, range(5)))


def visited():
    """Three sessions of one event loop ask another process's, which a call of 4 ms blocks for each, and rest 3 ms. Half: the call takes half as long."""
    listener = socket.create_server(("127.0.0.1", 0))

    def render_page():
        sleep(4)

    async def serve(reader, writer):
        while line := await reader.readline():
            render_page()
            writer.write(line)
        writer.close()

    async def run_server():
        server = await asyncio.start_server(serve, sock=listener)
        done = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, done.set)
        await done.wait()
        server.close()

    async def visit():
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        for _ in range(40):
            writer.write(b"x\n")
            await reader.readline()
            await asyncio.sleep(0.003)
        writer.close()

    async def run_visitors():
        await asyncio.gather(visit(), visit(), visit())

    child = os.fork()
    if child == 0:
        asyncio.run(run_server())
        os._exit(0)
    asyncio.run(run_visitors())
    os.kill(child, signal.SIGTERM)
    os.wait()


begin = time.monotonic_ns()
globals()[sys.argv[1]]()
print(time.monotonic_ns() - begin)
