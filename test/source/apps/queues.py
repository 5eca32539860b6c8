# Threads of Python with a queue.
import threading, queue
q, out = queue.Queue(), []
def work():
    while (x := q.get()) is not None:
        out.append(x * x)
threads = [threading.Thread(target=work) for _ in range(8)]
for t in threads: t.start()
for i in range(20000): q.put(i)
for t in threads: q.put(None)
for t in threads: t.join()
print(sum(out))
