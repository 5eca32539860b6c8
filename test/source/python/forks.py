"""A function that naps in the process, and in a thread of a forked child."""

def f(): nap()
f()
child = os.fork()
threading.Thread(target=f).start() if not child else os.waitpid(child, 0)
