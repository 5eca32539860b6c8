/* Asks for snapshots to a FIFO that nobody reads, and to files, in the folder that it is given. */
#include "../../prog/program.h"
#include "../../../preload/gotrace.h"

static void *nothing(void *arg)
{
    return arg;
}

/* The path is gone when it returns. */
static void snapshot(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    printf("%s: %s\n", name, strerror(gotrace_snapshot(*name == 'f' ? NULL : path)));
    memset(path, 'x', sizeof path);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    RUN_THREADS(1, nothing, NULL);
    snapshot(argv[1], "fifo");
    snapshot(argv[1], "second");
    getchar();
    snapshot(argv[1], "third");
    return argc < 2;
}
