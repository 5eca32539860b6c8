"""What the programs of test_gil.py know of locks and threads."""

import ctypes, sys, threading
def address(lock):
    """Where threads wait for the lock: in its object, or at a semaphore, which the object points to."""
    inside = lock.__sizeof__() < 40 if type(lock) is type(threading.Lock()) else sys.version_info >= (3, 14)
    return hex(id(lock) + 16 if inside else ctypes.c_void_p.from_address(id(lock) + 16).value)
def is_asleep(thread):
    """And not for want of the interpreter's lock, which is free while the file is read."""
    with open(f"/proc/self/task/{thread.native_id}/stat") as file: return file.read().rpartition(")")[2].split()[0] == "S"
