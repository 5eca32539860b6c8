"""What the library keeps of a program that runs for months does not grow with it: what it says of its memory holds.

Old ones are given back by eras (encoder/base/era.h). CHURN=long makes as many as a program makes in months; what is
written then goes nowhere, but to a reader that throws it away.
"""

import os
import random
import shutil
import subprocess

import pytest

from lib import PROGRAMS, gotools, proc

pytestmark = pytest.mark.beside

CHURN = PROGRAMS / "churn"
LONG = os.environ.get("CHURN") == "long"
SIZES = {  # as in CI; long
    "libraries": (3_000, 1_000_000),
    "stacks": (15_000, 5_000_000),  # in each of two threads
    "alone": (20_000, 1_000_000),
    "names": (60_000, 1_000_000),
    "threads": (3_000, 1_000_000),
    "forks": (100, 10_000),
}
MODES = {
    "ring": {"GOTRACE_MAX_MEM": "1M", "GOTRACE_RING": "1M"},
    "v2": {"GOTRACE_MAX_MEM": "1M", "GOTRACE_FORMAT": "go1.23"},
    "v1": {"GOTRACE_MAX_MEM": "1M", "GOTRACE_FORMAT": "go1.21"},
    "manual": {"GOTRACE_MAX_MEM": "1M", "GOTRACE_START": "manual"},
}
MIB = 1024  # KiB
LIBRARY = """
#include <semaphore.h>
#include <time.h>
static sem_t never;
void outer(void)
{
    sem_timedwait(&never, &(struct timespec){1, 0});
    __asm__ volatile("");
}
"""


def churn(tmp_path, mode, what, *libraries):
    """Its resident memory at each tenth of the way, in KiB, its trace, and the last line on standard error."""
    trace = tmp_path / "t.out"
    sink = None
    if LONG and mode in ("v1", "v2"):
        os.mkfifo(trace)
        sink = proc.spawn(["cat", trace], stdout=subprocess.DEVNULL)
    env = proc.traced_env(trace, MODES[mode])
    result = proc.run([CHURN, what, SIZES[what][LONG], *libraries], env=env, timeout=7000 if LONG else 110).ok()
    if sink:
        proc.stop(sink)
    sizes = [int(line) for line in result.stdout.split()]
    print(what, mode, sizes)
    return sizes, None if sink or mode == "manual" else trace, result.stderr


def check(sizes, trace, said):
    # Of the two eras that there can be each may take twice its share of half a MiB while threads wait.
    assert max(sizes) - sizes[0] < 4 * MIB, sizes
    assert "lost" not in said or "nothing lost" in said, said
    if trace:
        gotools.check(trace)


@pytest.mark.measured
@pytest.mark.limit(7200 if LONG else 120)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("what", ["stacks", "alone", "names", "threads"])
def test_bound(tmp_path, mode, what):
    check(*churn(tmp_path, mode, what))


@pytest.mark.measured
def test_threads_that_wait(tmp_path):
    """One that does nothing else costs 20 KiB at most: a page of its buffer, of its stack, and what the library knows of it."""
    threads = 3_000
    bare = proc.run([CHURN, "idle", threads], timeout=60).ok().stdout.split()
    traced = proc.run([CHURN, "idle", threads], env=proc.traced_env(tmp_path / "t.out"), timeout=60).ok().stdout.split()
    more, less = (int(sizes[-1]) - int(sizes[1]) for sizes in (traced, bare))
    assert (more - less) / (threads * 0.8) < 20, (traced, bare)


@pytest.mark.measured
@pytest.mark.limit(7200 if LONG else 120)
@pytest.mark.parametrize("mode", MODES)
def test_forks_in_the_middle(tmp_path, mode):
    """What is being given back at a fork is the child's as much as the parent's: both go on."""
    check(*churn(tmp_path, mode, "forks"))
    children = list(tmp_path.glob("t.out.*"))
    assert mode == "manual" or len(children) == SIZES["forks"][LONG]
    for trace in random.sample(children, min(5, len(children))):
        gotools.check(trace)


@pytest.mark.measured
@pytest.mark.limit(7200 if LONG else 120)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("libraries", [1, 2])
def test_libraries_that_come_and_go(tmp_path, mode, libraries):
    """One again and again; or two, that take turns at the same place."""
    names = [tmp_path / f"lib{i}.so" for i in range(libraries)]
    for i, name in enumerate(names):
        proc.compile(LIBRARY, name, "-shared", "-fPIC", f"-DNUMBER={i}")
    check(*churn(tmp_path, mode, "libraries", *names))


CONFINED = """
#include <dlfcn.h>
#include <linux/landlock.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
__attribute__((noinline)) static void wait_in_vain(void)
{
    pthread_cond_timedwait(&never, &mutex, &(struct timespec){1, 0});
    __asm__ volatile("");
}
__attribute__((noinline)) static void descend(unsigned path, int depth)
{
    if (!depth)
        wait_in_vain();
    else if (path & 1)
        descend(path >> 1, depth - 1);
    else
        descend(path >> 1, depth - 1);
    __asm__ volatile("");
}
int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        dlclose(dlopen(argv[i], RTLD_NOW));
    struct landlock_ruleset_attr attr = {.handled_access_fs = LANDLOCK_ACCESS_FS_READ_FILE};
    int rules = syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
    if (rules < 0)
        return 77;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (syscall(SYS_landlock_restrict_self, rules, 0) || access(argv[1], F_OK))
        return 1;
    pthread_mutex_lock(&mutex);
    for (unsigned i = 0; i < 20000; i++)
        descend(i, 24);
    usleep(300000);
    wait_in_vain();
    return 0;
}
"""


@pytest.mark.measured
@pytest.mark.parametrize("format", ["go1.23", "go1.21"])
def test_names_that_cannot_be_read_again(tmp_path, format):
    """Libraries that are gone are forgotten, but no names: files of those that are there are out of reach."""
    names = [tmp_path / f"lib{i}.so" for i in range(100)]
    proc.compile(LIBRARY, names[0], "-shared", "-fPIC")
    for name in names[1:]:
        shutil.copy(names[0], name)
    program = proc.compile(CONFINED, tmp_path / "confined", "-O1", "-g", "-pthread", "-fno-crossjumping")
    env = proc.traced_env(tmp_path / "t.out", {"GOTRACE_MAX_MEM": "1M", "GOTRACE_FORMAT": format})
    result = proc.run([program, *names], env=env, timeout=60)
    if result.returncode == 77:
        pytest.skip("this kernel has no Landlock")
    assert result.returncode == 0 and "nothing lost" in result.stderr, result
    gotools.check_all(tmp_path / "t.out")
    if format == "go1.23":
        last = [e.stack for e in gotools.parse(tmp_path / "t.out") if e.is_go("Running", "Waiting")][-1]
        assert [f.func for f in last[:3]] == ["pthread_cond_timedwait", "wait_in_vain", "main"], last
        assert last[1].file.endswith(".c") and last[1].line, last
