"""A thread waits three times, in a function that another function calls. Prints the process's number."""

import os
import threading
import time


def leaf():
    time.sleep(0.002)


def middle():
    for _ in range(3):
        leaf()


class Worker(threading.Thread):
    def run(self):
        middle()


worker = Worker()
worker.start()
worker.join()
print(os.getpid())
