"""A thousand threads, one after the other, that end at once. Then the program prints a line, and ends when it reads one."""

import threading
for _ in range(1000):
    t = threading.Thread(target=int)
    t.start()
    t.join()
print(flush=True)
input()
