/*
 * What nearly every small program of the tests includes: headers, clocks in ns by which a program
 * knows its own truth, and RUN_THREADS. No function here but pthread_create and pthread_join, which
 * RUN_THREADS calls, is hooked.
 */
#pragma once

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static inline uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

/* Lets the calling thread run on that CPU only. Returns as sched_setaffinity(2). */
static inline int stay_on(int cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    return sched_setaffinity(0, sizeof one, &one);
}

/* The calling thread's CPU time. */
static inline uint64_t cpu_ns(void)
{
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Computes until the calling thread has used `ns` more of the CPU. */
static inline void compute_ns(uint64_t ns)
{
    for (uint64_t end = cpu_ns() + ns; cpu_ns() < end;)
        ;
}

/* The moment `ns` from now, for calls with a limit by `clock`. */
static inline struct timespec after(clockid_t clock, uint64_t ns)
{
    ns += clock_ns(clock);
    return (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
}

/* Starts `n` threads and waits for their ends. A macro, so that no stack shows another function. */
#define RUN_THREADS(n, routine, arg)                               \
    do {                                                           \
        pthread_t threads_[n];                                     \
        for (int t_ = 0; t_ < (n); t_++)                           \
            pthread_create(&threads_[t_], NULL, (routine), (arg)); \
        for (int t_ = 0; t_ < (n); t_++)                           \
            pthread_join(threads_[t_], NULL);                      \
    } while (0)

/* A filter for seccomp(2): the action at the system call of that number, at others none. */
#define FILTER_OF(number, action)                                                     \
    (&(struct sock_fprog){                                                            \
        4, (struct sock_filter[]){                                                    \
               BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)), \
               BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1),                   \
               BPF_STMT(BPF_RET | BPF_K, (action)),                                   \
               BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),                          \
           }})

/* Functions for a program's table that are one expression, or one statement. */
#define CALL(name, expression) \
    static long name(void)     \
    {                          \
        return (expression);   \
    }
#define DO(name, statement) \
    static void name(void)  \
    {                       \
        statement;          \
    }
