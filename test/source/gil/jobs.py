"""Four workers wait for each job: the queue's lock goes from the one that gets the job to the next one, which waits again."""

import threading, time
from concurrent.futures import ThreadPoolExecutor
from locks import is_asleep
turns = threading.Barrier(4)
with ThreadPoolExecutor(4) as pool:
    list(pool.map(lambda _: turns.wait() and None, range(4)))
    for _ in range(30):
        while not all(map(is_asleep, pool._threads)): pass
        time.sleep(0.005)
        pool.submit(time.sleep, 0.002)
