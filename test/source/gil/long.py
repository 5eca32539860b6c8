"""Threads wait for signals for half a second, each for locks that it or another waiting thread has taken."""

import queue, threading, time
jobs, event, changed, signal = queue.SimpleQueue(), threading.Event(), threading.Condition(), threading.Lock()
def notified():
    with changed: changed.wait()
def signalled():
    signal.acquire()
    event.wait()
    signal.release()
threads = [threading.Thread(target=f) for f in (jobs.get, jobs.get, notified, event.wait, signalled)]
for t in threads: t.start()
time.sleep(0.5)
event.set()
for _ in range(2): jobs.put(1)
with changed: changed.notify()
for t in threads: t.join()
