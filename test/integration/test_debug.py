"""Tests that are run again on the library of `make debug`, which ends the program where a rule of concurrency is broken.

unit/debug.c breaks each of those rules that need no interposition; the others are broken here.
"""

import os
import sys

import pytest

from lib import ROOT, proc

DEBUG = ROOT / "build/debug"
pytestmark = pytest.mark.skipif(not os.environ.get("ALL_NEEDS"), reason="second runs on the library of `make debug`: ./scripts/test --all")
AGAIN = {  # file: which of its tests, as pytest's -k says; those that measure time are left out
    "unit": "",
    "integration/test_waits.py": "not percent and not minimum",
    "integration/test_lifecycle.py": "not fork_while",  # there the program's own code waits inside ours
    "integration/test_control.py": "not slowed",
    "integration/test_memory.py": "ring or v1",
    "integration/test_hostile.py": "(forks or jumps or cancels or handlers or stages or urgent) and not each_instruction",
    "apps/test_tools.py": "",
}


TIMED = {"integration/test_lifecycle.py", "integration/test_control.py"}


@pytest.mark.limit(400)
@pytest.mark.parametrize("file", [f if f in TIMED else pytest.param(f, marks=pytest.mark.beside) for f in AGAIN])
def test_again(file):
    argv = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", ROOT / "test" / file]
    env = {"GOTRACE_TEST_BUILD": "build/debug", "PYTEST_XDIST_WORKER": ""}
    result = proc.run([*argv, *(["-k", AGAIN[file]] if AGAIN[file] else [])], env=env, timeout=390)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-2000:]


# Our code makes its system calls by the next library's syscall(2): what that does, our code does.
CALLS_A_HOOK = """
#include <dlfcn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>
int ready;
static void *volatile block;
static __thread volatile int nested;
long syscall(long number, ...)
{
    static long (*next)(long, ...);
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (!next)
        next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    if (ready && !nested) {
        nested = 1;
        HOOK;
        nested = 0;
    }
    return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
"""
UNLOADS = """
#include <dlfcn.h>
#include <pthread.h>
static void *nothing(void *arg)
{
    return arg;
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, nothing, NULL);
    pthread_join(thread, NULL);
    void *lib = dlopen("libm.so.6", RTLD_NOW);
    *(int *)dlsym(RTLD_DEFAULT, "ready") = 1;
    return dlclose(lib);
}
"""


@pytest.mark.parametrize("hook", ["block = malloc(1)", "usleep(1)"])
def test_our_code_calls_no_hook(tmp_path, hook):
    program = proc.compile(UNLOADS, tmp_path / "program", "-D_GNU_SOURCE")
    library = proc.compile(CALLS_A_HOOK, tmp_path / "next.so", f"-DHOOK={hook}", "-D_GNU_SOURCE", "-shared", "-fPIC")
    env = proc.traced_env(tmp_path / "t.out")
    proc.run([program], env=env | {"LD_PRELOAD": f"{env['LD_PRELOAD']} {library}"}).ok()
    result = proc.run([program], env=env | {"LD_PRELOAD": f"{DEBUG / 'libgotrace.so'} {library}"})
    assert "rule broken: our code calls no hook of ours" in result.stderr, result
    assert result.returncode == -5, result  # SIGTRAP
