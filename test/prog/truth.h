/*
 * What the programs share that know how long their threads waited, and for whom: a clock, a look at
 * a thread's state, and computing. Nothing here is a call that the library hooks: what these
 * programs do to arrange and to check is not to be seen in the trace.
 */
#ifndef TRUTH_H
#define TRUTH_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

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
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline int tid(void)
{
    return (int)RAW(SYS_gettid);
}

static inline struct timespec after(clockid_t clock, uint64_t ns)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    ns += (uint64_t)ts.tv_nsec;
    ts.tv_sec += (time_t)(ns / 1000000000u);
    ts.tv_nsec = (long)(ns % 1000000000u);
    return ts;
}

/* The scheduler's letter of a thread, from /proc; '?' when it is gone. */
static inline char state_of(int thread)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", thread, thread); /* no faked one: qemu's */
    long fd = RAW(SYS_openat, AT_FDCWD, path, O_RDONLY);
    long n = RAW(SYS_read, fd, text, sizeof text - 1);
    RAW(SYS_close, fd);
    text[n > 0 ? n : 0] = 0;
    char *paren = strrchr(text, ')');
    return paren ? paren[2] : '?';
}

/* Computes for a while: no hook is involved. */
static inline void busy(uint64_t ns)
{
    for (uint64_t start = now(); now() - start < ns;)
        ;
}

/* A wait that ends by itself may be over before anybody could look. */
static inline void until_asleep(_Atomic int *thread)
{
    while (*thread == 0 || !strchr("S?", state_of(*thread)))
        busy(20000);
}

#endif
