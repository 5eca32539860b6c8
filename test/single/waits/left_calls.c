/*
 * `left_calls jump|cancel`: threads leave calls of futex_waitv(2) so, each at as many futexes as
 * one call takes. Then a thread waits at others, and main wakes it.
 */
#include "../../prog/truth.h"
#include <linux/futex.h>
#include <setjmp.h>

enum { CALLS = 16, MOST = 128, WORDS = FUTEX_PRIVATE_FLAG | 2 /* FUTEX_32 */, SKIP = 77 };

/* As <linux/futex.h> has it since Linux 5.16. */
struct waited_futex {
    uint64_t value, address;
    uint32_t flags, reserved;
};

static int left[MOST], others[MOST];
static sigjmp_buf out;
static bool jumps;
static _Atomic int waiter;

static void jump(int sig)
{
    siglongjmp(out, sig);
}

static long wait_at_all(const int *words)
{
    struct waited_futex all[MOST];
    for (int i = 0; i < MOST; i++)
        all[i] = (struct waited_futex){0, (uintptr_t)&words[i], WORDS, 0};
    return syscall(SYS_futex_waitv, all, MOST, 0, NULL, CLOCK_MONOTONIC);
}

static void *run(void *words)
{
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    waiter = tid();
    if (!jumps || sigsetjmp(out, 1) == 0)
        wait_at_all(words);
    return words;
}

static pthread_t begin_call(int *words)
{
    pthread_t thread;
    waiter = 0;
    pthread_create(&thread, NULL, run, words);
    until_asleep(&waiter);
    return thread;
}

static __attribute__((noinline)) long wake(void)
{
    return syscall(SYS_futex, others, FUTEX_WAKE_PRIVATE, 1);
}

int main(int argc, char **argv)
{
    struct sigaction sa = {.sa_handler = jump};
    if (argc != 2 || sigaction(SIGUSR1, &sa, NULL) != 0)
        return 1;
    if (syscall(SYS_futex_waitv, NULL, 0, 0, NULL, 0) < 0 && errno == ENOSYS) {
        fprintf(stderr, "the kernel has no futex_waitv\n");
        return SKIP;
    }
    jumps = strcmp(argv[1], "jump") == 0;
    for (int i = 0; i < CALLS; i++) {
        pthread_t thread = begin_call(left);
        if (jumps)
            pthread_kill(thread, SIGUSR1);
        else
            pthread_cancel(thread);
        pthread_join(thread, NULL);
    }
    pthread_t last = begin_call(others);
    long woken = wake();
    pthread_join(last, NULL);
    return woken != 1;
}
