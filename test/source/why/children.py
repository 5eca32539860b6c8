"""Two threads wait for 12 children of 66 ms each with a time limit: Popen.wait(timeout=) sleeps 1, 2, 4 … 32 and 50 ms, and looks."""

import subprocess
import threading

CHILDREN = 12


def await_child(child):
    child.wait(timeout=10)


def run_children():
    for _ in range(CHILDREN):
        await_child(subprocess.Popen(["/bin/sleep", "0.066"]))


threads = [threading.Thread(target=run_children) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
