"""Python ends daemons when they ask for the interpreter's lock once more."""

import threading, time
def work():
    while True: pass
for _ in range(6): threading.Thread(target=work, daemon=True).start()
time.sleep(0.03)
