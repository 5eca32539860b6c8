# Two threads need the interpreter's lock after each of 20 naps. Another one calls C for 30 ms at a
# time, and keeps the lock.
import ctypes, os, threading, time
libc = ctypes.PyDLL(None)
def keep():
    while True:
        libc.usleep(30000)
        time.sleep(0.001)
def nap():
    for _ in range(20): time.sleep(0.002)
threads = [threading.Thread(target=nap) for _ in range(2)]
for t in threads: t.start()
threading.Thread(target=keep, daemon=True).start()
for t in threads: t.join()
os._exit(0)
