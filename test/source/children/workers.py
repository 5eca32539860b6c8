"""A pool of two forked processes."""

import multiprocessing
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(abs, range(-4, 0)))
    pool.close()
    pool.join()
