/*
 * Signals in the middle of everything. argv[1] names the case; the output does not depend on
 * timing.
 */
#include <setjmp.h>
#include <sys/auxv.h>

#include "../prog/program.h"

static sem_t sem;
static int fds[2], sockets[2], null;
static atomic_int handled, failures, stop;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sigjmp_buf out;

static void expect(int ok, const char *what)
{
    if (!ok) {
        failures++;
        dprintf(2, "failed: %s, errno %d\n", what, errno);
    }
}

/* Every async-signal-safe call that is interposed and does not block here. */
static void safe_calls(int signal)
{
    int saved = errno;
    char c = 1;
    (void)signal;
    handled++;
    expect(sem_post(&sem) == 0, "sem_post");
    expect(write(null, &c, 1) == 1, "write");
    expect(send(sockets[0], &c, 1, MSG_DONTWAIT) >= 0 || errno == EAGAIN, "send");
    expect(recv(sockets[1], &c, 1, MSG_DONTWAIT) >= 0 || errno == EAGAIN, "recv");
    int fd = dup(null), other = open("/dev/null", O_RDONLY);
    expect(fd >= 0 && other >= 0 && dup2(fd, other) == other, "dup2");
    expect(close(fd) == 0 && close(other) == 0, "close");
    struct timespec zero = {0, 0};
    expect(nanosleep(&zero, NULL) == 0 || errno == EINTR, "nanosleep");
    expect(waitpid(-1, NULL, WNOHANG) <= 0, "waitpid");
    errno = saved;
}

static void *immediate(void *arg)
{
    return arg;
}

static void *churn(void *arg)
{
    while (!stop) {
        pthread_t thread;
        pthread_mutex_lock(&mutex);
        pthread_cond_signal(&cond);
        pthread_mutex_unlock(&mutex);
        if (pthread_create(&thread, NULL, immediate, NULL) == 0)
            pthread_join(thread, NULL);
        char c = 0;
        expect(write(fds[1], &c, 1) == 1 && read(fds[0], &c, 1) == 1, "pipe");
    }
    return arg;
}

static void handle(int number, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

static void storm(int flags)
{
    pthread_t thread[3];
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    struct itimerspec every = {{0, 100000}, {0, 100000}}; /* 10 kHz */
    handle(SIGALRM, safe_calls, flags);
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    for (int i = 0; i < 3; i++)
        pthread_create(&thread[i], NULL, churn, NULL);
    timer_settime(timer, 0, &every, NULL);
    while (handled < 5000)
        sem_wait(&sem);
    timer_delete(timer);
    stop = 1;
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    printf("storm: %d failures\n", failures);
}

static void altstack(size_t size)
{
    stack_t alt = {
        .ss_sp = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)};
    /* Below the stack a page that must not be touched. */
    mprotect(alt.ss_sp, 4096, PROT_NONE);
    alt.ss_sp = (char *)alt.ss_sp + 4096;
    alt.ss_size = size;
    if (sigaltstack(&alt, NULL) != 0)
        abort();
    safe_calls(0); /* the dynamic linker needs more stack than this to bind them */
    handle(SIGUSR1, safe_calls, SA_ONSTACK);
    for (int i = 0; i < 100; i++)
        raise(SIGUSR1);
    printf("altstack: %d handled, %d failures\n", handled, failures);
}

static void jump(int signal)
{
    siglongjmp(out, signal);
}

static void *never(void *arg)
{
    pause();
    return arg;
}

static void jump_out_of(const char *what, int (*wait)(void))
{
    struct itimerval in_20ms = {{0, 0}, {0, 20000}};
    handle(SIGALRM, jump, 0);
    for (volatile int i = 0; i < 5; i++) {
        if (sigsetjmp(out, 1) == 0) {
            setitimer(ITIMER_REAL, &in_20ms, NULL);
            wait();
            printf("%s: not left\n", what);
        }
    }
    printf("%s: left\n", what);
}

static int wait_sem(void)
{
    return sem_wait(&sem);
}

static int wait_read(void)
{
    char c;
    return (int)read(fds[0], &c, 1);
}

static int wait_poll(void)
{
    return poll(NULL, 0, -1);
}

static int wait_sleep(void)
{
    return (int)sleep(100);
}

