/*
 * Visits one thread of a running process for stop.c, such that the thread does not notice.
 *
 * A thread that sleeps in a call which the kernel repeats as a whole is stopped for a moment, by
 * PTRACE_SEIZE and PTRACE_INTERRUPT, which send no signal. Then all its registers are known. A
 * thread that computes is stopped, too.
 *
 * A thread in any other call is not stopped: a `write` that has copied a part would return it. It
 * is read while it sleeps. /proc/PID/syscall has its stack pointer and program counter, and the
 * kernel's account of the thread tells afterwards whether it slept all the time.
 *
 * A thread that is runnable seems to be in no call. But the kernel may have woken it in the middle
 * of a call, in which it will sleep again. It is stopped only when it has computed for a while
 * without sleeping.
 */
#include "system_calls.h"
#include "visit.h"

#include "scripts/tool/alone.h"
#include "scripts/tool/tool.h"

#include <elf.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

enum { PATIENCE_NS = 1000000000, LOOK_NS = 10000000, TICKS_MAX = 500 };
enum { COMPUTES_NS = 1000000 };

static struct gt_stop *volatile seizing; /* NULL except in the call that seizes */

uint64_t gt_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* What the kernel says of a thread ----------------------------------------------------------- */

struct state {
    char state;
    unsigned flags;
};

/* Zeros: the thread has ended. */
static struct state read_state(pid_t tid)
{
    char text[512];
    struct state s = {0};
    const char *stat = gt_stat_of(tid, text, sizeof text);
    if (!stat || sscanf(stat, " %c %*d %*d %*d %*d %*d %u", &s.state, &s.flags) != 2)
        return (struct state){0};
    return s;
}

char gt_state_of(pid_t tid)
{
    return read_state(tid).state;
}

unsigned gt_flags_of(pid_t tid)
{
    return read_state(tid).flags;
}

bool gt_is_over(pid_t tid)
{
    enum { EXITING = 4 }; /* PF_EXITING: such a thread can no longer be seized */
    struct state s = read_state(tid);
    return !s.state || strchr("ZXx", s.state) || s.flags & EXITING;
}

void gt_read_name(pid_t tid, char name[17])
{
    FILE *f = gt_open_proc(tid, "comm");
    if (f && fgets(name, 17, f))
        name[strcspn(name, "\n")] = 0;
    if (f)
        fclose(f);
}

struct gt_system_call gt_call_of(pid_t tid)
{
    struct gt_system_call c = {.number = GT_CALL_NONE};
    unsigned long long v[8];
    char line[256];
    FILE *f = gt_open_proc(tid, "syscall");
    if (!f || !fgets(line, sizeof line, f))
        *line = 0;
    if (strncmp(line, "running", 7) == 0) {
        c.number = GT_CALL_RUNNING;
    } else if (sscanf(line, "%ld %llx %llx %llx %llx %llx %llx %llx %llx", &c.number, &v[0], &v[1],
                      &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]) == 9) {
        for (int i = 0; i < 6; i++)
            c.argument[i] = v[i];
        c.sp = v[6], c.pc = v[7];
    } else
        c.number = GT_CALL_NONE;
    if (f)
        fclose(f);
    return c;
}

bool gt_call_is_same(const struct gt_system_call *a, const struct gt_system_call *b)
{
    return a->number == b->number && a->sp == b->sp && a->pc == b->pc &&
           memcmp(a->argument, b->argument, sizeof a->argument) == 0;
}

pid_t gt_own_id(const struct gt_still *still, pid_t tid)
{
    return still->foreign ? (pid_t)gt_status_of(tid, "NSpid:") : tid;
}

long gt_sleeps_of(pid_t tid)
{
    return gt_status_of(tid, "voluntary_ctxt_switches:");
}

/* CPU time in ns, as of the last tick or when it last left a CPU; 0: nothing tells. */
static uint64_t cpu_of(pid_t tid)
{
    unsigned long long ns = 0;
    FILE *f = gt_open_proc(tid, "schedstat");
    if (f && fscanf(f, "%llu", &ns) != 1)
        ns = 0;
    if (f)
        fclose(f);
    return ns;
}

/* As it sleeps ------------------------------------------------------------------------------- */

/* Reads a sleeping thread. False: it did not sleep all the time. */
static bool read_asleep(struct gt_stop *s, struct gt_still_thread *t, char state)
{
    struct gt_still *still = s->still;
    size_t pieces = still->pieces;
    long sleeps = gt_sleeps_of(t->tid);
    struct gt_system_call call = gt_call_of(t->tid), after;
    if (call.number < 0)
        return false;
    t->by_call = t->arrived = true;
    t->call = call;
    t->registers = gt_registers_of_call(&call);
    t->state = state == 'D' ? GT_UNSTOPPABLE : GT_WAITS;
    gt_copy_task(still, t);
    after = gt_call_of(t->tid);
    if (gt_call_is_same(&call, &after) && gt_sleeps_of(t->tid) == sleeps)
        return true;
    while (still->pieces > pieces)
        free((uint8_t *)still->piece[--still->pieces].bytes);
    t->registers = (struct user_regs_struct){0};
    t->pieces = 0;
    t->arrived = false;
    return false;
}

