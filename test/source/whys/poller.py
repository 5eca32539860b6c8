"""The first thread computes for 550 ms, and a thread sleeps 100 ms at a time until it is done."""

import threading
import time

stop = False


def poll():
    time.sleep(0.1)


def poller():
    while not stop:
        poll()


def crunch():
    end = time.thread_time() + 0.55
    while time.thread_time() < end:
        sum(range(1000))


thread = threading.Thread(target=poller)
thread.start()
crunch()
stop = True
thread.join()
