"""The keeper finds the lock free each time, and keeps it for 20 ms after the wanter has begun to wait. The wanter tells how
long it has waited for the lock at most. Argument: Lock or RLock."""

import sys, threading, time
from locks import address, is_asleep
lock, turns = getattr(threading, sys.argv[1])(), threading.Barrier(2)
waited, wants = [], False
def keep():
    for _ in range(10):
        with lock:
            turns.wait()
            while not wants or not is_asleep(threads[1]): pass
            time.sleep(0.02)
        turns.wait()
def want():
    global wants
    for _ in range(10):
        turns.wait()
        begin = time.monotonic()
        wants = True
        with lock: waited.append(time.monotonic() - begin)
        wants = False
        turns.wait()
threads = threading.Thread(target=keep, name="keeper"), threading.Thread(target=want, name="wanter")
for t in threads: t.start()
for t in threads: t.join()
print(address(lock), *waited)
