"""Hooks broken on purpose, one after another: the short run of the tests has to fail with each: python3 test/long/mutants.py
[--only=HOOK]

Copies the sources to a folder of their own, breaks one hook there, builds the library as build/mutant/libgotrace.so and runs
tests of the short run on it, by GOTRACE_TEST_BUILD. Prints which test noticed what. Ends with status 1 if one goes unnoticed.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MUTANT = ROOT / "build/mutant"
ROOMS = ["preload", "encoder", "symbolize"]
WAITS, CALLS = "integration/test_waits.py", "integration/test_calls.py"

# hook: the fault, its file, what stands there and what stands there instead, the tests.
MUTANTS = {
    "pthread_mutex_lock": (
        "a wait says it is another call's", "sync_mutex.c",
        "gt_wait_begin_lock(hook, GT_LOCK_MUTEX,", "gt_wait_begin_lock(GT_HOOK_pthread_mutex_timedlock, GT_LOCK_MUTEX,", WAITS,
    ),
    "pthread_mutex_unlock": (
        "nobody is said to be woken", "sync_mutex.c",
        "if (awaited && gt_registry_any(mutex))", "if (0 && gt_registry_any(mutex))", WAITS,
    ),
    "pthread_cond_wait": (
        "the reason is another one", "sync_cond.c",
        "gil ? GT_REASON_SYNC : GT_REASON_COND", "GT_REASON_SYNC", WAITS,
    ),
    "pthread_rwlock_rdlock": (
        "a wait is not recorded", "sync_rwlock.c",
        "if (!must_wait(lock, r))", "if (1 || !must_wait(lock, r))", WAITS,
    ),
    "sem_post": (
        "nobody is said to be woken", "sync_sem.c",
        "gt_registry_any(sem) || gt_shared", "(0 && gt_registry_any(sem)) || gt_shared", WAITS,
    ),
    "sem_wait": (
        "it is no cancellation point where there is a token", "sync_sem.c",
        "    if (tests)\n        pthread_testcancel();\n", "    (void)tests;\n", WAITS,
    ),
    "pthread_barrier_wait": (
        "it returns 0 to all threads", "sync_barrier.c",
        ".final = true});\n    return gt_real.pthread_barrier_wait(barrier);", ".final = true});\n    return gt_real.pthread_barrier_wait(barrier), 0;", WAITS,
    ),
    "futex": (
        "a wake-up says it is another call's", "sync_futex.c",
        "struct gt_wake wake = {.hook = leaf,", "struct gt_wake wake = {.hook = (leaf, GT_HOOK_sem_post),", WAITS,
    ),
    "read": (
        "it shows as a wait for the network", "calls.def",
        "GT_READS(fd, buf, ssize_t, read,", "GT_READS(GT_NETWORK, buf, ssize_t, read,", CALLS,
    ),
    "waitpid": (
        "it shows as a wait for the network", "calls.def",
        "GT_CALL(GT_FILE, pid_t, waitpid,", "GT_CALL(GT_NETWORK, pid_t, waitpid,", CALLS,
    ),
    "nanosleep": (
        "that its time was over is not told", "calls.c",
        "if (r == 0)                                                \\\n            gt_wait_expired(&wait, &end);", "if (0)                                                \\\n            gt_wait_expired(&wait, &end);",
        "integration/test_starved.py",
    ),
    "poll": (
        "errno is lost", "calls.c",
        "slice.moved = r; ", "slice.moved = r; errno = 0; ", CALLS,
    ),
}


def build(copy, hook):
    _, name, old, new, _ = MUTANTS[hook]
    (path,) = (copy / "preload").rglob(name)
    text = path.read_text()
    assert text.count(old) == 1, f"{hook}: {name} has {text.count(old)} of: {old}"
    path.write_text(text.replace(old, new))
    try:
        subprocess.run(["make", "-s", "-C", copy, "libgotrace.so"], check=True, capture_output=True, text=True)
    finally:
        path.write_text(text)
    shutil.copy(copy / "libgotrace.so", MUTANT)


def fails(tests):
    """The first of these tests that fails, and why."""
    argv = [sys.executable, "-m", "pytest", "--short", "-q", "-x", "-p", "no:cacheprovider", ROOT / "test" / tests]
    env = os.environ | {"GOTRACE_TEST_BUILD": "build/mutant"}
    said = subprocess.run(argv, env=env, cwd=ROOT, capture_output=True, text=True).stdout
    return re.search(r"^failed: (?:test/)?(.+?): (.*)", said, re.M)


def noticed(tests):
    """As `fails`, of a test that fails again when it runs alone: on a busy machine another one may fail once."""
    found = fails(tests)
    return found and fails(found[1]) and f"{found[1]}: {found[2][:110]}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=MUTANTS)
    only = parser.parse_args().only
    missed = 0
    with tempfile.TemporaryDirectory() as scratch:
        copy = pathlib.Path(scratch)
        for room in ROOMS:
            shutil.copytree(ROOT / room, copy / room)
            shutil.copytree(ROOT / "build" / room, copy / "build" / room)
        (copy / "scripts").mkdir()
        shutil.copy(ROOT / "scripts/CHANGELOG.md", copy / "scripts")
        shutil.copy2(ROOT / "Makefile", copy)
        MUTANT.mkdir(exist_ok=True)
        shutil.copy(ROOT / "libgotrace.so", MUTANT)
        for tests in sorted({mutant[-1] for mutant in MUTANTS.values()}):
            assert not (said := noticed(tests)), f"without a mutant: {said}"
        for hook in [only] if only else MUTANTS:
            build(copy, hook)
            said = noticed(MUTANTS[hook][-1])
            missed += not said
            print(f"{hook}: {MUTANTS[hook][0]}: {said or 'NOT NOTICED'}", flush=True)
    shutil.rmtree(MUTANT)
    print(f"{len([only] if only else MUTANTS) - missed} noticed, {missed} not")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
