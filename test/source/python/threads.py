"""Six threads nap 20 times each, three of them in a function that another function calls."""

def work(n):
    for i in range(n):
        nap()
def other(n): work(n)
threads = [threading.Thread(target=(work, other)[i % 2], args=(20,)) for i in range(6)]
for t in threads: t.start()
for t in threads: t.join()
