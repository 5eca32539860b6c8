# Each of 30 jobs sleeps for 20 ms with a lock that processes share.
import multiprocessing, time
def begin(shared):
    global lock
    lock = shared
def job(i):
    with lock: time.sleep(0.02)
if __name__ == "__main__":
    lock = multiprocessing.Lock()
    with multiprocessing.Pool(3, begin, [lock]) as pool: pool.map(job, range(30), chunksize=1)
