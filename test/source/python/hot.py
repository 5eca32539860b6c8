"""More rounds than the compiler of 3.14 and 3.15 needs to take a loop for hot. Prints whether there is such a compiler."""

import sys, threading, time
lock = threading.Lock()
def work():
    for _ in range(6000):
        with lock: time.sleep(0.00002)
print(hasattr(sys, "_jit") and sys._jit.is_enabled())
threads = [threading.Thread(target=work) for _ in range(2)]
for t in threads: t.start()
for t in threads: t.join()
