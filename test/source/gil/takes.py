"""Two threads take turns with locks: in one function, in one that another function gives the lock up for, and through
Condition, whose own functions take and give up the lock."""

import threading, time
plain, split, inner, turns = threading.Lock(), threading.Lock(), threading.RLock(), threading.Barrier(2)
cond = threading.Condition(inner)
def within():
    with plain: time.sleep(0.002)
def begin(): split.acquire()
def end(): split.release()
def through():
    with cond: time.sleep(0.002)
def work():
    turns.wait()
    for _ in range(30): within()
    turns.wait()
    for _ in range(30):
        begin()
        time.sleep(0.002)
        end()
    turns.wait()
    for _ in range(30): through()
threads = [threading.Thread(target=work) for _ in range(2)]
for t in threads: t.start()
for t in threads: t.join()
