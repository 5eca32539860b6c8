# A thread that uses 0.3 s of CPU time, then the same in a child. Each process prints its PID and the ns that its thread has used.
import os, threading, time
def burn():
    while time.thread_time() < 0.3: pass
    print(os.getpid(), time.thread_time_ns(), flush=True)
def both():
    t = threading.Thread(target=burn); t.start(); t.join()
both()
pid = os.fork()
if not pid: both(); os._exit(0)
os.waitpid(pid, 0)
