/*
 * The still picture of a running process: all its threads are stopped, what is needed of them is
 * copied, and they go on; names and lines are found afterwards.
 *
 * By PTRACE_SEIZE and PTRACE_INTERRUPT: no signal is sent. When we are killed in the middle, the
 * kernel lets go of every thread. All of it is done by a thread of its own, whose end does the same
 * with those that could not be stopped: they sleep where signals do not wake them.
 *
 * A thread that is to stop finds some of its calls failed with EINTR, as no other call of the
 * program's would be. Those are made again, each from the moment on that its thread stands.
 *
 * A thread that executes another program holds off who wants to seize it until all others are gone,
 * and a thread that we have seized is only gone when we have taken note of its end. A timer has us
 * do that in the middle of the call, which the kernel then makes again.
 */
#include "calls.h"
#include "still.h"

#include "scripts/tool/alone.h"
#include "scripts/tool/tool.h"

#include "encoder/read/need.h"

#include <ctype.h>
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STACK_MAX = 256 << 10, HEAD = 4096 };
enum { PATIENCE_NS = 1000000000, LOOK_NS = 10000000, TICK_US = 10000, TICKS_MAX = 500 };

struct stop {
    struct gt_still *still;
    bool foreign; /* it numbers its threads otherwise: a PID namespace */
    int memory;
    int error;    /* of the first thread that could not be stopped */
    pid_t tracer; /* who had that one, where it is known */
    char tracer_name[17];
    bool other_machine;
    size_t waiting; /* seized, and not stopped yet */
    int ticks;      /* that the call to seize a thread lasts for */
};

static struct stop *volatile seizing; /* NULL but in that call */

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* What the kernel says of a thread ----------------------------------------------------------- */

/* R, S, D, T, t, Z, X; 0: it is gone. */
static char state_of(pid_t tid)
{
    char text[512];
    const char *stat = gt_stat_of(tid, text, sizeof text);
    return stat && stat[0] == ' ' ? stat[1] : 0;
}

static bool is_over(pid_t tid)
{
    char state = state_of(tid);
    return !state || strchr("ZXx", state);
}

static void read_name(pid_t tid, char name[17])
{
    FILE *f = gt_open_proc(tid, "comm");
    if (f && fgets(name, 17, f))
        name[strcspn(name, "\n")] = 0;
    if (f)
        fclose(f);
}

static int open_of(pid_t tid, const char *name, int how)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", tid, name);
    return open(path, how | O_CLOEXEC);
}

struct gt_call gt_call_of(pid_t tid)
{
    struct gt_call c = {.number = -1};
    unsigned long long v[8];
    FILE *f = gt_open_proc(tid, "syscall");
    if (f && fscanf(f, "%ld %llx %llx %llx %llx %llx %llx %llx %llx", &c.number, &v[0], &v[1],
                    &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]) == 9) {
        for (int i = 0; i < 6; i++)
            c.argument[i] = v[i];
        c.sp = v[6], c.pc = v[7];
    } else
        c.number = -1;
    if (f)
        fclose(f);
    return c;
}

/* Stopping ----------------------------------------------------------------------------------- */

static bool is_ours(pid_t tid)
{
    return gt_status_of(tid, "TracerPid:") == gettid();
}

/*
 * 0, or an errno. Who executes a program becomes the process's first thread: that may have been
 * seized as another one, or may have become one that lives when the call has met the one before.
 * Another tracer may have gone since.
 */
static int try_to_seize(struct stop *s, pid_t tid)
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
        if (is_ours(tid))
            return 0;
        s->tracer = (pid_t)gt_status_of(tid, "TracerPid:");
        if (s->tracer) {
            read_name(s->tracer, s->tracer_name);
            return error;
        }
    }
    return error;
}

/* It is known from before the call on: its stop may be reported in the middle of that. */
static void seize(struct stop *s, pid_t tid)
{
    if (is_over(tid))
        return;
    struct gt_task *t = GT_MORE(s->still->task, s->still->tasks);
    t->tid = tid;
    t->own = s->foreign ? (pid_t)gt_status_of(tid, "NSpid:") : tid;
    t->state = GT_UNSTOPPABLE;
    t->before = gt_call_of(tid);
    t->call = t->before;
    read_name(tid, t->name);
    s->waiting++;
    int error = try_to_seize(s, tid);
    if (!error)
        return;
    s->waiting--;
    s->still->tasks--;
    if (error != ESRCH && !is_over(tid) && !s->error)
        s->error = error;
}

