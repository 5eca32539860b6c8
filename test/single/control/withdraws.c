/* Lets a filter kill it for membarrier(2). */
#include "../../prog/program.h"
#include "naps.h"

int main(void)
{
    pthread_t t;
    pthread_create(&t, NULL, wait_for_ever, NULL);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        syscall(SYS_seccomp, 1, 1, FILTER_OF(SYS_membarrier, SECCOMP_RET_KILL_PROCESS)))
        return 1;
    puts("");
    fflush(stdout);
    naps();
}
