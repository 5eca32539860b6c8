"""Servers of the distribution under load: the same replies and the same end, bare and traced."""

import collections
import concurrent.futures
import glob
import hashlib
import http.client
import json
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile

import pytest

from lib import BUILD, LIBRARY, apps, gotools, proc

PG_BIN = max(glob.glob("/usr/lib/postgresql/*/bin"), default="/nonexistent", key=lambda path: int(path.split("/")[4]))
ROOT_USER = os.getuid() == 0


@pytest.fixture
def shared():
    """A directory that servers which give up root can write to, and read the library from."""
    with tempfile.TemporaryDirectory(prefix="gotrace-") as name:
        os.chmod(name, 0o777)
        yield pathlib.Path(name)


def in_parallel(work, n):
    with concurrent.futures.ThreadPoolExecutor(n) as pool:
        return list(pool.map(work, range(n)))


# --- nginx: a master, two workers, each with a thread pool that reads the files

def fetch(port, files, times):
    """One keep-alive connection; returns a digest of all that came back."""
    connection, digest = http.client.HTTPConnection("127.0.0.1", port, timeout=30), hashlib.sha256()
    for i in range(times):
        connection.request("GET", f"/{files[i % len(files)]}")
        response = connection.getresponse()
        digest.update(b"%d %s" % (response.status, response.read()))
    connection.close()
    return digest.hexdigest()


@pytest.mark.alone
@pytest.mark.foreign
@pytest.mark.limit(90)
def test_nginx_with_a_thread_pool(shared):
    files = shared / "files"
    files.mkdir(mode=0o755)
    for i in range(8):
        (files / str(i)).write_bytes(hashlib.shake_128(bytes([i])).digest(300_000 + i))

    def session(env, cwd):
        port = apps.free_port()
        argv = apps.nginx(cwd, port, f"sendfile off; output_buffers 1 32k; root {files};")
        with apps.server(argv, cwd / "log", lambda: apps.listens(port), env=env, cwd=cwd, end=signal.SIGQUIT):
            digests = in_parallel(lambda _: fetch(port, [*map(str, range(8)), "missing"], 100), 4)
        return digests, (cwd / "log").read_text()

    master, *workers = apps.same_session(session, shared)
    assert len(workers) == 2  # the master has no threads
    assert all(apps.created(worker) == 4 for worker in workers)
    assert apps.waits(workers, "pthread_cond_wait", above="ngx_thread_cond_wait") > 10
    # The kernel may give all connections to one worker; the other then waits once, to the end.
    assert all(apps.waits([worker], "epoll_wait", kind="net") > 0 for worker in workers)
    assert apps.waits(workers, "epoll_wait", kind="net") > 10


# --- memcached


def memcached_client(port, number, rounds=150):
    digest = hashlib.sha256()
    with socket.create_connection(("127.0.0.1", port), 30) as s, s.makefile("rwb") as f:

        def ask(command):
            f.write(command)
            f.flush()

        for i in range(rounds):
            key, value = b"%d-%d" % (number, i % 50), hashlib.shake_128(b"%d" % i).hexdigest(300).encode()
            ask(b"set %s 0 0 %d\r\n%s\r\n" % (key, len(value), value))
            digest.update(f.readline())
            ask(b"get %s\r\nget missing\r\ndelete %s\r\nincr shared 1\r\n" % (key, key))
            while not (line := f.readline()).strip().isdigit():  # the counter is everybody's
                digest.update(line)
    return digest.hexdigest()


@pytest.mark.alone
@pytest.mark.foreign
@pytest.mark.limit(90)
def test_memcached_with_threads(shared):
    def session(env, cwd):
        port = apps.free_port()
        argv = ["memcached", "-t", "4", "-l", "127.0.0.1", "-p", port, *(["-u", "nobody"] if ROOT_USER else [])]
        with apps.server(argv, cwd / "log", lambda: apps.listens(port), env=env, cwd=cwd):
            with socket.create_connection(("127.0.0.1", port)) as s:
                s.sendall(b"set shared 0 0 1\r\n0\r\n")
                assert s.recv(100) == b"STORED\r\n"
            digests = in_parallel(lambda n: memcached_client(port, n), 8)
            with socket.create_connection(("127.0.0.1", port)) as s:
                s.sendall(b"get shared\r\n")
                counter = s.recv(100)
        assert b"\r\n1200\r\n" in counter
        return digests, (cwd / "log").read_text()

    (trace,) = apps.same_session(session, shared)
    assert apps.created(trace) >= 4
    assert apps.waits([trace], "pthread_cond_wait") > 0
    assert apps.waits([trace], "epoll_wait", above="event_base_loop", kind="net") > 10


