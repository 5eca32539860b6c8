/*
 * Allows itself no clock of another thread: a filter makes such calls fail with an errno (first
 * argument), or kills the process (0). With a thread, or alone (0).
 */
#include "burn.h"
static void *busy(void *arg)
{
    pthread_setname_np(pthread_self(), "busy");
    burn(1.5);
    return arg;
}
int main(int argc, char **argv)
{
    int error = atoi(argv[1]), threads = atoi(argv[argc - 1]);
    unsigned answer = error ? SECCOMP_RET_ERRNO | error : SECCOMP_RET_KILL_PROCESS;
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 16, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, answer),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {6, filter};
    pthread_t t;
    if (threads)
        pthread_create(&t, 0, busy, 0);
    else
        prctl(PR_SET_NAME, "busy");
    burn(0.2);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
        return 77;
    burn(1);
    if (threads)
        pthread_join(t, 0);
    else
        for (int i = 0; i < 3000; i++)
            usleep(20);
    return 0;
}
