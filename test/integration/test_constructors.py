"""The constructor of a plugin may be the whole application; its thread has the loader's lock all the time."""

import pytest

from lib import gotools, proc, reports

PLUGIN = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int in_constructor[2];
static void *work(void *unused)
{
    for (int i = 0; i < 200; i++) {
        pthread_mutex_lock(&m);
        usleep(50);
        pthread_mutex_unlock(&m);
    }
    return unused;
}
static void work_twice(void)
{
    pthread_t t[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, work, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
}
static void *end_beside(void *unused)
{
    char c;
    if (read(in_constructor[0], &c, 1) == 1)
        _exit(3);
    return unused;
}
__attribute__((constructor)) static void application(void)
{
    const char *how = getenv("HOW");
    work_twice();
    if (strcmp(how, "exit") == 0)
        exit(3);
    if (strcmp(how, "_exit") == 0)
        _exit(3);
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "exec") == 0)
        execlp("sh", "sh", "-c", "exit 3", (char *)NULL);
    if (strcmp(how, "fork") == 0 && fork() == 0) {
        work_twice();
        exit(3);
    }
    if (strcmp(how, "fork") == 0) {
        int status;
        wait(&status);
        exit(WEXITSTATUS(status));
    }
    if (strcmp(how, "beside") == 0) {
        pthread_t t;
        if (pipe(in_constructor) != 0)
            exit(1);
        pthread_create(&t, NULL, end_beside, NULL);
        if (write(in_constructor[1], "", 1) != 1)
            exit(1);
        pause();
    }
}
"""
PROGRAM = r"""
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    if (argc < 2 || !dlopen(argv[1], RTLD_NOW))
        fprintf(stderr, "%s\n", dlerror());
    return 3;
}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plugin")
    plugin = proc.compile(PLUGIN, folder / "plugin.so", "-shared", "-fPIC", "-g", "-pthread")
    return [proc.compile(PROGRAM, folder / "program", "-ldl", "-pthread"), plugin]


@pytest.mark.measured
@pytest.mark.parametrize("how", ["exit", "_exit", "abort", "exec", "fork", "beside", "return"])
def test_ends_at_once(built, tmp_path, how):
    bare = proc.run(built, env={"HOW": how})
    result = proc.traced(built, tmp_path / "t.out", env={"HOW": how})
    assert (result.returncode, result.stdout) == (bare.returncode, bare.stdout), result
    assert "could not be written" not in result.stderr and "lost" not in result.stderr.replace("nothing lost", ""), result
    assert result.seconds < bare.seconds + 5, "it waited for our thread, which waited for the loader's lock"
    traces = sorted(tmp_path.glob("t.out*"))
    assert len(traces) == (2 if how == "fork" else 1)
    for trace in traces:
        gotools.check_all(trace)
        slept = [(count, what) for _, count, what in reports.waits(trace, "sleep") if "usleep" in what]
        assert sum(count for count, _ in slept) == 400, "each of two threads slept 200 times"
        assert all("work" in what for _, what in slept), slept