/* Whether there were threads that we had not seen. */
static bool seize_new(struct stop *s)
{
    char path[64];
    size_t before = s->still->tasks;
    snprintf(path, sizeof path, "/proc/%d/task", s->still->pid);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && !s->error && (e = readdir(dir));) {
        pid_t tid = atoi(e->d_name);
        if (tid && !gt_still_task(s->still, tid))
            seize(s, tid);
    }
    if (dir)
        closedir(dir);
    return !s->error && s->still->tasks > before;
}

static void read_registers(struct stop *s, struct gt_task *t)
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
    if (eintr && t->state == GT_WAITS && !t->signal && row && row->interrupted) {
        struct user_regs_struct again = t->registers;
        gt_registers_restart(&again, &t->call);
        place.iov_base = &again;
        ptrace(PTRACE_SETREGSET, t->tid, NT_PRSTATUS, &place);
    }
}

static void end(struct stop *s, struct gt_task *t)
{
    s->waiting -= !t->arrived;
    t->arrived = true;
    t->tid = 0;
}

/*
 * Any stop will do: by our request, by a signal that the thread was about to get and that it gets
 * when we let go of it, or because the process has been stopped, and will be again.
 */
static void arrived(struct stop *s, pid_t tid, int status)
{
    struct gt_task *t = (struct gt_task *)gt_still_task(s->still, tid);
    if (t && !WIFSTOPPED(status))
        end(s, t);
    if (!t || t->arrived)
        return;
    s->waiting--;
    t->arrived = true;
    bool ours = status >> 16 == PTRACE_EVENT_STOP;
    t->state = ours && WSTOPSIG(status) != SIGTRAP ? GT_HELD : GT_RUNS;
    t->signal = ours ? 0 : WSTOPSIG(status);
    read_registers(s, t);
}

/* By the timer. In the call to seize no lock is held and nothing is half done. */
static void take_note(int sig)
{
    struct stop *s = seizing;
    int status, saved = errno;
    (void)sig;
    if (!s)
        return;
    for (pid_t tid; (tid = waitpid(-1, &status, __WALL | __WNOTHREAD | WNOHANG)) > 0;)
        arrived(s, tid, status);
    if (++s->ticks > TICKS_MAX)
        gt_fail(GT_EXIT_FAILED,
                "process %d cannot be stopped: it executes another program, and does not get on",
                s->still->pid);
    errno = saved;
}

static void set_timer(bool on)
{
    struct itimerval every = {{0, on ? TICK_US : 0}, {0, on ? TICK_US : 0}};
    sigset_t its;
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = take_note, .sa_flags = SA_RESTART}, NULL);
    sigemptyset(&its);
    sigaddset(&its, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &its, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
}

/* What waitpid(2) has told, or will, of a thread that has stopped. */
static int status_of_stop(pid_t tid)
{
    siginfo_t info = {0};
    ptrace(PTRACE_GETSIGINFO, tid, 0, &info);
    bool ours = info.si_code >> 8 == PTRACE_EVENT_STOP;
    return (ours ? info.si_code : info.si_signo) << 8 | 0x7f;
}

/*
 * Whether those that have not stopped sleep so deeply that it is vain to wait. Nobody tells us of
 * the end of the first thread while others run, or when one of these has become it; that one may be
 * none that we have seized, or its stop was reported when we knew of no such thread.
 */
static bool is_vain(struct stop *s)
{
    bool vain = true;
    for (size_t i = 0; i < s->still->tasks; i++) {
        struct gt_task *t = &s->still->task[i];
        if (!t->arrived && (is_over(t->tid) || !is_ours(t->tid)))
            end(s, t);
        else if (!t->arrived && state_of(t->tid) == 't')
            arrived(s, t->tid, status_of_stop(t->tid));
        else if (!t->arrived)
            vain &= state_of(t->tid) == 'D';
    }
    return vain;
}

