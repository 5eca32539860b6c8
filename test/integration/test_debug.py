"""Tests that are run again on the library of `make debug`, which ends the program where a rule of concurrency is broken.

unit/debug.c breaks each of those rules that need no interposition; the others are broken here.
"""

import os
import sys

import pytest

from lib import ROOT, proc

DEBUG = ROOT / "build/debug"
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


# The loader's list of modules is looked at by our code: what the program's own function does then, our code does.
CALLS_A_HOOK = """
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static void *volatile block;
static int ready;
int dl_iterate_phdr(int (*fn)(struct dl_phdr_info *, size_t, void *), void *arg)
{
    if (ready)
        HOOK;
    return ((int (*)(int (*)(struct dl_phdr_info *, size_t, void *), void *))dlsym(RTLD_NEXT, "dl_iterate_phdr"))(fn, arg);
}
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
    ready = 1;
    return dlclose(lib);
}
"""


@pytest.mark.parametrize("hook", ["block = malloc(1)", "usleep(1)"])
def test_our_code_calls_no_hook(tmp_path, hook):
    flags = f"-DHOOK={hook}", "-D_GNU_SOURCE", "-rdynamic"
    program = proc.compile(CALLS_A_HOOK, tmp_path / "program", *flags)
    env = proc.traced_env(tmp_path / "t.out")
    proc.run([program], env=env).ok()
    result = proc.run([program], env=env | {"LD_PRELOAD": str(DEBUG / "libgotrace.so")})
    assert "rule broken: our code calls no hook of ours" in result.stderr, result
    assert result.returncode == -5, result  # SIGTRAP
