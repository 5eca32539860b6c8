"""A producer makes 60 goods, 4 ms each. Two consumers take 30 of them each."""

import threading
import time

ready, goods = threading.Condition(), [0]


def consume():
    for _ in range(30):
        with ready:
            while not goods[0]:
                ready.wait()
            goods[0] -= 1


def produce():
    for _ in range(60):
        time.sleep(0.004)
        with ready:
            goods[0] += 1
            ready.notify()


threads = [threading.Thread(target=consume, name=f"consumer-{i}") for i in range(2)]
threads.append(threading.Thread(target=produce, name="producer"))
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
