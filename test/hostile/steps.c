/*
 * A signal handler that comes at each instruction of a call, one after the other, and does not just
 * return: `steps <way> <calls> <first> <every>`. At the end there is a thread like any other.
 */
#include "../prog/program.h"
#include <setjmp.h>

static const char *way;
static bool posts; /* to a thread that waits */
static int null;
static atomic_bool came;
static sem_t sem;
static __thread volatile int steps, due; /* instructions so far; at which one it comes, 0: none */
static __thread volatile bool child;
static __thread sigjmp_buf out;

#if defined(__x86_64__)
enum { TRAP = 0x100 };
#define STEP() __asm__ volatile("pushfq; orq %0, (%%rsp); popfq" : : "i"(TRAP) : "memory", "cc")
#define WALK() __asm__ volatile("pushfq; andq %0, (%%rsp); popfq" : : "i"(~TRAP) : "memory", "cc")
#else
#define STEP() exit(77) /* only a debugger can have a thread stop at each instruction */
#define WALK()
#endif

/* Delivered when this returns: there. */
static void on_step(int number)
{
    (void)number;
    if (++steps == due)
        syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR1);
}

static void *call(void *arg)
{
    write(null, "", 1);
    if (posts)
        sem_post(&sem);
    return arg;
}

/* With a trace of its own. */
static void become_child(void)
{
    pthread_t thread;
    child = true;
    if (pthread_create(&thread, NULL, call, NULL) == 0)
        pthread_join(thread, NULL);
}

static void on_signal(int number)
{
    int status;
    due = 0;
    if (strcmp(way, "siglongjmp") == 0)
        siglongjmp(out, number);
    if (strcmp(way, "pthread_exit") == 0)
        pthread_exit(NULL);
    if (strcmp(way, "_exit") == 0)
        _exit(7);
    pid_t pid = fork();
    if (pid == 0)
        become_child();
    else if (waitpid(pid, &status, 0) != pid || status)
        printf("step %d: child ended with %x\n", steps, (unsigned)status);
}

/* Whether it came. */
static bool interrupt_at(int step)
{
    steps = 0;
    due = step;
    if (sigsetjmp(out, 1) == 0) {
        STEP();
        call(NULL);
        WALK();
    }
    if (child) {
        call(NULL);
        _exit(0);
    }
    return !due;
}

static void *interrupted(void *arg)
{
    came = true; /* should it end here */
    came = interrupt_at((int)(intptr_t)arg);
    return arg;
}

static bool interrupt_thread_at(int step)
{
    RUN_THREADS(1, interrupted, (void *)(intptr_t)step);
    return came;
}

static void *last(void *arg)
{
    usleep(1000);
    return arg;
}

static void *waits(void *arg)
{
    for (;;)
        sem_wait(&sem);
    return arg;
}

int main(int argc, char **argv)
{
    struct sigaction step = {.sa_handler = on_step}, action = {.sa_handler = on_signal};
    int at = argc > 3 ? atoi(argv[3]) : 1, every = argc > 4 ? atoi(argv[4]) : 1;
    pthread_t thread;
    way = argc > 1 ? argv[1] : "";
    bool forks = strcmp(way, "fork") == 0;
    posts = argc > 2 && strcmp(argv[2], "sem_post") == 0;
    null = open("/dev/null", O_WRONLY);
    sigfillset(&step.sa_mask);
    sigaction(SIGTRAP, &step, NULL);
    sigaction(SIGUSR1, &action, NULL);
    sem_init(&sem, 0, 0);
    if (!forks)
        pthread_create(&thread, NULL, waits, NULL);
    while (forks ? interrupt_at(at) : interrupt_thread_at(at))
        at += every;
    RUN_THREADS(1, last, NULL);
    return 0;
}
