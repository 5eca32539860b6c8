"""Four threads write to one SQLite database: each transaction takes 5 ms. Who finds it locked is in SQLite's busy handler, which
sleeps and tries again. SQLite is not fair, so the threads write until 80 rows are there, and none writes a part of its own at the end."""

import sqlite3
import sys
import threading
import time

path = sys.argv[1]


def change_rows():
    time.sleep(0.005)


def plan_rows():
    time.sleep(0.006)


def write_rows():
    db = sqlite3.connect(path, timeout=60, isolation_level=None)
    db.execute("PRAGMA synchronous=OFF")
    for row in rows:
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT INTO rows VALUES (?)", (row,))
        change_rows()
        db.execute("COMMIT")
        plan_rows()
    db.close()


rows = iter(range(80))
sqlite3.connect(path).execute("CREATE TABLE rows (number)").connection.commit()
threads = [threading.Thread(target=write_rows) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
