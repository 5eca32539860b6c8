/* Runs a command where perf_event_open(2) is refused, as the default of many containers has it. */
#include "program.h"

int main(int argc, char **argv)
{
    struct sock_fprog *filter = FILTER_OF(SYS_perf_event_open, SECCOMP_RET_ERRNO | EACCES);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (argc < 2 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter) != 0)
        return 77;
    return execvp(argv[1], argv + 1);
}
