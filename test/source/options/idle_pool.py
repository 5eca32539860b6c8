"""Workers of a pool wait for work most of the time."""

import concurrent.futures
import time

with concurrent.futures.ThreadPoolExecutor(3) as pool:
    for _ in range(5):
        list(pool.map(time.sleep, [0.001] * 3))
        time.sleep(0.05)
