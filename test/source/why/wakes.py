"""Four threads are woken 200 times for one item, and wait again if another one has taken it. Prints how often they were woken,
and how often in vain."""

import threading
import time

ROUNDS, WORKERS = 200, 4
condition = threading.Condition()
left = awaited = waiting = wakes = vain = 0
over = False


def work():
    global left, awaited, waiting, wakes, vain
    with condition:
        while not over:
            waiting += 1
            condition.wait()
            waiting -= 1
            awaited -= 1
            wakes += 1
            vain += not left
            left = 0


threads = [threading.Thread(target=work) for _ in range(WORKERS)]
for thread in threads:
    thread.start()
done = 0
while done <= ROUNDS:
    with condition:
        if not awaited and waiting == WORKERS:
            over = done == ROUNDS
            left, awaited = 1, WORKERS
            done += 1
            condition.notify_all()
    time.sleep(0)
for thread in threads:
    thread.join()
print(wakes - WORKERS, vain - WORKERS + 1)
