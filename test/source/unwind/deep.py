# Stacks of Python, ctypes and C with each other.
import ctypes, json, ssl, threading
@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
def compare(a, b):
    return a[0] - b[0]
values = (ctypes.c_int * 50)(*[i * 37 % 50 for i in range(50)])
ctypes.CDLL(None).qsort(values, 50, 4, compare)
def deep(n):
    return deep(n - 1) + [1] * 100 if n else []
threads = [threading.Thread(target=deep, args=(90,)) for _ in range(4)]
[t.start() for t in threads], [t.join() for t in threads]
json.loads(json.dumps(list(range(10000))))
