/*
 * Stacks that are not the thread's own: `stacks coroutine` calls on one of which nobody knows where
 * it ends, `stacks high` in a signal handler on one that lies above the call it has interrupted.
 */
#include "../prog/truth.h"
#include <ucontext.h>

enum { STACK = 256 << 10, ROUNDS = 20, UNTOUCHED = 4711 };
#define NOINLINE __attribute__((noinline))

static ucontext_t home, there;
static sem_t sem, handled;
static _Atomic int waiter;

static void *waits(void *arg)
{
    while (sem_wait(&sem) != 0)
        ;
    return arg;
}

static void expect_untouched(const char *call)
{
    if (errno != UNTOUCHED)
        printf("%s has changed errno\n", call);
    errno = UNTOUCHED;
}

/* Over several pages; the same stack again and again. */
NOINLINE static int down(int n)
{
    volatile char room[6000];
    struct timespec soon = {0, 1000};
    room[0] = 1;
    errno = UNTOUCHED;
    for (int i = 0; n == 0 && i < ROUNDS; i++) {
        sem_post(&sem);
        expect_untouched("sem_post");
    }
    for (int i = 0; n == 0 && i < ROUNDS; i++) {
        nanosleep(&soon, NULL);
        expect_untouched("nanosleep");
    }
    return n == 0 ? room[0] : down(n - 1) + room[0];
}

static void entry(void)
{
    down(3);
}

static void coroutine(void)
{
    static char stack[STACK];
    pthread_t thread[ROUNDS];
    for (int i = 0; i < ROUNDS; i++)
        pthread_create(&thread[i], NULL, waits, NULL);
    getcontext(&there);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = STACK;
    there.uc_link = &home;
    makecontext(&there, entry, 0);
    swapcontext(&home, &there);
    for (int i = 0; i < ROUNDS; i++)
        pthread_join(thread[i], NULL);
}

static void on_signal(int number)
{
    (void)number;
    poll(NULL, 0, 1);
    sem_post(&handled);
}

static void *waits_below(void *arg)
{
    stack_t alternate = {.ss_sp = arg, .ss_size = STACK};
    sigaltstack(&alternate, NULL);
    waiter = tid();
    return waits(arg);
}

/* Each signal interrupts the wait, which the thread has gone back to when the wait ends. */
static void high(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK | SA_RESTART};
    pthread_attr_t attr;
    pthread_t thread;
    char *both = mmap(NULL, 2 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaction(SIGUSR1, &action, NULL);
    pthread_attr_init(&attr);
    pthread_attr_setstack(&attr, both, STACK);
    pthread_create(&thread, &attr, waits_below, both + STACK);
    for (int i = 0; i < ROUNDS; i++) {
        until_asleep(&waiter);
        pthread_kill(thread, SIGUSR1);
        sem_wait(&handled);
    }
    until_asleep(&waiter);
    sem_post(&sem);
    pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    sem_init(&sem, 0, 0);
    sem_init(&handled, 0, 0);
    argc > 1 && strcmp(argv[1], "high") == 0 ? high() : coroutine();
    return 0;
}
