"""A thread prints the arguments. The status is 3."""

import sys, threading
t = threading.Thread(target=print, args=(sys.argv[1:],))
t.start()
t.join()
sys.exit(3)
