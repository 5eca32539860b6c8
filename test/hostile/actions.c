/*
 * actions WAY: what a program may do about signals that another one, which has handlers of its own
 * in their place, might get wrong. Prints what it sees. It has a thread, so it is recorded.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>

#include "../prog/program.h"

sighandler_t bsd_signal(int number, sighandler_t handler);
sighandler_t __sysv_signal(int number, sighandler_t handler);

static void *nothing(void *arg)
{
    return arg;
}

static void on_alarm(int number)
{
    (void)number;
}

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* programs call it nevertheless */

/* siginterrupt(3) says that signal(3) is not to have calls go on. */
static int interrupts(void)
{
    int pipe_of[2];
    char c;
    siginterrupt(SIGALRM, 1);
    signal(SIGALRM, on_alarm);
    alarm(1);
    return pipe(pipe_of) == 0 && read(pipe_of[0], &c, 1) < 0 && errno == EINTR ? 0 : 1;
}

static int default_of(sighandler_t (*set)(int, sighandler_t))
{
    bool asked = set(SIGTERM, on_alarm) == SIG_DFL;
    bool again = set(SIGTERM, SIG_DFL) == on_alarm && set(SIGTERM, SIG_DFL) == SIG_DFL;
    struct sigaction now;
    sigaction(SIGTERM, NULL, &now);
    return asked && again && now.sa_handler == SIG_DFL ? 0 : 1;
}

static int defaults(void)
{
    return default_of(signal) | default_of(ssignal) << 1 | default_of(bsd_signal) << 2 |
           default_of(__sysv_signal) << 3;
}

/* Nothing but what a thread takes that computes and prints: all else fails with EPERM. */
static void confine(void)
{
    static const int allowed[] = {SYS_read,       SYS_write,        SYS_exit,
                                  SYS_exit_group, SYS_futex,        SYS_clock_nanosleep,
                                  SYS_nanosleep,  SYS_rt_sigreturn, SYS_restart_syscall};
    enum { ALLOWED = sizeof allowed / sizeof *allowed };
    struct sock_filter filter[2 * ALLOWED + 2] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    unsigned short n = 1;
    for (int i = 0; i < ALLOWED; i++) {
        filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], 0, 1);
        filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    struct sock_fprog program = {n, filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int confined_is_told(void)
{
    pid_t parent = getpid();
    if (fork() == 0) {
        usleep(200000);
        kill(parent, SIGTERM);
        _exit(0);
    }
    confine();
    for (int i = 0; i < 100; i++)
        usleep(100000);
    return 1;
}

static int confined_faults(void)
{
    confine();
    *(volatile int *)8 = 1; // NOLINT
    return 1;
}

/* The first process of a namespace has no default actions: it lives on. */
static int first(void *unused)
{
    (void)unused;
    RUN_THREADS(1, nothing, NULL);
    if (fork() == 0) {
        kill(1, SIGTERM);
        _exit(0);
    }
    wait(NULL);
    int left = usleep(1000);
    _exit(left == 0 && getpid() == 1 ? 0 : 1);
}

static int of_namespace(void)
{
    enum { BYTES = 1 << 20 };
    int status = 0;
    char *stack = malloc(BYTES);
    pid_t pid = clone(first, stack + BYTES, CLONE_NEWPID | SIGCHLD, NULL);
    if (pid < 0)
        return 77;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

/* As GLib ends a program that has met a fatal error. */
static int breaks(void)
{
#if defined(__x86_64__)
    __asm__ volatile("int3");
#else
    raise(SIGTRAP);
#endif
    return 0;
}

static const struct way {
    const char *name;
    int (*run)(void);
} ways[] = {{"interrupts", interrupts},
            {"defaults", defaults},
            {"confined_is_told", confined_is_told},
            {"confined_faults", confined_faults},
            {"of_namespace", of_namespace},
            {"breaks", breaks}};

int main(int argc, char **argv)
{
    const struct way *way = ways;
    while (argc == 2 && strcmp(way->name, argv[1]) != 0)
        way++;
    RUN_THREADS(1, nothing, NULL);
    return way->run();
}
