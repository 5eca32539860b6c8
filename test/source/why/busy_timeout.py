"""Four threads write to one SQLite database, in rounds: SQLite is not fair, so each of them has one transaction of 5 ms in a round.
Who finds the database locked is in SQLite's busy handler, which sleeps and tries again."""

import sqlite3
import sys
import threading
import time

path = sys.argv[1]
together = threading.Barrier(4)


def change_rows():
    time.sleep(0.005)


def write_rows():
    db = sqlite3.connect(path, timeout=60, isolation_level=None)
    db.execute("PRAGMA synchronous=OFF")
    for i in range(20):
        together.wait()
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT INTO rows VALUES (?)", (i,))
        change_rows()
        db.execute("COMMIT")
    db.close()


sqlite3.connect(path).execute("CREATE TABLE rows (number)").connection.commit()
threads = [threading.Thread(target=write_rows) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
