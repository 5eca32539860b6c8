"""Tasks in four processes take 5 ms each, and then 10 ms with a lock that all of them need: 40 times, one after another."""

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor, as_completed


def begin(its):
    global lock
    lock = its


def compact():
    time.sleep(0.010)


def task(n):
    time.sleep(0.005)
    with lock:
        compact()


if __name__ == "__main__":
    with ProcessPoolExecutor(4, initializer=begin, initargs=(multiprocessing.Lock(),)) as pool:
        for done in as_completed([pool.submit(task, n) for n in range(40)]):
            done.result()
