/*
 * Loads and unloads libraries, allows itself no file any more, and waits with 20,000 different
 * stacks.
 */
#include <linux/landlock.h>

#include "../../prog/program.h"
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
