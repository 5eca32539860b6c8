"""Runtimes that bring their own threads and locks: Rust, C++20, Go, Java, JavaScript."""

import hashlib
import json
import pathlib

import pytest

from lib import ROOT, apps, gotools, proc

pytestmark = pytest.mark.foreign

HERE = pathlib.Path(__file__).parent


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Compiles a program once."""
    directory, done = tmp_path_factory.mktemp("built"), {}

    def build(name, *argv, env=None):
        if name not in done:
            proc.run([*argv, "-o", directory / name], cwd=HERE, env=env, timeout=180).ok()  # a new Go compiles its library first
            done[name] = directory / name
        return done[name]

    return build


@pytest.fixture
def cxx20(built):
    return built("cxx20", "g++", "-std=c++20", "-g", "-O1", "-pthread", "cxx20.cc")


@pytest.fixture
def rust(built):
    return built("sync", "rustc", "--edition=2021", "-g", "-O", "sync.rs")


@pytest.mark.limit(90)
def test_cxx20(tmp_path, cxx20):
    (trace,) = apps.same([cxx20], tmp_path)
    assert apps.created(trace) == 2 + 1 + 4 + 4 + 4 + 1
    assert apps.waits([trace], "pthread_join", above="std::jthread::~jthread") > 0
    assert apps.waits([trace], "pthread_cond_wait", above="stops") > 0
    for function in "ping_pong", "wide", "semaphores", "rounds":  # some of the lambdas' threads, some of main
        assert apps.waits([trace], "futex wait", above=function) > 0, function
    assert apps.waits([trace], "futex wait", above="std::__atomic_") + apps.waits([trace], "futex wait", above="__platform_wait")
    rwlocks = "pthread_rwlock_rdlock", "pthread_rwlock_wrlock"
    assert apps.waits([trace], rwlocks, above="readers_and_writers") > 0


@pytest.mark.limit(90)
@pytest.mark.needs("rustc")
@pytest.mark.long
def test_rust(tmp_path, rust):
    (trace,) = apps.same([rust], tmp_path)
    assert apps.created(trace) == 4 + 1 + 3 + 1 + 3 + 1
    assert apps.waits([trace], "pthread_join", above="sync::counter") > 0
    for function in "sync::counter", "sync::turns", "sync::channels", "sync::parks", "sync::others":
        assert apps.waits([trace], "futex wait", above=function) > 0, function
    assert apps.waits([trace], "futex wait", above="park") > 0
    threads = json.loads(proc.run([ROOT / "build/gotrace", "info", "--json", trace]).ok().stdout)["by_thread"]
    routines = {row["thread"]["routine"].split("::{")[0] for row in threads}
    assert {"main", "sync::counter", "sync::turns", "sync::channels", "sync::parks"} <= routines, routines


@pytest.fixture
def cgo(built):
    return built("cgo", gotools.compiler(), "-C", "cgo", "build", env={"CGO_ENABLED": 1})


# Go makes its system calls itself, exit_group among them: no exit line, and a last generation that is missing.


@pytest.mark.limit(200)
def test_go_with_cgo(tmp_path, cgo):
    (trace,) = apps.same([cgo], tmp_path, check=apps.check_cut_trace)
    assert apps.waits([trace], "pthread_mutex_lock", above="add") > 10
    assert apps.created(trace) > 4


@pytest.mark.limit(200)
def test_children_of_go_write_beside(tmp_path, cgo):
    trace, *_ = apps.same([cgo, "pwd"], tmp_path, check=lambda trace, _: [trace])
    assert apps.created(trace) > 4


@pytest.mark.limit(90)
@pytest.mark.needs("java")
@pytest.mark.long
def test_java(tmp_path):
    """The JVM compiles the source itself."""
    (trace,) = apps.same(["java", HERE / "Sync.java"], tmp_path)
    for function in "Unsafe_Park", "ObjectMonitor::enter", "ObjectMonitor::wait":
        assert apps.waits([trace], "pthread_cond_wait", above=function) > 0, function
    assert apps.waits([trace], "sem_wait") > 0  # the signal dispatcher
    labels = [e.fields["Label"] for e in gotools.parse(trace) if e.kind == "Label"]
    assert {"player 0", "player 1"} <= set(labels), labels


@pytest.mark.needs("node")
@pytest.mark.limit(90)
def test_node(tmp_path):
    data = tmp_path / "data"
    data.write_bytes(hashlib.shake_128(b"node").digest(500_000))
    (trace,) = apps.same(["node", HERE / "pool.js", data], tmp_path, env={"UV_THREADPOOL_SIZE": 4})
    assert apps.waits([trace], "pthread_cond_wait", above="uv_cond_wait") > 4
    assert apps.waits([trace], ("epoll_wait", "epoll_pwait"), above="uv_run", kind="net") > 0


@pytest.mark.needs("sbcl")
@pytest.mark.limit(90)
def test_sbcl(tmp_path):
    """The collector stops threads by signals, guard pages and timers are signals' business too."""
    argv = ["sbcl", "--noinform", "--non-interactive", "--no-sysinit", "--no-userinit", "--load", HERE / "sync.lisp"]
    (trace,) = apps.same(argv, tmp_path)
    assert apps.created(trace) >= 4 + 1
    assert apps.waits([trace], "futex wait", above="futex_wait") > 0


@pytest.mark.limit(90)
def test_beam(tmp_path):
    traces = apps.same(["escript", HERE / "sync.erl"], tmp_path, env={"ERL_FLAGS": "+S 2:2"})
    (trace,) = [t for t in traces if apps.created(t) >= 2]  # escript forks, and has no threads
    assert apps.waits([trace], "futex wait", above="ethr_event") > 0
    assert apps.waits([trace], ("epoll_wait", "ppoll"), above="erts_poll_wait", kind="net") > 0
