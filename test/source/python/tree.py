"""Waits in a tree of calls, in lines far from each other: a comment "N lines" stands for so many that are empty."""

def f():
    nap()
def g():
    f()
class Class:
    def __init__(self):
        nap()
    def method(self):
        for x in self.generator():
            g()
    def generator(self):
        nap()
        yield 1

        nap(
        )
        yield 2
g()
Class().method()
sorted([2, 1],
       key=lambda x: (g(), x)[1])
[f() for i in range(3)]
def long(n):
    for i in range(n):
        nap()
# 300 lines
        x = (i,
             nap(),
# 40 lines
             nap())
long(2)
def deferred():
    try:
        raise ValueError
    except ValueError:
        with open(__file__) as file:
            nap()
    finally:
        nap()
deferred()
