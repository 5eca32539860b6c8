"""A thread calls C for 40 ms at a time and keeps the interpreter's lock. Another one tells how late it gets the lock back after naps."""

import ctypes, threading, time
libc = ctypes.PyDLL(None)
late = []
def keep():
    while len(late) < 5:
        libc.usleep(40000)
        time.sleep(0.01)
def nap():
    while len(late) < 5:
        begin = time.monotonic()
        time.sleep(0.005)
        late.extend(s for s in [time.monotonic() - begin - 0.005] if s > 0.02)
threads = threading.Thread(target=keep, name="keeper"), threading.Thread(target=nap, name="napper")
for t in threads: t.start()
for t in threads: t.join()
print(*late)
