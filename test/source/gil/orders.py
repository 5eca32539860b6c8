"""Two threads take two locks in different orders, each its first one before the other takes its second. The program tells the
locks, and ends when it reads a line. Argument: Lock or RLock."""

import os, sys, threading
from locks import address
one, other, turns = getattr(threading, sys.argv[1])(), getattr(threading, sys.argv[1])(), threading.Barrier(2)
print(address(one), address(other), flush=True)
def work(first, second):
    with first:
        turns.wait()
        with second: pass
threads = threading.Thread(target=work, args=(one, other)), threading.Thread(target=work, args=(other, one))
for t in threads: t.start()
sys.stdin.readline()
os._exit(0)
