"""Threads of a pool wait for work in Python's library: the program tells in which line."""

import concurrent.futures, inspect, time
from concurrent.futures import thread
from locks import is_asleep
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    for _ in range(5):
        pool.submit(time.sleep, 0.005).result()
        while not all(map(is_asleep, pool._threads)): pass
source, first = inspect.getsourcelines(thread._worker)
print(next(first + i for i, line in enumerate(source) if "work_queue.get(block=True)" in line))
