"""A thread computes for 0.6 s in a and 0.2 s in b."""

def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        for i in range(1000):
            i * i
def a(): spin(0.6)
def b(): spin(0.2)
def both():
    a()
    b()
thread = threading.Thread(target=both)
thread.start()
thread.join()
