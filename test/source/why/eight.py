"""Eight pieces of work of 30 ms each in a pool of two processes, started as the argument says."""

import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context


def work(n):
    time.sleep(0.030)
    return n


if __name__ == "__main__":
    with ProcessPoolExecutor(2, mp_context=get_context(sys.argv[1])) as pool:
        print(sum(pool.map(work, range(8))))
