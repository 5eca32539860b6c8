"""A thread that sleeps. A test names the line."""

import threading, time
def work():
    time.sleep(0.05) # line 5
t = threading.Thread(target=work)
t.start()
t.join()
