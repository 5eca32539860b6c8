"""Two threads wake each other through queues, whose waiters take locks that other threads release, and by such a lock itself."""

import queue, threading
from locks import address, is_asleep
there, back, signal = queue.Queue(), queue.Queue(), threading.Lock()
wants = None
def until_it_waits(what):
    while wants != what or not is_asleep(threads[1]): pass
def serve():
    for _ in range(60):
        item = there.get()
        until_it_waits("item")
        back.put(item)
        until_it_waits("signal")
        signal.release()
def want():
    global wants
    signal.acquire()
    for i in range(60):
        there.put(i)
        wants = "item"
        back.get()
        wants = "signal"
        signal.acquire()
threads = threading.Thread(target=serve, name="server"), threading.Thread(target=want, name="wanter")
for t in threads: t.start()
for t in threads: t.join()
print(address(there.mutex), address(back.mutex), address(signal))
