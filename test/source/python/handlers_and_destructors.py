"""A destructor and a handler of signals nap, each in the middle of other functions."""

import signal
class Dies:
    def __del__(self): nap()
def dies():
    x = Dies()
    return 1
dies()
called = 0
def handler(*_):
    global called
    nap()
    called += 1
signal.signal(signal.SIGALRM, handler)
def alarmed():
    before = called
    signal.setitimer(signal.ITIMER_REAL, 0.001)
    while called == before: pass
    return 2
for i in range(5): alarmed()
