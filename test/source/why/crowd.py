"""130 threads wait for a byte from a pipe each, which the first thread writes."""

import os
import threading

ends = [os.pipe() for _ in range(130)]
threads = [threading.Thread(target=os.read, args=(end, 1)) for end, _ in ends]
for thread in threads:
    thread.start()
for _, end in ends:
    os.write(end, b"x")
for thread in threads:
    thread.join()
