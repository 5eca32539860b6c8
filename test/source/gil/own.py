"""A thread waits for a lock of which it is in a block, or seems to be. It is in no deadlock: it has given the lock up there, so
that the main thread has it, or the main thread will release the lock. The argument names what the thread executes. The main
thread says when the thread is there. In comprehensions the interpreter keeps the outer value of a variable, here a lock, on its stack."""

import contextlib, os, sys, threading
from locks import is_asleep
lock, other, given, taken = threading.Lock(), threading.Lock(), threading.Event(), threading.Event()
def pause():
    given.set()
    taken.wait()
def give():
    lock.release()
    pause()
def itself():
    with lock:
        give()
        lock.acquire()
def no_names(operations=(lock.release, pause, lock.acquire)):
    with lock:
        for operation in operations: operation()
@contextlib.contextmanager
def without():
    give()
    yield
    lock.acquire()
def block():
    with lock:
        with without():
            with lock: pass
class Without:
    def __enter__(self):
        lock.__exit__(None, None, None)
        pause()
    def __exit__(self, *_): lock.__enter__()
def at_its_end():
    with lock:
        with Without(): pass
def hand_over():
    with lock:
        given.set()
        with lock: pass
def comprehension():
    kept = lock
    pause()
    def want(_):
        with lock: pass
    return [want(kept) for kept in [other]]
case = globals()[sys.argv[1]]
thread = threading.Thread(target=case, daemon=True)
thread.start()
given.wait()
if case != hand_over: lock.acquire()
taken.set()
while not is_asleep(thread): pass
print(flush=True)
sys.stdin.readline()
os._exit(0)
