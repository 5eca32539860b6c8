# Four threads that compute.
import threading
def work():
    s = 0
    for i in range(2000000): s += i * i
threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
