# Tasks of some 10 µs in a pool of four threads. Prints how many a second, and the 99th percentile of their times in µs.
import concurrent.futures
import hashlib
import time

took = []
def task(i):
    begin = time.perf_counter()
    hashlib.sha256(b"x" * 4096).digest()
    took.append(time.perf_counter() - begin)
begin = time.perf_counter()
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    list(pool.map(task, range(100000)))
print(100000 / (time.perf_counter() - begin), sorted(took)[len(took) * 99 // 100] * 1e6)
