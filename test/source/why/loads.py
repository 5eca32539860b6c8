"""Ten threads sleep 20 ms each. Each is waited for before the next one is made."""

import threading
import time


def load():
    time.sleep(0.02)


for _ in range(10):
    thread = threading.Thread(target=load)
    thread.start()
    thread.join()
