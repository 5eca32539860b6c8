"""A recursion as deep as the argument says, whose innermost function sleeps and prints a line before."""

import sys, time
sys.setrecursionlimit(10000)
def work(n):
    if n: work(n - 1)
    print(flush=True)
    time.sleep(600)
work(int(sys.argv[1]))
