"""A thread sleeps 20 ms at a time until a flag stops it, while 50 rows of 8 ms are imported: beats.py thread|main says where."""

import sys
import threading
import time

stop = False


def beat():
    time.sleep(0.02)


def heartbeat():
    while not stop:
        beat()


def import_row():
    time.sleep(0.008)


def importer():
    for _ in range(50):
        import_row()


beats, works = threading.Thread(target=heartbeat), threading.Thread(target=importer)
beats.start()
if sys.argv[1] == "thread":
    works.start()
    works.join()
else:
    importer()
stop = True
beats.join()
