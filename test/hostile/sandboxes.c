/*
 * Gives up all access to files by landlock(7) and then lets a thread wait; argv[1] names when.
 * 77: the kernel has no Landlock.
 */
#include "../prog/program.h"
#include "../prog/libc.h"

enum { ROUNDS = 20, PAUSE_US = 1000 };

/* What <linux/landlock.h> calls LANDLOCK_ACCESS_FS_…, since Linux 5.13. */
enum {
    EXECUTE = 1 << 0,
    WRITE_FILE = 1 << 1,
    READ_FILE = 1 << 2,
    READ_DIR = 1 << 3,
    REMOVE_FILE = 1 << 5,
    MAKE_REG = 1 << 8,
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int given;

__attribute__((noinline)) static void await_all(void)
{
    pthread_mutex_lock(&mutex);
    while (given < ROUNDS)
        pthread_cond_wait(&cond, &mutex);
    pthread_mutex_unlock(&mutex);
}

static void *give(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        usleep(PAUSE_US);
        pthread_mutex_lock(&mutex);
        given++;
        pthread_cond_signal(&cond);
        pthread_mutex_unlock(&mutex);
    }
    return arg;
}

static void work(void)
{
    pthread_t thread;
    given = 0;
    pthread_create(&thread, NULL, give, NULL);
    await_all();
    pthread_join(thread, NULL);
}

static void confine(uint64_t rights)
{
    int rules = (int)syscall(SYS_landlock_create_ruleset, &rights, sizeof rights, 0);
    if (rules < 0)
        _exit(77);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    printf("confined: %ld\n", syscall(SYS_landlock_restrict_self, rules, 0));
    close(rules);
}

/* Step by step, as xz does. */
static void sandbox(void)
{
    confine(EXECUTE);
    confine(WRITE_FILE | MAKE_REG | REMOVE_FILE);
    confine(READ_FILE | READ_DIR);
    printf("open: %d %d\n", open("/proc/self/exe", O_RDONLY),
           open("new", O_WRONLY | O_CREAT, 0600));
    fflush(stdout);
}

static int in_child(void)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        sandbox();
        work();
        exit(0);
    }
    waitpid(child, &status, 0);
    return status ? WEXITSTATUS(status) : 0;
}

int main(int argc, char **argv)
{
    const char *when = argc > 1 ? argv[1] : "";
    if (strcmp(when, "child") == 0)
        return in_child();
    if (strcmp(when, "late") == 0)
        work();
    sandbox();
    if (strcmp(when, "alone") == 0)
        usleep(PAUSE_US);
    else
        work();
    if (strcmp(when, "closed") == 0) /* as gnulib programs end */
        close(STDERR_FILENO);
    return 0;
}