static void jumps(void)
{
    jump_out_of("sem_wait", wait_sem);
    jump_out_of("read", wait_read);
    jump_out_of("poll", wait_poll);
    jump_out_of("sleep", wait_sleep);
    usleep(30000); /* is seen again */
}

static void nothing(int signal)
{
    (void)signal;
    handled++;
}

/* EINTR where it is due, and a restart where that is. */
static void interrupts(void)
{
    struct itimerval once = {{0, 0}, {0, 20000}};
    char c = 'x';
    handle(SIGALRM, nothing, 0);
    setitimer(ITIMER_REAL, &once, NULL);
    printf("read: %zd", read(fds[0], &c, 1));
    printf(" %s\n", strerror(errno));
    setitimer(ITIMER_REAL, &once, NULL);
    printf("sem_wait: %d", sem_wait(&sem));
    printf(" %s\n", strerror(errno));
    setitimer(ITIMER_REAL, &once, NULL);
    printf("poll: %d", poll(NULL, 0, -1));
    printf(" %s\n", strerror(errno));
    setitimer(ITIMER_REAL, &once, NULL);
    printf("usleep: %d", usleep(500000));
    printf(" %s\n", strerror(errno));
    handle(SIGALRM, nothing, SA_RESTART);
    pid_t pid = fork();
    if (pid == 0) {
        usleep(100000);
        _exit(write(fds[1], &c, 1) == 1 ? 0 : 1);
    }
    setitimer(ITIMER_REAL, &once, NULL);
    printf("restarted read: %zd\n", read(fds[0], &c, 1));
    waitpid(pid, NULL, 0);
    printf("%d handled\n", handled);
}

static void *cancelled(void *arg)
{
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    sem_post(&sem);
    for (;;)
        __asm__ volatile("");
    return arg;
}

static void *in_wait(void *arg)
{
    ((int (*)(void))arg)();
    return NULL;
}

static void cancels(void)
{
    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, cancelled, NULL);
    sem_wait(&sem);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    printf("asynchronous: %d\n", result == PTHREAD_CANCELED);
    int (*const waits[])(void) = {wait_sem, wait_read, wait_poll, wait_sleep};
    for (int i = 0; i < 4; i++) {
        pthread_create(&thread, NULL, in_wait, (void *)waits[i]);
        usleep(10000);
        pthread_cancel(thread);
        pthread_join(thread, &result);
        printf("deferred: %d\n", result == PTHREAD_CANCELED);
    }
    pthread_create(&thread, NULL, never, NULL);
    handle(SIGUSR1, nothing, 0);
    for (int i = 0; i < 100; i++)
        pthread_kill(thread, SIGUSR1);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    printf("pthread_kill: done\n");
}

static void crash(const char *how, int handle_it)
{
    pthread_t thread;
    pthread_create(&thread, NULL, never, NULL);
    usleep(300000);
    if (handle_it)
        handle(strcmp(how, "SIGSEGV") == 0 ? SIGSEGV : SIGBUS, (void (*)(int))_exit, 0);
    if (strcmp(how, "SIGSEGV") == 0)
        *(volatile int *)8 = 1;
    if (strcmp(how, "SIGBUS") == 0) {
        char name[] = "/tmp/hostile-XXXXXX";
        int fd = mkstemp(name);
        unlink(name);
        volatile char *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
        printf("%c", *p);
    }
    abort();
}

/* Kernels before 5.14 do not tell. */
static size_t least_stack(void)
{
    size_t least = getauxval(AT_MINSIGSTKSZ);
    return least ? least : (size_t)MINSIGSTKSZ;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    setvbuf(stdout, NULL, _IONBF, 0);
    sem_init(&sem, 0, 0);
    null = open("/dev/null", O_RDWR);
    if (pipe(fds) != 0 || socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets) != 0)
        abort();
    if (strcmp(what, "storm") == 0)
        storm(0);
    else if (strcmp(what, "storm-restart") == 0)
        storm(SA_RESTART);
    else if (strcmp(what, "altstack") == 0)
        altstack(least_stack() + 2048);
    else if (strcmp(what, "jumps") == 0)
        jumps();
    else if (strcmp(what, "interrupts") == 0)
        interrupts();
    else if (strcmp(what, "cancels") == 0)
        cancels();
    else if (strncmp(what, "SIG", 3) == 0 || strcmp(what, "abort") == 0)
        crash(what, argc > 2);
    else
        return 2;
    return failures != 0;
}
