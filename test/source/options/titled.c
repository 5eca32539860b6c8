/* Children that are traced when their parent, or they themselves, have become a title. */
#include "../../prog/program.h"

static void *nothing(void *arg)
{
    return arg;
}

int main(int argc, char **argv)
{
    char *name = strrchr(argv[0], '/') + 1;
    memset(name, 'x', strlen(name)); /* as long as the environment behind it, in real ones */
    memcpy(name, "a/b [c]", 7);
    prctl(PR_SET_NAME, "t/i [t]");
    if (fork() == 0) {
        pthread_t t;
        RUN_THREADS(1, nothing, NULL);
        return 0;
    }
    if (argc > 1)
        execl(argv[1], "/some where/n[e]w", "4", (char *)0);
    return wait(0) < 0;
}
