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
 */
#include "alone.h"
#include "calls.h"
#include "still.h"
#include "tool.h"

#include "encoder/read/need.h"

#include <ctype.h>
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STACK_MAX = 256 << 10, HEAD = 4096 };
enum { PATIENCE_NS = 1000000000, LOOK_NS = 10000000 };

struct stop {
    struct gt_still *still;
    bool foreign; /* it numbers its threads otherwise: a PID namespace */
    int memory;
    int error; /* of the first thread that could not be stopped */
    bool other_machine;
    size_t waiting; /* seized, and not stopped yet */
};

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
    FILE *f = gt_open_proc(tid, "stat");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = 0;
    const char *end = strrchr(text, ')'); /* of the name, which may hold anything */
    return end && end[1] == ' ' ? end[2] : 0;
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

/* The call that it is in; readable only while it sleeps in one. */
static struct gt_call call_before(pid_t tid)
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

static void seize(struct stop *s, pid_t tid)
{
    if (is_over(tid))
        return;
    if (ptrace(PTRACE_SEIZE, tid, 0, 0) != 0) {
        if (errno != ESRCH && !is_over(tid) && !s->error)
            s->error = errno;
        return;
    }
    struct gt_task *t = GT_MORE(s->still->task, s->still->tasks);
    t->tid = tid;
    t->own = s->foreign ? (pid_t)gt_status_of(tid, "NSpid:") : tid;
    t->state = GT_UNSTOPPABLE;
    t->before = call_before(tid);
    t->call = t->before;
    read_name(tid, t->name);
    s->waiting++;
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

/*
 * Any stop will do: by our request, by a signal that the thread was about to get and that it gets
 * when we let go of it, or because the process has been stopped, and will be again.
 */
static void arrived(struct stop *s, pid_t tid, int status)
{
    struct gt_task *t = (struct gt_task *)gt_still_task(s->still, tid);
    if (!t || t->arrived)
        return;
    s->waiting--;
    t->arrived = true;
    if (!WIFSTOPPED(status)) {
        t->tid = 0; /* it has ended */
        return;
    }
    bool ours = status >> 16 == PTRACE_EVENT_STOP;
    t->state = ours && WSTOPSIG(status) != SIGTRAP ? GT_HELD : GT_RUNS;
    t->signal = ours ? 0 : WSTOPSIG(status);
    read_registers(s, t);
}

/* Whether those that have not stopped sleep so deeply that it is vain to wait. */
static bool only_deep_sleepers(const struct gt_still *still)
{
    for (size_t i = 0; i < still->tasks; i++) {
        if (!still->task[i].arrived && state_of(still->task[i].tid) != 'D')
            return false;
    }
    return true;
}

static void interrupt(struct stop *s)
{
    struct gt_still *still = s->still;
    for (size_t i = 0; i < still->tasks; i++) {
        if (!still->task[i].arrived)
            ptrace(PTRACE_INTERRUPT, still->task[i].tid, 0, 0);
    }
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
        if (now() - last > LOOK_NS && only_deep_sleepers(still))
            return;
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
    {"futex", 0, 64, 128},         {"futex", 3, 0, 16},
    {"poll", 0, 0, 512},           {"ppoll", 0, 0, 512},
    {"ppoll", 2, 0, 16},           {"select", 1, 0, 128},
    {"select", 2, 0, 128},         {"select", 3, 0, 128},
    {"pselect6", 1, 0, 128},       {"pselect6", 2, 0, 128},
    {"pselect6", 3, 0, 128},       {"nanosleep", 0, 0, 16},
    {"clock_nanosleep", 2, 0, 16}, {"restart_syscall", 0, 64, 576},
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
        copy(s, at - before, (size_t)pointed[i].size);
        if (s->still->pieces == pieces && at % PAGE < before)
            copy(s, at, (size_t)pointed[i].size - before);
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
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", tid);
    s->memory = open(path, O_RDONLY | O_CLOEXEC);
}

static void look(struct stop *s)
{
    struct gt_still *still = s->still;
    pid_t any = 0;
    for (size_t i = 0; i < still->tasks && !any; i++)
        any = still->task[i].arrived ? still->task[i].tid : 0;
    open_memory(s, any);
    read_maps(s, any);
    for (size_t i = 0; i < still->tasks; i++) {
        const struct gt_task *t = &still->task[i];
        if (!t->arrived || !t->tid)
            continue;
        copy_stack(s, t);
        copy_pointed(s, t);
        copy_refused(s, t);
    }
    close(s->memory);
}

static void *stop_and_look(void *arg)
{
    struct stop *s = arg;
    while (seize_new(s))
        ;
    if (s->error)
        return NULL;
    uint64_t begin = now();
    do
        interrupt(s);
    while (seize_new(s));
    if (s->still->tasks && !s->error && !s->other_machine)
        look(s);
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

static _Noreturn void refused(pid_t pid, int error)
{
    char other[17] = "";
    pid_t tracer = (pid_t)gt_status_of(pid, "TracerPid:");
    bool mine = gt_status_of(pid, "Uid:") == (long)geteuid();
    if (tracer)
        read_name(tracer, other);
    if (is_over(pid) && error != EPERM)
        gt_fail(GT_EXIT_FAILED, "there is no process %d", pid);
    if (tracer)
        gt_fail(GT_EXIT_FAILED,
                "process %d is being debugged already, by process %d (%s): end that first", pid,
                tracer, other);
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
        refused(still->pid, s.error);
    if (s.other_machine)
        gt_fail(GT_EXIT_FAILED, "process %d is a program for another kind of processor", pid);
    drop_ended(still);
    if (!still->tasks)
        gt_fail(GT_EXIT_FAILED,
                "process %d is no program that runs: it has ended, or is the "
                "kernel's",
                pid);
}