# --- PostgreSQL: processes that share memory and semaphores; pgbench has threads


@pytest.mark.alone
@pytest.mark.foreign
@pytest.mark.limit(120)
@pytest.mark.needs(f"{PG_BIN}/initdb")
@pytest.mark.long
def test_postgresql_under_pgbench(shared):
    """All of it runs under the library, as a user who cannot be root."""
    as_user = {"user": "nobody", "group": pwd.getpwnam("nobody").pw_gid, "extra_groups": []} if ROOT_USER else {}
    library = shutil.copy(LIBRARY, shared)  # our checkout may be closed to that user
    benches = []

    def tool(name, *argv, cwd, env=None):
        with open(cwd / name, "w+") as out:
            child = proc.spawn([f"{PG_BIN}/{name}", *argv], env=env, cwd=cwd, stdout=out, stderr=out, **as_user)
            status = child.wait(60)
            out.seek(0)
            text = out.read()
        assert status == 0, f"{child.args}: {status}\n{text}"
        return text

    def session(env, cwd):
        if env:
            env = env | {"LD_PRELOAD": library}
        port = apps.free_port()
        tool("initdb", "-D", cwd / "data", "--no-sync", "-A", "trust", "-U", "bench", cwd=cwd)
        argv = [f"{PG_BIN}/postgres", "-D", cwd / "data", "-p", port, "-k", cwd, "-h", "127.0.0.1", "-F"]
        to = ["-h", "127.0.0.1", "-p", port, "-U", "bench"]

        def ready():
            return proc.run([f"{PG_BIN}/pg_isready", *to]).returncode == 0

        with apps.server(argv, cwd / "log", ready, env=env, end=signal.SIGINT, **as_user):
            tool("pgbench", *to, "-i", "-q", "postgres", cwd=cwd)
            bench = env | {"GOTRACE_OUTPUT": str(cwd / "bench.out")} if env else {}
            load = ["-c", "4", "-j", "2", "-t", "200", "--random-seed=1", "postgres"]
            text = tool("pgbench", *to, *load, cwd=cwd, env=bench)
            benches.append(text)
            query = "select count(*), sum(delta), sum(aid), sum(bid) from pgbench_history"
            sums = tool("psql", *to, "-At", "-c", query, "postgres", cwd=cwd)
        assert "number of transactions actually processed: 800/800" in text
        return sums, (cwd / "log").read_text()

    (postmaster,) = apps.same_session(session, shared)
    assert apps.waits([postmaster], ("select", "epoll_wait"), above="PostmasterMain", kind="net") > 0
    (bench,) = apps.check_traces(shared / "traced/bench.out", benches[1])
    assert apps.created(bench) == 1  # the first of the two is main
    assert apps.waits([bench], "pthread_join") <= 1
    assert apps.waits([bench], ("ppoll", "poll"), kind="net") > 100


UNTIL_SOMEBODY_WAITS = """
DO $$ BEGIN
    WHILE NOT EXISTS (SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock') LOOP
        PERFORM pg_sleep(0.01);
        PERFORM pg_stat_clear_snapshot();
    END LOOP;
    PERFORM pg_sleep(0.2);
END $$"""


