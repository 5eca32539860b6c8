"""Four threads hash buffers on one CPU, without the interpreter's lock, for which they wait three times. Prints how much of its time the last of them had no CPU, in percent."""

import hashlib
import os
import threading


def digest_part():
    for i in range(60):
        if i % 20 == 0:
            barrier.wait()
            sum(range(500000))
        hashlib.sha256(data).digest()
    with open("/proc/thread-self/schedstat") as stat:
        times.append([int(word) for word in stat.read().split()[:2]])


os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
data = bytes(4 << 20)
times = []
barrier = threading.Barrier(4)
threads = [threading.Thread(target=digest_part) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(100 * times[-1][1] // sum(times[-1]))