/* Stopped -------------------------------------------------------------------------------------- */

static bool is_ours(pid_t tid)
{
    return gt_status_of(tid, "TracerPid:") == gettid();
}

/*
 * Seizes a thread. Returns 0 or an errno. Another tracer may have left since, so there are several
 * tries. A thread that calls execve blocks PTRACE_SEIZE until all other threads are gone: a timer
 * limits that.
 */
static int try_to_seize(struct gt_stop *s, pid_t tid)
{
    enum { TRIES = 5 };
    int error = 0;
    for (int i = 0; i < TRIES; i++) {
        s->ticks = 0;
        seizing = s;
        error = ptrace(PTRACE_SEIZE, tid, 0, 0) ? errno : 0;
        seizing = NULL;
        if (error != EPERM)
            return error;
        s->tracer = (pid_t)gt_status_of(tid, "TracerPid:");
        if (s->tracer) {
            gt_read_name(s->tracer, s->tracer_name);
            return error;
        }
    }
    return error;
}

/*
 * The timer's handler. A thread that calls execve waits for the end of all other threads. One that
 * we have seized is gone only when we have waited for it, which is done here. No lock is held in
 * the call that seizes, and nothing is half done.
 */
void gt_visit_tick(int signal)
{
    struct gt_stop *s = seizing;
    int saved = errno;
    (void)signal;
    siginfo_t info = {.si_pid = 1};
    while (s && info.si_pid) {
        info.si_pid = 0;
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | __WALL | __WNOTHREAD) != 0)
            break;
    }
    errno = saved;
    if (s && ++s->ticks > TICKS_MAX)
        gt_fail(GT_EXIT_FAILED,
                "process %d cannot be stopped: it executes another program, and does not get on",
                s->still->pid);
}

/* The wait status of a thread that has stopped, as waitpid(2) has returned it or will. */
static int status_of_stop(pid_t tid)
{
    siginfo_t info = {0};
    ptrace(PTRACE_GETSIGINFO, tid, 0, &info);
    bool ours = info.si_code >> 8 == PTRACE_EVENT_STOP;
    return (ours ? info.si_code : info.si_signo) << 8 | 0x7f;
}

static void read_registers(struct gt_stop *s, struct gt_still_thread *t)
{
    struct iovec place = {&t->registers, sizeof t->registers};
    bool eintr = false;
    if (ptrace(PTRACE_GETREGSET, t->tid, NT_PRSTATUS, &place) != 0)
        return;
    s->other_machine |= place.iov_len != sizeof t->registers;
    t->call = gt_registers_call(&t->registers, &t->before, &eintr);
    const struct gt_call_row *row = gt_call_row(t->call.number);
    if (t->state == GT_RUNS && t->call.number >= 0)
        t->state = GT_WAITS;
    if (eintr && t->state == GT_WAITS && !t->signal && row && row->again == GT_AGAIN_FAILS) {
        struct user_regs_struct again = t->registers;
        gt_registers_restart(&again, &t->call);
        place.iov_base = &again;
        ptrace(PTRACE_SETREGSET, t->tid, NT_PRSTATUS, &place);
    }
}

/*
 * Reads a stopped thread and releases it. Any stop will do. It may be our request, or a signal,
 * which the thread gets when it is released. It may also be a group stop, to which it then returns.
 */
static void read_stopped(struct gt_stop *s, struct gt_still_thread *t, int status)
{
    bool ours = status >> 16 == PTRACE_EVENT_STOP;
    t->by_call = false;
    t->arrived = true;
    t->state = ours && WSTOPSIG(status) != SIGTRAP ? GT_HELD : GT_RUNS;
    t->signal = ours ? 0 : WSTOPSIG(status);
    read_registers(s, t);
    if (!s->other_machine)
        gt_copy_task(s->still, t);
    ptrace(PTRACE_DETACH, t->tid, 0, (long)t->signal);
}

void gt_hurry(bool yes)
{
    struct sched_param least = {.sched_priority = yes ? sched_get_priority_min(SCHED_RR) : 0};
    sched_setscheduler(0, yes ? SCHED_RR : SCHED_OTHER, &least);
}

/* When to stop it ------------------------------------------------------------------------------ */

