# Workers take turns with a lock, in which they sleep, and compute without it. Other threads compute
# now and then. So threads wait for two locks: that one, which costs more, and the interpreter's.
# With an argument, the workers sleep without the lock.
import contextlib, os, sys, threading, time
lock = contextlib.nullcontext() if sys.argv[1:] else threading.Lock()
def fetch():
    time.sleep(0.02)
def lookup():
    with lock:
        fetch()
def compute(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: pass
def work():
    for _ in range(8):
        lookup()
        compute(0.006)
def meanwhile():
    while True:
        compute(0.004)
        time.sleep(0.01)
for _ in range(2): threading.Thread(target=meanwhile, daemon=True).start()
workers = [threading.Thread(target=work, name="worker") for _ in range(4)]
begin = time.monotonic()
for t in workers: t.start()
for t in workers: t.join()
print(time.monotonic() - begin, flush=True)
os._exit(0)
