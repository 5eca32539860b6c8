/*
 * See seccomp.h. Runs the filter as the kernel would, once for each system call that we may still
 * make. seccomp(2) and linux/filter.h define the instructions of a filter. A filter that the thread
 * had before, or inherited, cannot be read.
 */
#include "seccomp.h"

#include "drain_thread.h"
#include "process_confine.h"

#include "encoder/base/arch/arch.h"
#include "encoder/base/glibc.h"
#include "encoder/base/libc.h"
#include "encoder/base/log.h"
#include "encoder/base/urgent.h"
#include "encoder/cpu/watch.h"
#include "encoder/drain/drain.h"
#include "preload/bind/file_lock_names.h"
#include "preload/control/process_relief.h"
#include "preload/process/fatal.h"
#include "preload/process/process_state.h"
#include "preload/process/read_usage.h"
#include "preload/shared/options.h"
#include "preload/stacks/code_layouts.h"
#include "preload/thread/sampler.h"
#include "preload/waits/channels.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

/*
 * A system call that we make, with those arguments that filters are known to look at.
 * test/integration/test_system_calls.py checks the tables.
 */
struct need {
    int number;
    uint32_t args[6];
};

/* A system call that libc makes only up to glibc 2.(minor - 1). */
#define UNTIL(minor, number) ((number) | (minor) << 16)

/* System calls that any thread may make in a hook. */
static const struct need threads_need[] = {
    {SYS_futex, {0, FUTEX_WAIT_PRIVATE}},
    {SYS_futex, {0, FUTEX_WAKE_PRIVATE}},
    {SYS_futex, {0, FUTEX_WAIT}},
    {SYS_futex, {0, FUTEX_CMP_REQUEUE_PRIVATE}},
    {SYS_mmap, {0, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1u}},
    {SYS_munmap, {0}},
    {SYS_getpid, {0}},
    {SYS_gettid, {0}},
    {SYS_sched_yield, {0}},
    {SYS_rt_sigprocmask, {SIG_SETMASK}},
    {SYS_sigaltstack, {0}},
    {SYS_fstat, {2}},
    {SYS_newfstatat, {-100u /* AT_FDCWD */}}, /* of the thread that ends the process, too */
    {SYS_write, {2}},
};

/* Further system calls of any thread, with options that make us use signals. */
static const struct need handlers_need[] = {
    {SYS_rt_sigreturn, {0}}, {SYS_rt_sigaction, {0}}, {SYS_rt_tgsigqueueinfo, {0}},
    {SYS_tgkill, {0}},       {SYS_timer_create, {0}}, {SYS_timer_settime, {0}},
    {SYS_timer_delete, {0}},
};

/* System calls of the drain side: of the drain thread, which is made with the second thread, or of
 * the thread that ends the process. */
