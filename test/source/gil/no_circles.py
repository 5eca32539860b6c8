"""One thread wants a lock. Its block seems to be that of a thread which executes the function that the argument names, and the
two seem to wait in a circle. But the thread has left the block, and the main thread has the lock (left). Or the thread waits
in its block, with a timeout, or sleeps (timed, sleeps). Or it gave the lock up in Condition.wait and wants it again, while the
main thread has it (gives_up). Or it never had the lock: a comprehension keeps it on the interpreter's stack, as the outer value
of a variable, and the main thread has it (keeps). The main thread says when both are there."""

import os, sys, threading, time
from locks import is_asleep
one, other, turns, go, there = threading.Lock(), threading.Lock(), threading.Barrier(3), threading.Event(), []
changed = threading.Condition(one)
def meet():
    turns.wait()
    go.wait()
    there.append(1)
def left():
    with one: pass
    meet()
    with other: pass
def timed():
    with one:
        meet()
        other.acquire(timeout=600)
def sleeps():
    with one:
        meet()
        time.sleep(600)
def gives_up():
    with one:
        turns.wait()
        there.append(1)
        changed.wait()
def keeps():
    lock = one
    meet()
    def take(lock):
        with lock: pass
    [take(lock) for lock in [other]]
def wants():
    with other:
        meet()
        with one: pass
case = globals()[sys.argv[1]]
threads = [threading.Thread(target=f, daemon=True) for f in (case, wants)]
for t in threads: t.start()
turns.wait()
if case in (left, gives_up, keeps):
    while case == gives_up and not changed._waiters: pass
    one.acquire()
    if case == gives_up: changed.notify()
go.set()
while len(there) < 2 or not all(map(is_asleep, threads)): pass
print(flush=True)
sys.stdin.readline()
os._exit(0)
