/*
 * Programs that take away what the tracer lives on: descriptors, file size, memory, threads,
 * rights. argv[1] names the case. Threads lock and wait before and after.
 */
#include "../prog/program.h"
#include "../prog/libc.h"

#include <dirent.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int turn;
static size_t stack_size;

enum { TURNS = 2000 };

static void *partner(void *arg)
{
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < TURNS; i++) {
        while (turn == 0)
            pthread_cond_wait(&cond, &mutex);
        turn = 0;
        pthread_cond_signal(&cond);
    }
    pthread_mutex_unlock(&mutex);
    return arg;
}

/* Two threads take turns. Returns 0, or an errno if there is no second thread. */
static int take_turns(void)
{
    pthread_t thread;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    if (stack_size)
        pthread_attr_setstacksize(&attr, stack_size);
    int r = pthread_create(&thread, &attr, partner, NULL);
    if (r != 0)
        return r;
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < TURNS; i++) {
        turn = 1;
        pthread_cond_signal(&cond);
        while (turn == 1)
            pthread_cond_wait(&cond, &mutex);
    }
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);
    return 0;
}

static void work(void)
{
    int r = take_turns();
    if (r != 0)
        printf("pthread_create: %s\n", strerror(r));
    else
        puts("worked");
}

static void limit(int resource, rlim_t value)
{
    struct rlimit r = {value, value};
    if (setrlimit(resource, &r) != 0)
        perror("setrlimit");
}

/* As daemons of old did. */
static void close_listed(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int found[256], n = 0;
    for (struct dirent *e; (e = readdir(dir)) && n < 256;)
        if (atoi(e->d_name) > 2 && atoi(e->d_name) != dirfd(dir))
            found[n++] = atoi(e->d_name);
    closedir(dir);
    while (n > 0)
        close(found[--n]);
}

static void close_all(void)
{
    for (int fd = 3; fd < 4096; fd++)
        close(fd);
}

/* A file of the program's at every number that could be the tracer's. */
static void occupy(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0600);
    for (int to = 3; to < 2048; to++)
        dup2(fd, to);
}

static void print_size(const char *path)
{
    struct stat st;
    printf("%s: %ld bytes\n", path, stat(path, &st) == 0 ? (long)st.st_size : -1);
}

/* What a worker that is done with its setup needs. */
static const unsigned worker_calls[] = {
    SYS_read,
    SYS_write,
    SYS_futex,
    SYS_exit,
    SYS_exit_group,
    SYS_mmap,
    SYS_munmap,
    SYS_madvise,
    SYS_mprotect,
    SYS_clone,
    SYS_clone3,
    SYS_rt_sigprocmask,
    SYS_rt_sigaction,
    SYS_prlimit64,
    SYS_getrandom,
    SYS_set_robust_list,
    SYS_rseq,
    SYS_sched_yield,
    SYS_fstat,
    SYS_newfstatat,
    SYS_lseek,
    SYS_close,
    SYS_brk,
    SYS_gettid,
    SYS_getpid,
    SYS_rt_sigreturn,
    SYS_sched_getaffinity,
};

/* What a child that only computes needs. */
static const unsigned child_calls[] = {SYS_write, SYS_exit_group};

enum { N_WORKER_CALLS = sizeof worker_calls / sizeof *worker_calls };

/* Confines itself to the system calls in the list; all else has the answer `otherwise`. */
static void confine(const unsigned *calls, int n, uint32_t otherwise)
{
    struct sock_filter filter[2 * N_WORKER_CALLS + 2] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    int k = 1;
    for (int i = 0; i < n; i++) {
        filter[k++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1);
        filter[k++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    filter[k++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, otherwise);
    struct sock_fprog program = {(unsigned short)k, filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        perror("seccomp");
}

/* As sandboxes do, by the one call or the other. */
static void confine_children(void)
{
    for (int i = 0; i < 3; i++) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) {
            if (i == 0)
                confine(child_calls, 2, SECCOMP_RET_KILL_PROCESS);
            else if (i == 1)
                confine(child_calls, 2, SECCOMP_RET_TRAP);
            else
                syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL);
            ssize_t written = write(STDOUT_FILENO, "confined\n", 9);
            if (i < 2)
                _exit((int)written);
            syscall(SYS_exit, 9); /* all that strict mode allows */
        }
        waitpid(child, &status, 0);
        printf("child %d: %x\n", i, (unsigned)status);
    }
}

/* A trace has its name when something is in it. How long that takes is not printed. */
static void unlink_it(const char *path)
{
    while (unlink(path) != 0 && getenv("GOTRACE_OUTPUT"))
        take_turns();
    printf("unlink: %d\n", access(path, F_OK) != 0);
}

/* The trace is made out here: once its first part is written, it stays where it is. */
static void leave(const char *root)
{
    const char *trace = getenv("GOTRACE_OUTPUT");
    while (trace && access(trace, F_OK) != 0)
        take_turns();
    printf("chroot: %d %d\n", chroot(root), chdir("/"));
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "", *path = argc > 2 ? argv[2] : "";
    setvbuf(stdout, NULL, _IONBF, 0);
    if (strcmp(what, "early-unshare") == 0) /* only a single-threaded process may */
        printf("unshare: %d\n", unshare(CLONE_NEWUSER | CLONE_NEWNS));
    else if (strcmp(what, "file-size") == 0) /* before more than that is written */
        limit(RLIMIT_FSIZE, 8192);
    else if (strcmp(what, "early-seccomp") == 0)
        confine(worker_calls, N_WORKER_CALLS, SECCOMP_RET_KILL_PROCESS);
    else
        work();
    if (strcmp(what, "closefrom") == 0)
        closefrom(3);
    else if (strcmp(what, "close_range") == 0)
        close_range(3, ~0u, 0);
    else if (strcmp(what, "close-listed") == 0)
        close_listed();
    else if (strcmp(what, "close-all") == 0)
        close_all();
    else if (strcmp(what, "occupy") == 0)
        occupy(path);
    else if (strcmp(what, "few-files") == 0)
        limit(RLIMIT_NOFILE, 4);
    else if (strcmp(what, "unlink") == 0)
        unlink_it(path);
    else if (strcmp(what, "chroot") == 0)
        leave(path);
    else if (strcmp(what, "setuid") == 0)
        printf("setuid: %d %d\n", setgid(65534), setuid(65534));
    else if (strcmp(what, "seccomp") == 0)
        confine(worker_calls, N_WORKER_CALLS, SECCOMP_RET_ERRNO | EPERM);
    else if (strcmp(what, "seccomp-kills") == 0)
        confine(worker_calls, N_WORKER_CALLS, SECCOMP_RET_KILL_PROCESS);
    else if (strcmp(what, "seccomp-children") == 0)
        confine_children();
    else if (strcmp(what, "no-threads") == 0) {
        setuid(65534);
        limit(RLIMIT_NPROC, 1);
    } else if (strcmp(what, "small-stacks") == 0)
        stack_size = PTHREAD_STACK_MIN;
    else if (strcmp(what, "memory") == 0)
        limit(RLIMIT_AS, 1);
    else if (strcmp(what, "locked") == 0)
        printf("mlockall: %d\n", mlockall(MCL_CURRENT | MCL_FUTURE));
    for (int i = 0; i < 20; i++)
        work();
    if (strcmp(what, "occupy") == 0)
        print_size(path);
    return 3;
}
