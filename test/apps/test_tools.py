"""Tools that share their data between threads and between processes: git, SQLite."""

import hashlib
import shutil

import pytest

from lib import apps, proc

# --- SQLite

# As many processes as threads in each; every thread writes to one database, over a connection of its own.
WRITERS = """
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
"""


@pytest.mark.foreign
@pytest.mark.limit(90)
@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_sqlite_with_many_writers(tmp_path, journal):
    def session(env, cwd):
        result = proc.run(["/usr/bin/python3", "-c", WRITERS, journal], env=env, cwd=cwd, timeout=60).ok()
        return result.stdout, result.stderr

    own, *children = apps.same_session(session, tmp_path)
    assert apps.created(own) == 4 and [apps.created(child) for child in children] == [3, 3]
    locks = "sem_wait", "sem_timedwait", "sem_clockwait"
    callers = "PyThread_acquire_lock_timed", "_PySemaphore_Wait"  # the latter from Python 3.13 on
    # Whoever comes early to the barrier, and who joins threads that have much to write.
    for trace in [own, *children]:
        assert sum(apps.waits([trace], locks, above=caller) for caller in callers) > 0


@pytest.mark.foreign
@pytest.mark.limit(60)
def test_sqlite_shells(tmp_path):
    """Processes of one thread leave nothing behind but the first one's trace."""

    def session(env, cwd):
        insert = "pragma busy_timeout = 30000; " + "insert into t select count(*) from t; " * 20
        script = f"""
            sqlite3 data.db 'create table t (n)'
            for i in 1 2 3 4; do sqlite3 data.db '{insert}' & done
            wait
            sqlite3 data.db 'select count(*), sum(n); select sum(n), max(n), count(distinct n) from t'
            sqlite3 data.db 'no such thing'; echo $?
        """.replace("count(*), sum(n); ", "")
        result = proc.run(["sh", "-c", script], env=env, cwd=cwd).ok()
        return result.stdout, result.stderr

    assert len(apps.same_session(session, tmp_path)) == 1


# --- git


@pytest.fixture
def repository(tmp_path):
    """Many similar blobs in many commits, loose: work for the delta search."""
    path = tmp_path / "repository"
    stream = []
    for commit in range(40):
        stream.append(f"commit refs/heads/main\ncommitter A <a@b> {1_600_000_000 + commit} +0000\ndata 1\nm\n")
        for i in range(20):
            lines = [hashlib.sha256(b"%d %d" % (i, n + commit)).hexdigest() for n in range(150)]
            text = "\n".join(lines)
            stream.append(f"M 644 inline d{i % 4}/f{i}\ndata {len(text)}\n{text}\n")
    proc.run(["git", "init", "-q", "-b", "main", path]).ok()
    proc.run(["git", "-c", "fastimport.unpackLimit=100000", "fast-import", "--quiet"], cwd=path, stdin="".join(stream)).ok()
    return path


GIT = """
set -ex
git -c pack.threads=4 repack -adfq --depth=20 --window=20
git -c pack.threads=4 gc --quiet --prune=now
git fsck --full --no-dangling
git rev-list --objects --all | sha256sum
git -c grep.threads=4 grep -c 0123 HEAD | sha256sum
git index-pack --threads=4 -o ../copy.idx .git/objects/pack/*.pack >/dev/null # the name: threads pack as they come
cmp ../copy.idx .git/objects/pack/*.idx
git -c checkout.workers=3 -c checkout.thresholdForParallelism=1 clone -q --no-local . ../clone
git -C ../clone -c core.preloadIndex=true status --short
git -C ../clone log --stat -n 3 | sha256sum
git no-such-command || echo $?
"""


@pytest.mark.foreign
@pytest.mark.limit(90)
def test_git(tmp_path, repository):
    def session(env, cwd):
        where = cwd / "repository"
        shutil.copytree(repository, where)
        result = proc.run(["bash", "-c", GIT], env={"HOME": cwd} | env, cwd=where, timeout=60).ok()
        return result.stdout, result.stderr

    traces = apps.same_session(session, tmp_path)
    assert apps.waits(traces, "pthread_cond_wait") + apps.waits(traces, "pthread_join") > 0
    assert sum(apps.created(trace) for trace in traces) >= 3 * 4
    assert apps.waits(traces, "poll", kind="net") > 0  # upload-pack
