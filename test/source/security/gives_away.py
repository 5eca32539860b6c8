"""Secrets in an argument, in the environment, in memory, in a socket, in a file and in the output."""

import os, socket, sys, threading
a, b = socket.socketpair()
secret = sys.argv[1] + os.environ['PASSWORD']
t = threading.Thread(target=lambda: (b.recv(100), open('file-secret', 'w').write(secret)))
t.start()
a.send(secret.encode())
t.join()
print(secret)
