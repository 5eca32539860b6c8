"""Real programs from the distribution, with and without the library."""

import hashlib
import os
import socket
import subprocess

import pytest

from lib import SOURCES, gotools, proc

pytestmark = pytest.mark.foreign

@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "data"
    with open(path, "wb") as f:
        for i in range(12):
            f.write(hashlib.shake_128(bytes([i])).digest(500_000) * 2)
    return path


def compressed(argv, env, tmp_path, name):
    with open(tmp_path / name, "wb") as out:
        done = subprocess.run(argv, stdout=out, stderr=subprocess.PIPE, env=env, timeout=100)
    digest = hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
    return done.returncode, digest, done.stderr.decode()


@pytest.mark.limit(200)
@pytest.mark.parametrize("argv", [["pigz", "-p", "4", "-c"], ["xz", "-T2", "-0", "-c"]], ids=["pigz", "xz"])
@pytest.mark.long
def test_compressors(tmp_path, data, argv):
    bare = compressed([*argv, data], None, tmp_path, "bare")
    trace = tmp_path / "t.out"
    result = compressed([*argv, data], os.environ | proc.traced_env(trace), tmp_path, "traced")
    assert result[:2] == bare[:2] and bare[0] == 0
    if argv[0] != "xz":  # which closes standard error before it ends
        assert "nothing lost;" in result[2], result[2]
    gotools.check_all(trace)
    assert gotools.pprof(trace).total_count > 0


def test_python_threads(traced):
    bare = proc.run(["/usr/bin/python3", SOURCES / "apps/queues.py"])
    result = traced(["/usr/bin/python3", SOURCES / "apps/queues.py"]).ok()
    assert result.stdout == bare.stdout
    gotools.check_all(result.trace)
    assert len([e for e in gotools.parse(result.trace) if e.is_go("NotExist", "Runnable")]) == 8


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def answers(port, server):
    """Waits until the server answers."""
    proc.until(lambda: proc.run(["redis-cli", "-p", port, "ping"]).stdout.strip() == "PONG", child=server)


@pytest.mark.limit(120)
def test_redis_with_io_threads(tmp_path):
    trace, port = tmp_path / "t.out", free_port()
    argv = ["redis-server", "--port", port, "--io-threads", "4", "--io-threads-do-reads", "yes", "--save", ""]
    with open(tmp_path / "log", "w+") as log:
        server = proc.spawn(argv, env=proc.traced_env(trace), stdout=log, stderr=log, cwd=tmp_path)
        answers(port, server)
        load = ["redis-benchmark", "-p", port, "-n", "5000", "-c", "20", "-P", "16", "-q", "-t", "set,get,lpush"]
        proc.run(load, timeout=60).ok()
        proc.run(["redis-cli", "-p", port, "shutdown", "nosave"])
        assert server.wait(20) == 0
        log.seek(0)
        text = log.read()
    assert "nothing lost;" in text, text
    gotools.check_all(trace)
    names = {e.transition_stack[0].func for e in gotools.parse(trace) if e.is_go("NotExist", "Runnable")}
    assert len(names) >= 2, names  # the io threads' routine and the background jobs'
