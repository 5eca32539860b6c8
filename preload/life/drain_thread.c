/* See drain_thread.h. */
#include "drain_thread.h"

#include "met.h"
#include "process_end.h"

#include "encoder/base/log.h"
#include "encoder/drain/drain.h"
#include "encoder/file/output.h"
#include "preload/bind/nursery.h"
#include "preload/bind/real.h"
#include "preload/control/control.h"
#include "preload/process/libc_signal.h"
#include "preload/process/process_state.h"
#include "preload/process/read_usage.h"
#include "preload/shared/control_page.h"
#include "preload/shared/options.h"
#include "preload/thread/heap_slots.h"
#include "preload/thread/thread.h"
#include "symbolize/symbolize.h"

#include <linux/close_range.h>
#include <sys/stat.h>
#include <sys/statfs.h>

static struct {
    unsigned long cpus[128];
    long cpus_size; /* size of the mask in bytes; negative: the mask does not fit */
} drain_thread;

void gt_drain_thread_init(void)
{
    drain_thread.cpus_size =
        gt_syscall(SYS_sched_getaffinity, 0, sizeof drain_thread.cpus, drain_thread.cpus);
}

/*
 * Gives the drain thread ordinary priority and the CPUs on which the process was started. The
 * calling thread may be bound to a CPU on which nothing else should run, and may have real-time
 * priority; the drain thread inherits both. The caller sets them, since the drain thread might
 * never get a CPU to do so.
 */
static void place(pthread_t thread)
{
    struct sched_param none = {0};
    long policy = gt_syscall(SYS_sched_getscheduler, 0) & ~(long)SCHED_RESET_ON_FORK;
    if (policy == SCHED_FIFO || policy == SCHED_RR)
        pthread_setschedparam(thread, SCHED_OTHER, &none);
    if (drain_thread.cpus_size > 0)
        pthread_setaffinity_np(thread, (size_t)drain_thread.cpus_size, (void *)drain_thread.cpus);
}

static _Atomic bool may_not_ask;

void gt_drain_thread_forbid_fstatfs(void)
{
    atomic_store(&may_not_ask, true);
}

/*
 * Whether the descriptor is a message queue. When any descriptor of a queue is closed, even a copy
 * in another table, the kernel ends the process's mq_notify (mqueue_flush_file in Linux's
 * ipc/mqueue.c). Checks the size first, and the blocks: almost no file of another kind needs the
 * second call, which a seccomp filter may answer by killing the process.
 */
static bool is_queue(int fd)
{
    enum { MQUEUE_MAGIC = 0x19800202, FILENT_SIZE = 80 };
    struct stat file;
    struct statfs at;
    if (gt_fstat(fd, &file) != 0 || !S_ISREG(file.st_mode) || file.st_size != FILENT_SIZE ||
        file.st_blocks)
        return false;
    return atomic_load(&may_not_ask) ||
           (gt_syscall(SYS_fstatfs, fd, &at) == 0 && at.f_type == MQUEUE_MAGIC);
}

/*
 * Gives the drain thread a descriptor table of its own. The table is empty, except for the trace if
 * it is already open (see gt_process_confines), and for message queues. So the program cannot
 * close, duplicate or count a descriptor of ours, and none of its pipes stays open because of us.
 * false: kernels before 5.9 do not offer this; there encoder/file/output.c checks its descriptor
 * before each write.
 */
static bool unshare_descriptors(void)
{
    enum {
        WORD = 64
    }; /* the kernel copies tables in words of this many descriptors, then closes */
    int kept = gt_output_descriptor(), last = kept, copied = (kept / WORD + 1) * WORD;
    for (int fd = kept + 1; fd < copied; fd++)
        last = is_queue(fd) ? fd : last;
    if (gt_syscall(SYS_close_range, last + 1, ~0u, CLOSE_RANGE_UNSHARE) != 0)
        return false;
    for (int fd = 0, from = 0; fd <= last; fd++) {
        if (fd != kept && !is_queue(fd))
            continue;
        if (from < fd)
            gt_syscall(SYS_close_range, from, fd - 1, 0);
        from = fd + 1;
    }
    return true;
}

static void *run(void *unused)
{
    uint32_t tid = (uint32_t)gt_syscall(SYS_set_tid_address, &gt_process.drain_tid);
    atomic_store(&gt_process.drain_tid, tid);
    gt_thread_ignore();
    gt_nursery_only = true;
    gt_heap_own_begin();
    gt_syscall(SYS_prctl, PR_SET_NAME, GT_CONTROL_THREAD);
    if (unshare_descriptors()) {
        gt_log_apart();
        gt_control_open();
        gt_usage_apart();
    }
    gt_met_all();
    if (gt_options.ring_bytes)
        gt_symbolize_prepare(); /* it may be too late in gt_process_crash */
    gt_drain_run();
    gt_process_end(false); /* for the case that no other thread has called it */
    return unused;
}

/* Blocks all signals while it makes the thread: the program's handlers must not run there. */
bool gt_drain_thread_start(void)
{
    sigset_t all, before;
    pthread_t thread;
    pthread_attr_t attr;
    sigfillset(&all);
    gt_libc.pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, 1 << 20);
    gt_drain_set_threaded();
    int error = gt_libc.pthread_create(&thread, &attr, run, NULL);
    gt_libc_signal_retake();
    if (!error)
        place(thread);
    pthread_attr_destroy(&attr);
    gt_libc.pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) {
        gt_drain_set_unthreaded();
        gt_log_note("no thread to write with (%s): those of the program write",
                    gt_libc_error(error));
    }
    return !error;
}

/*
 * Threads may end by the bare system call, which we do not see. The first thread then stays as a
 * zombie without a program until it is the last one. Opens no descriptor: the table may be shared
 * with the program.
 */
bool gt_drain_thread_is_last(void)
{
    enum { OWN_LINKS = 2, FIRST_AND_US = 2 };
    struct stat tasks;
    char program[1];
    return gt_stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink == OWN_LINKS + FIRST_AND_US &&
           gt_syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", program, sizeof program) < 0 &&
           errno == ENOENT;
}
