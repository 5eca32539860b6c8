"""What test/prog/journals.c does, by Python: journals.py DIRECTORY alone|fork|multiprocessing|subprocess"""

import ctypes
import mmap
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time

THREADS, LINE, AT_ONCE, LIFE = 3, 64, 3, 0.1  # as there; seconds
directory, kind = sys.argv[1:3]
log = ctypes.CDLL(None).gotrace_log
log.argtypes = [ctypes.c_uint64, ctypes.c_char_p, ctypes.c_char_p]


def open_journal():
    with open(f"{directory}/{os.getpid()}", "a+b") as file:
        file.truncate(THREADS * LINE)
        return mmap.mmap(file.fileno(), THREADS * LINE)


def write_logs(journal, thread, over):
    written = ctypes.c_uint64.from_buffer(journal, thread * LINE)  # one store
    pid, n = os.getpid(), written.value
    while not over.is_set():
        n += 1
        log(0, b"journal", f"{pid}:{thread}:{n}".encode())
        written.value = n
        if n % 16 == 0:
            time.sleep(0)


def begin():
    over, journal = threading.Event(), open_journal()
    threads = [threading.Thread(target=write_logs, args=(journal, i, over)) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    return over, threads


def stop(over, threads):
    over.set()
    for thread in threads:
        thread.join()


def live_and_end(can_exec=False):
    running = begin()
    chance = random.Random(os.getpid())
    time.sleep(LIFE * chance.random())
    how = chance.randrange(4 if can_exec else 3)
    if how == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    stop(*running)
    if how == 1:
        os._exit(0)
    if how == 3:
        os.execv(sys.executable, [sys.executable, __file__, directory, "child"])


def fork():
    pid = os.fork()
    if pid == 0:
        live_and_end(can_exec=True)
        os._exit(0)
    return lambda: os.waitpid(pid, 0)


def by_multiprocessing():
    child = multiprocessing.Process(target=live_and_end)
    child.start()
    return child.join


def by_subprocess():
    return subprocess.Popen([sys.executable, __file__, directory, "child"]).wait


def main():
    if kind == "child":
        return live_and_end()
    begin()
    print("ready", flush=True)
    if kind == "alone":
        signal.pause()
    make = {"fork": fork, "multiprocessing": by_multiprocessing, "subprocess": by_subprocess}[kind]
    children = []
    while True:
        children.append(make())
        if len(children) > AT_ONCE:
            children.pop(0)()


main()
