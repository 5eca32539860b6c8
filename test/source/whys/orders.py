# A program that asks a server of its own, another process, for 150 things of an order one after the other; each answer takes 4 ms. Prints for how
# many ms it waited for answers.
import os
import socket
import time

listener = socket.create_server(("127.0.0.1", 0))
if os.fork() == 0:
    connection, _ = listener.accept()
    while connection.recv(1):
        time.sleep(0.004)
        connection.send(b"x")
    os._exit(0)

waited = 0.0


def load_item(connection):
    global waited
    begin = time.monotonic()
    connection.send(b"x")
    connection.recv(1)
    waited += time.monotonic() - begin


connection = socket.create_connection(listener.getsockname())
for _ in range(150):
    load_item(connection)
connection.close()
os.wait()
print(f"{1000 * waited:.1f}")
