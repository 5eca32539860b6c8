"""Four threads price orders with a rate, which the one that finds it stale asks a thread of this process for, by a socket, with the
rate's lock held. Prints how long that took, and how long all took, in ns."""

import hashlib
import socket
import threading
import time

ANSWER_S, FRESH_S, ORDERS = 0.12, 0.2, 2400

lock = threading.Lock()
orders = list(range(ORDERS))
fetched = asked = 0


def rate_server(connection):
    while connection.recv(64):
        time.sleep(ANSWER_S)
        connection.sendall(b"1.08\n")


def fetch_rate():
    global fetched, asked
    begin = time.perf_counter_ns()
    near.sendall(b"EURUSD\n")
    near.recv(64)
    fetched = time.perf_counter_ns()
    asked += fetched - begin


def get_rate():
    with lock:
        if time.perf_counter_ns() - fetched > FRESH_S * 1e9:
            fetch_rate()


def price_order(order):
    price = str(order).encode()
    for _ in range(1500):
        price = hashlib.sha256(price).digest()


def worker():
    while orders:
        order = orders.pop()
        get_rate()
        price_order(order)


listener = socket.create_server(("127.0.0.1", 0))
near = socket.create_connection(listener.getsockname())
server = threading.Thread(target=rate_server, args=(listener.accept()[0],), daemon=True)
server.start()
begin = time.perf_counter_ns()
threads = [threading.Thread(target=worker) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(asked, time.perf_counter_ns() - begin)