static const struct need drain_needs[] = {
    {SYS_membarrier, {0}},
    {SYS_openat, {-100u /* AT_FDCWD */, 0, O_RDONLY | O_CLOEXEC}},
    {SYS_openat, {-100u, 0, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600}},
    {SYS_openat, {-100u, 0, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600}},
    {SYS_linkat, {-100u, 0, -100u, 0, AT_SYMLINK_FOLLOW}},
    {SYS_fstat, {1000}},
    {SYS_read, {0}},
    {SYS_pread64, {0}},
    {SYS_write, {1000}},
    {SYS_lseek, {1000}},
    {SYS_close, {1000}},
    {SYS_fcntl, {1000, F_DUPFD_CLOEXEC}},
    {SYS_flock, {1000}},
    {SYS_fchmod, {1000}},
    {SYS_ftruncate, {1000}},
    {SYS_geteuid, {0}},
    {SYS_getcwd, {0}},
    {SYS_uname, {0}},
    {SYS_readlinkat, {0}},
#ifdef SYS_readlink /* only the older architectures have it */
    {SYS_readlink, {0}},
#endif
    {SYS_renameat2, {-100u}},
    {SYS_unlinkat, {-100u}},
    {SYS_mmap, {0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED}},
    {SYS_mmap, {0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED}},
    {SYS_mprotect, {0, 4096, PROT_READ}},
    {UNTIL(39, SYS_sysinfo), {0}}, /* qsort */
    {SYS_getrandom, {0}},
    {SYS_mremap, {0}},
    {SYS_madvise, {0}},
    {SYS_memfd_create, {0}},
    {SYS_close_range, {0}},
    {SYS_pidfd_open, {0}},
    {SYS_pidfd_getfd, {0}},
    {SYS_openat, /* if pidfd_* fails */
     {-100u, 0, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC}},
    {SYS_prlimit64, {0}},
    {SYS_prctl, {15 /* PR_SET_NAME */}},
    {SYS_set_tid_address, {0}},
    {SYS_clock_gettime, {0}},
    {SYS_sched_getaffinity, {0}},
    {SYS_sched_getscheduler, {0}},
    {SYS_sched_setscheduler, {0}},
    {SYS_sched_setaffinity, {0}},
    {SYS_nanosleep, {0}},
    {SYS_rt_sigpending, {0}},
    {SYS_rt_sigtimedwait, {0}},
};

/* Further system calls with a black box (encoder/base/box.c). */
static const struct need box_needs[] = {
    {SYS_madvise, {0, 65536, 23 /* MADV_POPULATE_WRITE */}},
    {SYS_madvise, {0, 65536, 9 /* MADV_REMOVE */}},
};

/* System calls of a thread that would have to wait in a hook (encoder/base/urgent.h). Dispensable.
 */
static const struct need urgent_need[] = {
    {SYS_sched_getscheduler, {0}},
    {SYS_sched_getparam, {0}},
    {SYS_sched_setscheduler, {0}},
};

/* System calls that read CPU use: of a thread at its own end, or by the drain side. Dispensable. */
static const struct need usage_need[] = {
    {SYS_clock_gettime, {CLOCK_THREAD_CPUTIME_ID}},
    {SYS_clock_gettime, {~1000u << 3 | 6}}, /* another thread's clock, see read_usage.c */
    {SYS_getrusage, {RUSAGE_THREAD}},
};

/* System calls that see whether the thread that ends the process has a CPU. Dispensable. */
static const struct need hold_need[] = {
    {SYS_openat, {-100u, 0, O_RDONLY | O_CLOEXEC}},
    {SYS_pread64, {0}},
    {SYS_close, {1000}},
    {SYS_clock_gettime, {~1000u << 3 | 6}},
};

/* System calls that identify a socket or pipe that a thread reads, writes or binds. Dispensable. */
static const struct need channels_need[] = {
    {SYS_getsockname, {0}},
    {SYS_getpeername, {0}},
    {SYS_getsockopt, {0}},
    {SYS_fcntl, {0, F_GETPIPE_SZ}},
};

/* System calls that identify a lock on a file. Dispensable. */
static const struct need file_locks_need[] = {
    {SYS_readlinkat, {-100u}},
    {SYS_lseek, {1000}},
};

/* System calls that find a thread with the program's stderr after the first thread has ended. */
static const struct need log_need[] = {
    {SYS_openat, {-100u, 0, O_RDONLY | O_CLOEXEC | O_DIRECTORY}},
    {SYS_getdents64, {0}},
};

/* System calls of the drain thread for each new thread (encoder/cpu/watch.h). Dispensable. */
static const struct need watch_need[] = {
    {SYS_perf_event_open, {0}},
    {SYS_timer_gettime, {0}},
};

/* System calls by which the drain thread, when it begins, knows message queues. Dispensable. */
static const struct need queues_need[] = {{SYS_fstatfs, {63}}};

/* The machine -------------------------------------------------------------------------------- */

struct machine {
    uint32_t a, x, memory[BPF_MEMWORDS];
};

