"""A pool of three threads computes in Python: the interpreter's lock lets one of them compute at a time."""

from concurrent.futures import ThreadPoolExecutor


def sum_squares(_):
    total = 0
    for i in range(1000000):
        total += i * i
    return total


with ThreadPoolExecutor(3) as pool:
    list(pool.map(sum_squares, range(24)))
