/*
 * What the programs share that know how long their threads waited, and for whom: a clock, a look at
 * a thread's state, and computing. Nothing here is a call that the library hooks: what these
 * programs do to arrange and to check is not to be seen in the trace.
 */
#pragma once

#include "program.h"

#define MS 1000000ull

/* A system call that no hook sees. Returns the value or -errno. */
#define RAW(...) RAW_(__VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define RAW_(nr, a, b, c, d, e, f, ...) \
    raw_call((nr), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

#ifdef __x86_64__
static inline long raw_call(long nr, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "+a"(nr)
                     : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return nr;
}
#elif defined __aarch64__
static inline long raw_call(long nr, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = nr;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
}
#endif

static inline uint64_t now(void)
{
    return now_ns();
}

static inline int tid(void)
{
    return (int)RAW(SYS_gettid);
}

/* Of a file of a thread in /proc what fits, as a string; "" when the thread is gone. */
static inline void read_of(int thread, const char *name, char *text, size_t size)
{
    char path[64]; /* of no file that qemu fakes */
    snprintf(path, sizeof path, "/proc/%d/task/%d/%s", thread, thread, name);
    long fd = RAW(SYS_openat, AT_FDCWD, path, O_RDONLY);
    long n = RAW(SYS_read, fd, text, size - 1);
    RAW(SYS_close, fd);
    text[n > 0 ? n : 0] = 0;
}

/* The scheduler's letter of a thread; '?' when it is gone. */
static inline char state_of(int thread)
{
    char text[512];
    read_of(thread, "stat", text, sizeof text);
    char *paren = strrchr(text, ')');
    return paren ? paren[2] : '?';
}

/* How often a thread has gone to sleep. */
static inline long sleeps_of(int thread)
{
    char text[4096];
    read_of(thread, "status", text, sizeof text);
    char *line = strstr(text, "\nvoluntary_ctxt_switches:");
    return line ? atol(strchr(line, ':') + 1) : -1;
}

/* Computes for a while: no hook is involved. */
static inline void busy(uint64_t ns)
{
    for (uint64_t start = now(); now() - start < ns;)
        ;
}

/*
 * Whether the thread waits, which a signal could end: state S. Uninterruptible sleep (D) does not
 * count. The library may have put it to sleep for a moment before its wait begins: that is over
 * soon.
 */
static inline int is_asleep(int thread)
{
    long before = sleeps_of(thread);
    if (state_of(thread) != 'S')
        return 0;
    busy(1000000);
    return state_of(thread) == 'S' && sleeps_of(thread) == before;
}

/* Whether a thread that sleeps does so at a futex: in a lock, not in another call. */
static inline int is_at_futex(int thread)
{
#if defined(__x86_64__)
    char text[256];
    read_of(thread, "syscall", text, sizeof text);
    return *text >= '0' && *text <= '9' && atol(text) == SYS_futex;
#else
    (void)thread; /* under qemu-user the number is the host's */
    return 0;
#endif
}

/* A wait without a waker may be over before a thread could look. */
static inline void until_asleep(_Atomic int *thread)
{
    while (*thread == 0 || (state_of(*thread) != '?' && !is_asleep(*thread)))
        busy(20000);
}