static uint32_t calculate(uint16_t operation, uint32_t a, uint32_t b)
{
    switch (operation) {
    case BPF_ADD: return a + b;
    case BPF_SUB: return a - b;
    case BPF_MUL: return a * b;
    case BPF_DIV: return b ? a / b : 0;
    case BPF_AND: return a & b;
    case BPF_OR: return a | b;
    case BPF_XOR: return a ^ b;
    case BPF_LSH: return a << (b & 31);
    case BPF_RSH: return a >> (b & 31);
    default: return -a; /* BPF_NEG */
    }
}

static bool holds(uint16_t condition, uint32_t a, uint32_t b)
{
    switch (condition) {
    case BPF_JEQ: return a == b;
    case BPF_JGT: return a > b;
    case BPF_JGE: return a >= b;
    default: return a & b; /* BPF_JSET */
    }
}

static uint32_t load(const struct machine *m, const struct sock_filter *f,
                     const struct seccomp_data *data)
{
    uint32_t word = 0;
    switch (BPF_MODE(f->code)) {
    case BPF_IMM: return f->k;
    case BPF_MEM: return m->memory[f->k % BPF_MEMWORDS];
    case BPF_LEN: return sizeof *data;
    default: /* BPF_ABS */
        if (f->k <= sizeof *data - sizeof word)
            memcpy(&word, (const char *)data + f->k, sizeof word);
        return word;
    }
}

static void move(struct machine *m, uint16_t operation)
{
    if (operation == BPF_TAX)
        m->x = m->a;
    else
        m->a = m->x;
}

/* The filter's answer to a system call. The kernel refuses a filter without BPF_RET at its end. */
static uint32_t run(const struct sock_fprog *program, const struct seccomp_data *data)
{
    struct machine m = {0};
    for (uint64_t at = 0; at < program->len; at++) {
        const struct sock_filter *f = &program->filter[at];
        uint32_t b = BPF_SRC(f->code) == BPF_X ? m.x : f->k;
        switch (BPF_CLASS(f->code)) {
        case BPF_LD: m.a = load(&m, f, data); break;
        case BPF_LDX: m.x = load(&m, f, data); break;
        case BPF_ST: m.memory[f->k % BPF_MEMWORDS] = m.a; break;
        case BPF_STX: m.memory[f->k % BPF_MEMWORDS] = m.x; break;
        case BPF_ALU: m.a = calculate(BPF_OP(f->code), m.a, b); break;
        case BPF_MISC: move(&m, BPF_MISCOP(f->code)); break;
        case BPF_RET: return BPF_RVAL(f->code) == BPF_A ? m.a : f->k;
        case BPF_JMP:
            if (BPF_OP(f->code) == BPF_JA)
                at += f->k;
            else
                at += holds(BPF_OP(f->code), m.a, b) ? f->jt : f->jf;
        }
    }
    return SECCOMP_RET_ALLOW;
}

/* Which system calls a filter allows --------------------------------------------------------- */

/* Whether the answer is an error at most: no signal, and no tracer or supervisor, which may end the
 * program for the call. */
static bool is_harmless(uint32_t answer)
{
    uint32_t action = answer & SECCOMP_RET_ACTION_FULL;
    return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG || action == SECCOMP_RET_ERRNO;
}

/* Whether the answer lets the call happen. With an error instead, our handler of deadly signals
 * would not end the program. */
static bool is_permission(uint32_t answer)
{
    uint32_t action = answer & SECCOMP_RET_ACTION_FULL;
    return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG;
}

static bool is_made(const struct need *need)
{
    int until = need->number >> 16;
    return !until || gt_glibc_minor() < until;
}

static bool answers(const struct sock_fprog *program, const struct need *needs, size_t n,
                    bool (*fits)(uint32_t answer))
{
    for (size_t i = 0; i < n; i++) {
        if (!is_made(&needs[i]))
            continue;
        struct seccomp_data data = {.nr = needs[i].number & 0xffff, .arch = GT_ARCH_AUDIT};
        for (int k = 0; k < 6; k++)
            data.args[k] = needs[i].args[k];
        if (!fits(run(program, &data)))
            return false;
    }
    return true;
}

