# Has two fifths of its CPU, whoever else wants it: where that is allowed it is more urgent than they.
import os, time
try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(2))
except PermissionError:
    pass
while True:
    end = time.monotonic() + 0.002
    while time.monotonic() < end:
        pass
    time.sleep(0.003)
