"""Four threads price orders with a rate, which the one that finds it stale asks a thread of this process for, by a socket, with the
rate's lock held. It is stale after so many orders that all askings are too few for a guess at who answers. Prints how long that
took, and how long all took, in ns."""

import hashlib
import socket
import threading
import time

ANSWER_S, FRESH, ORDERS = 0.12, 400, 2400

lock = threading.Lock()
orders = list(range(ORDERS))
left, asked = 0, 0  # for how many orders the rate is fresh


def rate_server(connection):
    while connection.recv(64):
        time.sleep(ANSWER_S)
        connection.sendall(b"1.08\n")


def fetch_rate():
    global asked
    begin = time.perf_counter_ns()
    near.sendall(b"EURUSD\n")
    near.recv(64)
    asked += time.perf_counter_ns() - begin


def get_rate():
    global left
    with lock:
        if left == 0:
            fetch_rate()
            left = FRESH
        left -= 1


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
