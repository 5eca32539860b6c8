/*
 * records.so, preloaded: the kernel records the switches of the program's threads, as for
 * GOTRACE_SCHED=on (encoder/cpu/watch.c), and nobody reads the records. No reader of them can cost
 * less.
 *
 * Like libgotrace's drain thread, a thread looks for new threads every 20 ms, opens a ring for
 * each, and empties the rings. It empties them by moving `data_tail`: the kernel drops records
 * that find a ring full, which costs less than to write them.
 */
#include <dirent.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { RINGS = 64, RING_BYTES = 256 << 10, LOOK_NS = 20000000 };

static struct ring {
    pid_t tid; /* 0: this place is free */
    int fd;
    struct perf_event_mmap_page *pages;
    bool lives; /* the thread was there at the last look */
} rings[RINGS];

static size_t mapped_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE) + RING_BYTES;
}

/* The attributes are those of encoder/cpu/perf.c for a ring without samples, but read_format. */
static void open_ring(struct ring *ring, pid_t tid)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof attr,
        .config = PERF_COUNT_SW_DUMMY,
        .sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .context_switch = 1,
        .sample_id_all = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC_RAW,
    };
    int fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
    void *pages =
        fd < 0 ? MAP_FAILED : mmap(NULL, mapped_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (pages != MAP_FAILED)
        *ring = (struct ring){tid, fd, pages, true};
    else if (fd >= 0)
        close(fd);
}

static void close_ring(struct ring *ring)
{
    munmap(ring->pages, mapped_bytes());
    close(ring->fd);
    *ring = (struct ring){0};
}

static void watch(pid_t tid)
{
    struct ring *room = NULL;
    for (struct ring *ring = rings; ring < rings + RINGS; ring++) {
        if (ring->tid == tid) {
            ring->lives = true;
            return;
        }
        room = ring->tid ? room : ring;
    }
    if (room)
        open_ring(room, tid);
}

static void look_for_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    for (const struct dirent *task; tasks && (task = readdir(tasks));)
        if (atoi(task->d_name) && atoi(task->d_name) != gettid())
            watch(atoi(task->d_name));
    if (tasks)
        closedir(tasks);
}

static void empty(struct ring *ring)
{
    uint64_t head = __atomic_load_n(&ring->pages->data_head, __ATOMIC_ACQUIRE);
    __atomic_store_n(&ring->pages->data_tail, head, __ATOMIC_RELEASE);
    if (!ring->lives)
        close_ring(ring);
    ring->lives = false;
}

static void *drain(void *unused)
{
    for (;;) {
        look_for_threads();
        for (struct ring *ring = rings; ring < rings + RINGS; ring++)
            if (ring->tid)
                empty(ring);
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    }
    return unused;
}

/* Where the kernel refuses, the program fails: peers.py leaves this library out. */
__attribute__((constructor)) static void begin(void)
{
    sigset_t all, old;
    pthread_t thread;
    watch(gettid());
    if (!rings[RINGS - 1].tid)
        abort();
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_create(&thread, NULL, drain, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}