@pytest.mark.measured
@pytest.mark.limit(120)
@pytest.mark.needs(f"{PG_BIN}/initdb")
@pytest.mark.long
def test_postgresql_family(shared):
    """gotrace -f: one backend waits for a row that another one holds, for 0.2 s and more; and all others are there.
    Then fifty clients update that row and hold it for 2 ms, one after the other: what they wait for is named."""
    as_user = {"user": "nobody", "group": pwd.getpwnam("nobody").pw_gid, "extra_groups": []} if ROOT_USER else {}
    (shared / "bin").mkdir(mode=0o755)
    command, trace = shutil.copy(BUILD / "gotrace", shared / "bin"), shared / "t.out"
    shutil.copy(LIBRARY, shared)
    port, data = apps.free_port(), shared / "data"
    to = ["-h", "127.0.0.1", "-p", str(port), "-U", "bench"]

    def sql(*commands):
        each = [word for command in commands for word in ("-c", command)]
        return subprocess.Popen([f"{PG_BIN}/psql", *to, "-q", *each, "postgres"], stdout=subprocess.PIPE, text=True)

    def ready():
        return proc.run([f"{PG_BIN}/pg_isready", *to]).returncode == 0

    initdb = [f"{PG_BIN}/initdb", "-D", data, "--no-sync", "-A", "trust", "-U", "bench"]
    assert proc.spawn(initdb, stdout=subprocess.DEVNULL, cwd=shared, **as_user).wait(60) == 0
    argv = [command, "-f", "-o", trace, "--", f"{PG_BIN}/postgres", "-D", data, "-p", port, "-k", shared, "-h", "127.0.0.1", "-F"]
    with apps.server(argv, shared / "log", ready, end=signal.SIGTERM, cwd=shared, **as_user):
        assert sql("CREATE TABLE t (n int)", "INSERT INTO t VALUES (0)").wait(30) == 0
        holds = sql("BEGIN", "UPDATE t SET n = 1", r"\echo held", UNTIL_SOMEBODY_WAITS, "COMMIT")
        assert holds.stdout.readline() == "held\n"
        assert sql("UPDATE t SET n = 2").wait(60) == holds.wait(60) == 0
        (shared / "update").write_text(r"UPDATE t SET n = n + 1 \; SELECT pg_sleep(0.002);")
        load = ["-n", "-f", shared / "update", "-c", "50", "-t", "8", "postgres"]
        proc.run([f"{PG_BIN}/pgbench", *to, *load], timeout=60).ok()
    gotools.check_all(trace)
    said = json.loads(proc.run([command, "why", "--json", trace]).ok().stdout)
    rows = said["path"]["rows"]
    waits = [row for row in rows if row["kind"] not in ("sched", "running")]  # a busy machine adds those without a CPU
    assert said["pieces"] >= 150 and {row["function"] for row in waits[:2]} == {"ProcSleep", "pg_sleep"}, rows
    assert waits[0]["ns"] + waits[1]["ns"] > 0.6 * sum(row["ns"] for row in waits), rows
    events = gotools.parse(trace)
    spans = {}  # where a goroutine waited → (goroutine, from, to)
    begun = {}
    for e in events:
        if e.is_go("Running", "Waiting") and e.stack:
            begun[e.goid] = e.time, {f.func for f in e.stack}
        elif e.is_go("Waiting", "Runnable") and e.goid in begun:
            since, functions = begun.pop(e.goid)
            for function in functions & {"ProcSleep", "pg_sleep"}:
                spans.setdefault(function, []).append((e.goid, since, e.time))
    waiter, since, until = max(spans["ProcSleep"], key=lambda span: span[2] - span[1])
    holder, begin, end = max(spans["pg_sleep"], key=lambda span: span[2] - span[1])
    assert waiter != holder and until - since >= 200e6 and since < begin < end < until
    at = collections.defaultdict(set)  # function → goroutines
    for e in events:
        for f in e.stack or ():
            at[f.func].add(e.goid)
    assert len(at["PostgresMain"]) >= 53 and len(at["CheckpointerMain"]) == 1  # each backend; and on the same timeline


# --- chronyd: one thread, and after the start a seccomp filter that kills


@pytest.mark.alone
@pytest.mark.foreign
@pytest.mark.limit(60)
@pytest.mark.skipif(not ROOT_USER, reason="needs root")
def test_chronyd_confined(shared):
    """Its end is its own; the trace is whole and ends where the filter was set."""

    def run(cwd, env=None):
        cwd.mkdir(mode=0o700)
        settings = ["port 0", "cmdport 0", "bindcmdaddress /", f"pidfile {cwd}/pid", "server 127.0.0.1"]
        argv = ["chronyd", "-d", "-x", "-F", "1", "-f", "/dev/null", "-u", "root", *settings]
        log = cwd / "log"
        with apps.server(argv, log, lambda: "Loaded seccomp filter" in log.read_text(), env=env):
            pass
        return log.read_text()

    assert "gotrace" not in run(shared / "bare")
    text = run(shared / "traced", proc.traced_env(shared / "t.out"))
    assert "gotrace: the program confines itself by seccomp(2): nothing is recorded from here on\n" in text
    assert f"gotrace: {shared / 't.out'}: " in text and "nothing lost" in text
    assert text.index("gotrace: ") < text.index("Loaded seccomp filter")
    gotools.check_all(shared / "t.out")
