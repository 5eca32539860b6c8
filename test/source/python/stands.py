"""Threads that stay where they are, each where it has told: one computes, the others wait, one below functions of C that call Python's."""

import functools, itertools
lock = threading.Lock()
lock.acquire()
class Waiter:
    def wait(self): lock.acquire(tell(True))
    def key(self, _): return self.wait()
    def sort(self): [1, 2].sort(key=self.key)
    def reduce(self): functools.reduce(lambda a, b: self.sort(), [1, 2])
def compute():
    for _ in itertools.repeat(tell()): pass
def nested(n): nested(n - 1) if n else Waiter().wait()
targets = (Waiter().wait, ()), (Waiter().reduce, ()), (compute, ()), (nested, (30,))
for target, args in targets: threading.Thread(target=target, args=args, daemon=True).start()
sys.stdin.readline(tell(-1))
