"""GOTRACE_MAX_SIZE, GOTRACE_MAX_MEM, GOTRACE_CHILDREN."""

import pytest

from lib import HOSTILE, PROGRAMS, gotools, proc

BUSY = [HOSTILE / "resources", "none"]


@pytest.mark.parametrize("kib", [64, 300, 1000])
def test_max_size(traced, kib):
    """The file comes close to the limit, never above it, and is whole; the program goes on."""
    bare = proc.run(BUSY)
    result = traced(BUSY, env={"GOTRACE_MAX_SIZE": f"{kib}K"})
    assert (result.returncode, result.stdout) == (bare.returncode, bare.stdout)
    assert "stopped at GOTRACE_MAX_SIZE" in result.stderr
    # A buffer of 64 KiB is the least that a busy thread hands over.
    assert kib * 700 - 3 * 65536 < result.trace.stat().st_size <= kib * 1024
    gotools.check_all(result.trace)


def test_max_size_not_reached(traced):
    result = traced([PROGRAMS / "threads", "4"], env={"GOTRACE_MAX_SIZE": "1G"}).ok()
    assert "nothing lost;" in result.stderr


def test_max_mem(traced):
    """Threads wait for a buffer, which is said; nothing is missing."""
    result = traced([PROGRAMS / "yields", "8", "20000"], env={"GOTRACE_MAX_MEM": "1M"}, timeout=60).ok()
    assert "nothing lost" in result.stderr
    gotools.check(result.trace)
    stops = sum(1 for e in gotools.parse(result.trace) if e.is_go("Running", "Runnable"))
    assert stops == 160000


def test_max_mem_of_a_child(tmp_path):
    """What the parent's threads hold does not count."""
    source = """
    #include <pthread.h>
    #include <sched.h>
    #include <sys/wait.h>
    #include <unistd.h>
    static pthread_barrier_t all;
    static void *hold(void *arg) { pthread_barrier_wait(&all); pause(); return arg; }
    static void *work(void *arg) { for (int i = 0; i < 30000; i++) sched_yield(); return arg; }
    int main(void)
    {
        pthread_t t;
        pthread_barrier_init(&all, NULL, 21);
        for (int i = 0; i < 20; i++)
            pthread_create(&t, NULL, hold, NULL);
        pthread_barrier_wait(&all);
        pid_t child = fork();
        if (!child) {
            pthread_create(&t, NULL, work, NULL);
            pthread_join(t, NULL);
            _exit(0);
        }
        waitpid(child, NULL, 0);
        _exit(0);
    }"""
    result = proc.traced([proc.compile(source, tmp_path / "p")], tmp_path / "t.out", env={"GOTRACE_MAX_MEM": "1M"}).ok()
    (line,) = [line for line in result.stderr.splitlines() if "t.out." in line]
    assert "nothing lost;" in line


def test_children_off(tmp_path):
    result = proc.traced([HOSTILE / "forks", "fork"], tmp_path / "t.out", env={"GOTRACE_CHILDREN": "0"}).ok()
    assert [p.name for p in tmp_path.iterdir()] == ["t.out"]
    proc.traced(["sh", "-c", f"{PROGRAMS / 'threads'} 4; true"], tmp_path / "s.out", env={"GOTRACE_CHILDREN": "0"})
    assert not list(tmp_path.glob("s.out.*"))
    gotools.check_all(result.trace)


@pytest.mark.parametrize("value", ["x", "-1", "1T", "1KK", "99999999999999999999", "99999999999G", ""])
def test_bad_sizes(traced, value):
    result = traced([PROGRAMS / "threads", "2"], env={"GOTRACE_MAX_SIZE": value}).ok()
    assert result.stderr.startswith(f"gotrace: GOTRACE_MAX_SIZE={value} is not a number of bytes")
