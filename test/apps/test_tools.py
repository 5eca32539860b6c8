"""Tools that share their data between threads and between processes: git, SQLite."""

import hashlib
import shutil

import pytest

from lib import SOURCES, apps, proc

pytestmark = pytest.mark.foreign

# --- SQLite

@pytest.mark.limit(90)
@pytest.mark.parametrize("journal", ["wal", "delete"])
@pytest.mark.long
def test_sqlite_with_many_writers(tmp_path, journal):
    def session(env, cwd):
        result = proc.run(["/usr/bin/python3", SOURCES / "tools/writers.py", journal], env=env, cwd=cwd, timeout=60).ok()
        return result.stdout, result.stderr

    own, *children = apps.same_session(session, tmp_path)
    assert apps.created(own) == 4 and [apps.created(child) for child in children] == [3, 3]
    locks = "sem_wait", "sem_timedwait", "sem_clockwait"
    callers = "PyThread_acquire_lock_timed", "_PySemaphore_Wait"  # the latter from Python 3.13 on
    # Whoever comes early to the barrier, and who joins threads that have much to write.
    for trace in [own, *children]:
        assert sum(apps.waits([trace], locks, above=caller) for caller in callers) > 0


@pytest.mark.limit(60)
def test_sqlite_shells(tmp_path):
    """Processes of one thread leave nothing behind but the first one's trace."""

    def session(env, cwd):
        insert = "pragma busy_timeout = 30000; " + "insert into t select count(*) from t; " * 20
        result = proc.run(["sh", SOURCES / "tools/sqlite.sh", insert], env=env, cwd=cwd).ok()
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


@pytest.mark.limit(90)
def test_git(tmp_path, repository):
    def session(env, cwd):
        where = cwd / "repository"
        shutil.copytree(repository, where)
        result = proc.run(["bash", SOURCES / "tools/use_git"], env={"HOME": cwd} | env, cwd=where, timeout=60).ok()
        return result.stdout, result.stderr

    traces = apps.same_session(session, tmp_path)
    assert apps.waits(traces, "pthread_cond_wait") + apps.waits(traces, "pthread_join") > 0
    assert sum(apps.created(trace) for trace in traces) >= 3 * 4
    assert apps.waits(traces, "poll", kind="net") > 0  # upload-pack