static bool allows(const struct sock_fprog *program, const struct need *needs, size_t n)
{
    return answers(program, needs, n, is_harmless);
}

#define ALL_OF(needs) needs, sizeof needs / sizeof *needs

static bool spares_threads(const struct sock_fprog *program)
{
    bool allowed = allows(program, ALL_OF(handlers_need));
    if (!allowed)
        gt_sampler_forbid();
    if (!answers(program, ALL_OF(handlers_need), is_permission) ||
        !answers(program, ALL_OF(threads_need), is_permission))
        gt_fatal_forbid();
    bool handlers = gt_sampler_hz() || gt_options.signal;
    return allows(program, ALL_OF(threads_need)) && (!handlers || allowed) &&
           (!gt_options.boxed || allows(program, ALL_OF(box_needs)));
}

/* Whether the pointer leads to a readable filter. If not, the kernel returns EFAULT to the program.
 */
static bool is_filter(const struct sock_fprog *program)
{
    return gt_can_read(program, sizeof *program) && program->len > 0 &&
           program->len <= BPF_MAXINSNS &&
           gt_can_read(program->filter, program->len * sizeof *program->filter);
}

/* The system calls without which recording can go on. */
static struct {
    const struct need *needs;
    size_t n;
    void (*forbid)(void);
    bool of_drain; /* the drain thread makes them */
    _Atomic bool forbidden;
} dispensable[] = {
    {ALL_OF(urgent_need), gt_urgent_forbid},
    {ALL_OF(usage_need), gt_usage_forbid, .of_drain = true},
    {ALL_OF(hold_need), gt_process_hold_by_clock},
    {ALL_OF(log_need), gt_log_forbid_search, .of_drain = true},
    {ALL_OF(channels_need), gt_channels_forbid},
    {ALL_OF(file_locks_need), gt_file_lock_names_forbid},
    {ALL_OF(watch_need), gt_watch_forbid, .of_drain = true},
    {ALL_OF(queues_need), gt_drain_thread_forbid_fstatfs},
};

/* Gives up the dispensable calls that the filter forbids. Whether the drain thread loses any. */
static bool forbid_dispensable(const struct sock_fprog *program)
{
    bool any = false;
    for (size_t i = 0; i < sizeof dispensable / sizeof *dispensable; i++) {
        if (allows(program, dispensable[i].needs, dispensable[i].n))
            continue;
        dispensable[i].forbid();
        any |= !atomic_exchange(&dispensable[i].forbidden, true) && dispensable[i].of_drain;
    }
    return any;
}

static void filter_begins(unsigned long flags, const struct sock_fprog *program)
{
    bool all_threads = flags & SECCOMP_FILTER_FLAG_TSYNC;
    bool told = forbid_dispensable(program);
    bool for_all = !gt_drain_is_threaded() || all_threads;
    if (!spares_threads(program))
        gt_process_withdraw();
    else if (!allows(program, ALL_OF(drain_needs)))
        (for_all ? gt_process_withdraw : gt_process_abandon_children)();
    else if (told && all_threads)
        gt_process_await_drain(); /* it may have read the old flag and be about to make a call */
}

void gt_seccomp_begins(unsigned long operation, unsigned long flags, const void *filter)
{
    if (!gt_process_is_ours())
        return;
    if (operation == SECCOMP_SET_MODE_STRICT)
        gt_process_withdraw();
    else if (operation == SECCOMP_SET_MODE_FILTER && is_filter(filter))
        filter_begins(flags, filter);
}

void gt_seccomp_begins_prctl(unsigned long mode, const void *filter)
{
    gt_seccomp_begins(mode - SECCOMP_MODE_STRICT, 0, filter);
}
