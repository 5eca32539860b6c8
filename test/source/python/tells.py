"""What begins each program of test_python.py: `nap` waits, and has told before where: function, file and line of each frame, as Python knows them."""

import json, os, sys, threading, time
def tell(seconds=0.002):
    frame, stack = sys._getframe(1), []
    while frame:
        code = frame.f_code
        stack.append([getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno])
        frame = frame.f_back
    sys.stdout.write(json.dumps(stack) + "\n")
    return seconds
def nap(): time.sleep(tell())
