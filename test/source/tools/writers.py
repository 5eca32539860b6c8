# As many processes as threads in each; every thread writes to one database, over a connection of its own.
import os, sqlite3, sys, threading

PROCESSES, THREADS, ROWS = 2, 3, 40

def write(process, thread):
    db = sqlite3.connect("data.db", timeout=60, isolation_level=None)
    for row in range(ROWS):
        db.execute("begin immediate")
        (n,) = db.execute("select count(*) from t").fetchone()
        db.execute("insert into t values (?, ?, ?, ?)", (n, process, thread, row))
        db.execute("commit")
    db.close()

def threads(work, n):
    all = [threading.Thread(target=work, args=(i,)) for i in range(n)]
    for t in all: t.start()
    for t in all: t.join()

db = sqlite3.connect("data.db", check_same_thread=False)
db.execute("pragma journal_mode = " + sys.argv[1])
db.execute("create table t (n integer primary key, process, thread, row)")
db.commit()
children = []
for process in range(PROCESSES):
    if (pid := os.fork()) == 0:
        threads(lambda i: write(process, i), THREADS)
        sys.stdout.flush()
        os._exit(process + 5)
    children.append(pid)
print([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children])
print(db.execute("select count(*), max(n), sum(process), sum(thread), sum(row) from t").fetchall())
print(db.execute("pragma integrity_check").fetchall())

# one connection in all threads: SQLite's own mutex
begin = threading.Barrier(4)
def read(i):
    begin.wait()
    for _ in range(50):
        db.execute("select sum(row) from t where thread = ?", (i,)).fetchall()
threads(read, 4)
