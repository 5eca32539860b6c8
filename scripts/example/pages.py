"""pages.py: 40 pages in a pool of four threads, out of what a service answers in 5 ms; only one thread at a time asks it."""

import concurrent.futures
import threading
import time

session = threading.Lock()


def ask_service(number):
    with session:
        time.sleep(0.005)  # until the answer is there
        return [number * i for i in range(5_000)]


def render(number):
    return "".join(f"<p>{paragraph}</p>\n" for paragraph in ask_service(number))


with concurrent.futures.ThreadPoolExecutor(4) as pool:
    print(sum(map(len, pool.map(render, range(40)))), "characters")