static void ask_all(const struct gt_still *still)
{
    for (size_t i = 0; i < still->tasks; i++) {
        if (!still->task[i].arrived)
            ptrace(PTRACE_INTERRUPT, still->task[i].tid, 0, 0);
    }
}

/* Asks again now and then: who becomes another one meanwhile may have been asked as neither. */
static void interrupt(struct stop *s)
{
    ask_all(s->still);
    uint64_t begin = now(), last = begin;
    while (s->waiting && now() - begin < PATIENCE_NS) {
        int status;
        pid_t tid = waitpid(-1, &status, __WALL | __WNOTHREAD | WNOHANG);
        if (tid > 0) {
            arrived(s, tid, status);
            last = now();
        } else if (tid < 0) {
            return;
        } else {
            nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
        }
        if (now() - last > LOOK_NS) {
            if (is_vain(s))
                return;
            ask_all(s->still);
            last = now();
        }
    }
}

static void let_go(struct gt_still *still)
{
    for (size_t i = 0; i < still->tasks; i++) {
        const struct gt_task *t = &still->task[i];
        if (t->arrived && t->tid)
            ptrace(PTRACE_DETACH, t->tid, 0, (long)t->signal);
    }
}

/* Copying ------------------------------------------------------------------------------------ */

static void copy(struct stop *s, uint64_t at, size_t size)
{
    uint8_t *bytes = gt_need(malloc(size));
    ssize_t n = pread(s->memory, bytes, size, (off_t)at);
    if (n <= 0) {
        free(bytes);
        return;
    }
    *GT_MORE(s->still->piece, s->still->pieces) = (struct gt_piece){at, (size_t)n, bytes};
}

/* What a call's arguments point to, so many bytes from so many before it. */
static const struct {
    const char *call;
    int argument, before, size;
} pointed[] = {
    {"futex", 0, 64, 128},         {"futex", 0, GT_JOINED_ID, 4}, {"futex", 3, 0, 16},
    {"poll", 0, 0, 512},           {"ppoll", 0, 0, 512},          {"ppoll", 2, 0, 16},
    {"select", 1, 0, 128},         {"select", 2, 0, 128},         {"select", 3, 0, 128},
    {"pselect6", 1, 0, 128},       {"pselect6", 2, 0, 128},       {"pselect6", 3, 0, 128},
    {"nanosleep", 0, 0, 16},       {"clock_nanosleep", 2, 0, 16}, {"restart_syscall", 0, 64, 576},
    {"restart_syscall", 2, 0, 16},
};

static void copy_pointed(struct stop *s, const struct gt_task *t)
{
    enum { PAGE = 4096 }; /* or larger: then there is no hole here */
    const struct gt_call_row *row = gt_call_row(t->call.number);
    for (size_t i = 0; row && i < sizeof pointed / sizeof *pointed; i++) {
        uint64_t at = t->call.argument[pointed[i].argument];
        if (!at || strcmp(pointed[i].call, row->name) != 0)
            continue;
        size_t pieces = s->still->pieces, before = (size_t)pointed[i].before;
        size_t size = (size_t)pointed[i].size;
        copy(s, at - before, size);
        if (s->still->pieces == pieces && at % PAGE < before && size > before)
            copy(s, at, size - before);
    }
}

/* waits.c looks there for a lock that the kernel has refused. */
static void copy_refused(struct stop *s, const struct gt_task *t)
{
    uint64_t saved[GT_SAVED_REGISTERS], sp = gt_registers_sp(&t->registers);
    unsigned n = gt_registers_saved(&t->registers, saved);
    if (t->call.number != SYS_futex || t->call.argument[0] - sp > 4096)
        return;
    for (unsigned i = 0; i < n; i++)
        copy(s, saved[i] - 16, 56);
}

static void copy_stack(struct stop *s, const struct gt_task *t)
{
    uint64_t sp = gt_registers_sp(&t->registers);
    const struct gt_mapping *m = gt_still_mapping(s->still, sp);
    if (m)
        copy(s, sp, m->hi - sp < STACK_MAX ? m->hi - sp : STACK_MAX);
}

