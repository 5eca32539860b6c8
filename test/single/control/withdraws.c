/* Lets a filter kill it for membarrier(2). */
#include "../../prog/program.h"
#include "naps.h"

int main(void)
{
    struct sock_filter kill[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {4, kill};
    pthread_t t;
    pthread_create(&t, NULL, wait_for_ever, NULL);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_seccomp, 1, 1, &filter))
        return 1;
    puts("");
    fflush(stdout);
    naps();
}
