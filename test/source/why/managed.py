"""Four processes write out a report while they hold a manager's lock: 40 times 10 ms, one after another."""

import multiprocessing
import time


def save():
    time.sleep(0.010)


def begin(its):
    global lock
    lock = its


def task(n):
    time.sleep(0.005)
    with lock:
        save()


if __name__ == "__main__":
    with multiprocessing.Manager() as manager, multiprocessing.Pool(4, begin, (manager.Lock(),)) as pool:
        pool.map(task, range(40), chunksize=1)