/*
 * One that nothing can stop stands still as well while it sleeps. It has, when by the kernel's
 * account it has not been on a CPU since before we looked.
 */
static void copy_deep_sleeper(struct stop *s, struct gt_task *t)
{
    static const char account[] = "voluntary_ctxt_switches:";
    long switches = gt_status_of(t->tid, account);
    struct gt_call call = gt_call_of(t->tid);
    if (call.number < 0 || state_of(t->tid) != 'D')
        return;
    t->call = call;
    t->registers = gt_registers_of_call(&call);
    copy_stack(s, t);
    copy_pointed(s, t);
    if (state_of(t->tid) != 'D' || gt_status_of(t->tid, account) != switches)
        t->registers = (struct user_regs_struct){0};
}

static void read_maps(struct stop *s, pid_t tid)
{
    char line[PATH_MAX + 128], rights[8];
    FILE *f = gt_open_proc(tid, "maps");
    while (f && fgets(line, sizeof line, f)) {
        unsigned long lo, hi, offset;
        int path = 0;
        line[strcspn(line, "\n")] = 0;
        if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %n", &lo, &hi, rights, &offset, &path) < 4)
            continue;
        struct gt_mapping *m = GT_MORE(s->still->mapping, s->still->mappings);
        *m = (struct gt_mapping){lo, hi, offset, gt_need(strdup(path ? line + path : ""))};
        if (strcmp(m->path, "[vdso]") == 0)
            s->still->vdso = lo;
        if (rights[0] == 'r' && offset == 0 && m->path[0] == '/')
            copy(s, lo, HEAD);
        else if (s->still->vdso == lo)
            copy(s, lo, hi - lo);
    }
    if (f)
        fclose(f);
}

static void open_memory(struct stop *s, pid_t tid)
{
    s->memory = open_of(tid, "mem", O_RDONLY);
}

/* One that stands still does not end; the first may have, when others go on. */
static pid_t find_alive(const struct gt_still *still)
{
    pid_t any = 0;
    for (size_t i = 0; i < still->tasks; i++) {
        const struct gt_task *t = &still->task[i];
        if (t->arrived && t->tid)
            return t->tid;
        any = t->tid ? t->tid : any;
    }
    return any;
}

static void look(struct stop *s)
{
    struct gt_still *still = s->still;
    open_memory(s, still->alive);
    read_maps(s, still->alive);
    still->forked = gt_is_forked(still->pid);
    for (size_t i = 0; i < still->tasks; i++) {
        struct gt_task *t = &still->task[i];
        if (!t->arrived) {
            copy_deep_sleeper(s, t);
        } else if (t->tid) {
            copy_stack(s, t);
            copy_pointed(s, t);
            copy_refused(s, t);
        }
    }
    close(s->memory);
}

/* Those that we knew are gone, and the one that has become the process is not known yet. */
static bool is_another(const struct stop *s)
{
    return !s->error && !find_alive(s->still) && !is_over(s->still->pid);
}

void gt_hurry(bool yes)
{
    struct sched_param least = {.sched_priority = yes ? sched_get_priority_min(SCHED_RR) : 0};
    sched_setscheduler(0, yes ? SCHED_RR : SCHED_OTHER, &least);
}

static void *stop_and_look(void *arg)
{
    struct stop *s = arg;
    gt_hurry(true);
    set_timer(true);
    while (seize_new(s))
        ;
    if (s->error)
        return NULL;
    uint64_t begin = now();
    do
        interrupt(s);
    while (seize_new(s) || is_another(s));
    set_timer(false);
    s->still->alive = find_alive(s->still);
    if (s->still->alive && !s->error && !s->other_machine)
        look(s);
    s->still->root = open_of(s->still->alive, "root", O_PATH);
    s->still->exe = open_of(s->still->alive, "exe", O_PATH);
    let_go(s->still);
    s->still->stopped_ns = now() - begin;
    return NULL;
}

/* The rest ----------------------------------------------------------------------------------- */

static long yama(void)
{
    long scope = 0;
    FILE *f = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
    if (f && fscanf(f, "%ld", &scope) != 1)
        scope = 0;
    if (f)
        fclose(f);
    return scope;
}