/* Whether the thread has computed for a while without sleeping, since it was first seen running. */
static bool computes(struct gt_still_thread *t)
{
    long sleeps = gt_sleeps_of(t->tid);
    uint64_t cpu = cpu_of(t->tid);
    if (!t->ran || sleeps != t->sleeps) {
        t->ran = true;
        t->sleeps = sleeps;
        t->cpu = cpu;
    }
    return !cpu || cpu - t->cpu >= COMPUTES_NS;
}

/*
 * Whether the thread may be stopped. last: do not wait any longer for a runnable thread without a
 * CPU.
 */
static bool may_stop(struct gt_stop *s, struct gt_still_thread *t, bool last)
{
    char state = gt_state_of(t->tid);
    t->before = gt_call_of(t->tid);
    if (state == 'T' || state == 't' || t->before.number == GT_CALL_NONE)
        return true;
    if (t->before.number == GT_CALL_RUNNING)
        return computes(t) || (last && state == 'R');
    return state != 'D' && gt_call_again(s->still, t->tid, &t->before) == GT_AGAIN_WHOLE;
}

/*
 * Seizes the thread. If it may still be stopped, asks it to stop. Else it stays seized: only a
 * stopped thread can be released.
 */
static void ask(struct gt_stop *s, struct gt_still_thread *t, bool last)
{
    int error = try_to_seize(s, t->tid);
    t->gone = error && (error == ESRCH || gt_is_over(t->tid));
    t->done = error;
    if (error && !t->gone)
        s->error = error;
    if (error)
        return;
    if (!s->asked)
        gt_hurry(true);
    if (!may_stop(s, t, last)) {
        s->holds = true;
        return;
    }
    ptrace(PTRACE_INTERRUPT, t->tid, 0, 0);
    t->asked = true;
    s->asked++;
}

static void arrived(struct gt_stop *s, pid_t tid, int status)
{
    struct gt_still_thread *t = (struct gt_still_thread *)gt_still_task(s->still, tid);
    uint64_t begin = gt_now();
    if (!t || !t->asked) { /* it has become the first thread of another program */
        if (WIFSTOPPED(status))
            ptrace(PTRACE_DETACH, tid, 0, 0);
        return;
    }
    t->asked = false;
    t->done = true;
    t->gone = !WIFSTOPPED(status);
    s->asked--;
    if (t->gone)
        return;
    read_stopped(s, t, status);
    uint64_t ns = gt_now() - begin;
    if (ns > s->still->stopped_ns)
        s->still->stopped_ns = ns;
}

/*
 * Looks after a thread that has not stopped for long. Asks again: the request may be lost when a
 * thread becomes the first one of another program.
 */
static void look_after(struct gt_stop *s, struct gt_still_thread *t)
{
    char state = gt_state_of(t->tid);
    if (state == 't') {
        arrived(s, t->tid, status_of_stop(t->tid));
    } else if (gt_is_over(t->tid) || !is_ours(t->tid)) {
        arrived(s, t->tid, 0);
    } else if (state == 'D') { /* waiting would not help */
        t->asked = false;
        s->asked--;
        s->holds = true;
    } else {
        ptrace(PTRACE_INTERRUPT, t->tid, 0, 0);
    }
}

void gt_visit_asked(struct gt_stop *s)
{
    uint64_t begin = gt_now(), last = begin;
    while (s->asked && gt_now() - begin < PATIENCE_NS) {
        int status;
        pid_t tid = waitpid(-1, &status, __WALL | __WNOTHREAD | WNOHANG);
        if (tid > 0)
            arrived(s, tid, status);
        else
            nanosleep(&(struct timespec){.tv_nsec = 10000}, NULL);
        if (gt_now() - last < LOOK_NS)
            continue;
        for (size_t i = 0; i < s->still->tasks; i++) {
            if (s->still->task[i].asked)
                look_after(s, &s->still->task[i]);
        }
        last = gt_now();
    }
    gt_hurry(false);
    s->holds |= s->asked;
    for (size_t i = 0; i < s->still->tasks && s->asked; i++)
        s->still->task[i].asked = false;
    s->asked = 0;
}

void gt_visit(struct gt_stop *s, struct gt_still_thread *t, bool last)
{
    enum { TRIES = 3 };
    t->done = t->gone = gt_is_over(t->tid);
    if (t->gone)
        return;
    if (!*t->name) {
        t->own = gt_own_id(s->still, t->tid);
        gt_read_name(t->tid, t->name);
    }
    if (may_stop(s, t, last)) {
        ask(s, t, last);
        return;
    }
    for (int i = 0; i < TRIES && t->before.number >= 0 && !t->done; i++)
        t->done = read_asleep(s, t, gt_state_of(t->tid));
    t->done |= last;
}