/* It has no memory of its own, and nothing tells how much of that. */
static bool is_kernels(pid_t pid)
{
    return !is_over(pid) && !gt_status_of(pid, "VmSize:");
}

/* The same right as to seize it, whoever does that just now: __ptrace_may_access. */
static bool may_debug(struct stop *s)
{
    open_memory(s, s->still->pid);
    if (s->memory >= 0)
        close(s->memory);
    return s->memory >= 0;
}

static _Noreturn void refused(struct stop *s)
{
    pid_t pid = s->still->pid;
    int error = s->error;
    bool mine = gt_status_of(pid, "Uid:") == (long)geteuid();
    if (is_over(pid) && error != EPERM)
        gt_fail(GT_EXIT_FAILED, "there is no process %d", pid);
    if (is_kernels(pid))
        gt_fail(GT_EXIT_FAILED, "process %d is no program: it is the kernel's", pid);
    if (s->tracer)
        gt_fail(GT_EXIT_FAILED,
                "process %d is being debugged already, by process %d (%s): end that first", pid,
                s->tracer, s->tracer_name);
    if (error == EPERM && may_debug(s))
        gt_fail(GT_EXIT_FAILED,
                "process %d is being debugged again and again, by who has gone just now: try again",
                pid);
    if (!mine && geteuid() != 0)
        gt_fail(GT_EXIT_FAILED, "process %d is another user's; try as root", pid);
    if (yama() > 0)
        gt_fail(GT_EXIT_FAILED, "process %d may not be debugged: kernel.yama.ptrace_scope is %ld%s",
                pid, yama(),
                yama() < 3 ? "; try as root, or set it to 0 (sysctl(8))" : ", until the next boot");
    if (mine && geteuid() != 0)
        gt_fail(GT_EXIT_FAILED,
                "process %d has or had more privileges than its user, or wants nobody to read its "
                "memory; try as root",
                pid);
    if (error == EPERM && geteuid() == 0)
        gt_fail(GT_EXIT_FAILED,
                "process %d may not be debugged even by root here: without CAP_SYS_PTRACE, as in "
                "containers, or a security module forbids it",
                pid);
    gt_fail(GT_EXIT_FAILED, "process %d cannot be stopped: %s", pid, strerror(error));
}

/* Without what ended meanwhile. */
static void drop_ended(struct gt_still *still)
{
    size_t n = 0;
    for (size_t i = 0; i < still->tasks; i++) {
        if (still->task[i].tid)
            still->task[n++] = still->task[i];
    }
    still->tasks = n;
}

static bool has_other_numbers(pid_t pid)
{
    char path[64], its[64] = "", ours[64] = "";
    snprintf(path, sizeof path, "/proc/%d/ns/pid", pid);
    if (readlink(path, its, sizeof its - 1) < 0 ||
        readlink("/proc/self/ns/pid", ours, sizeof ours - 1) < 0)
        return false;
    return strcmp(its, ours) != 0;
}

void gt_stop(struct gt_still *still, pid_t pid)
{
    struct stop s = {.still = still, .foreign = has_other_numbers(pid)};
    pthread_t thread;
    still->pid = (pid_t)gt_status_of(pid, "Tgid:"); /* any thread's id will do */
    if (!still->pid)
        gt_fail(GT_EXIT_FAILED, "there is no process %d", pid);
    if (still->pid == getpid())
        gt_fail(GT_EXIT_FAILED, "this is process %d itself", pid);
    read_name(still->pid, still->name);
    sigset_t all, before; /* Ctrl-C has to wait until all calls will be made again */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread, NULL, stop_and_look, &s);
    if (error)
        gt_fail(GT_EXIT_FAILED, "no thread can be made: %s", strerror(error));
    pthread_join(thread, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (s.error)
        refused(&s);
    if (s.other_machine)
        gt_fail(GT_EXIT_FAILED, "process %d is a program for another kind of processor", pid);
    drop_ended(still);
    if (!still->tasks)
        gt_fail(GT_EXIT_FAILED, "process %d has ended%s", pid,
                state_of(pid) == 'Z' ? "; its parent has not asked for its status yet" : "");
}
