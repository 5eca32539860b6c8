/*
 * Makes the picture of a running process. Its threads are visited one after the other (visit.c),
 * and the memory that is needed of each is copied (copying.c). Names and lines are found
 * afterwards.
 *
 * If gotrace is killed meanwhile, the kernel releases the thread that is stopped. gotrace does all
 * this in a thread of its own. If a seized thread of the program does not stop, the end of our
 * thread releases it, and a new thread of ours goes on.
 *
 * If the process executes another program meanwhile, everything begins again.
 */
#include "python_threads.h"
#include "visit.h"

#include "encoder/read/need.h"
#include "scripts/tool/alone.h"
#include "scripts/tool/tool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { TICK_US = 10000, ROUND_NS = 1000000, ROUNDS = 50, PROGRAMS_MOST = 1000 };
enum { ASKED_MOST = 32 }; /* asked to stop at a time: the last stands while others are read */

/* The course ----------------------------------------------------------------------------------- */

/* Adds a task for each new thread. Returns whether there were any. */
static bool find_new(struct gt_still *still)
{
    char path[64];
    size_t before = still->tasks;
    snprintf(path, sizeof path, "/proc/%d/task", still->pid);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        pid_t tid = atoi(e->d_name);
        if (tid && !gt_still_task(still, tid))
            GT_ADD(still->task, still->tasks)->tid = tid;
    }
    if (dir)
        closedir(dir);
    return still->tasks > before;
}

/*
 * A thread through which /proc shows memory and files: the first thread's entry does not once it
 * has ended.
 */
static pid_t find_alive(const struct gt_still *still)
{
    for (size_t i = 0; i < still->tasks; i++) {
        if (!gt_is_over(still->task[i].tid))
            return still->task[i].tid;
    }
    return 0;
}

/* Visits all threads. False: some of them move, or one has not stopped. */
static bool visit_all(struct gt_stop *s, bool last)
{
    bool done = true;
    for (size_t i = 0; i < s->still->tasks && !s->error && !s->other_machine; i++) {
        if (!s->still->task[i].done)
            gt_visit(s, &s->still->task[i], last);
        if (s->asked == ASKED_MOST)
            gt_visit_asked(s);
    }
    gt_visit_asked(s);
    for (size_t i = 0; i < s->still->tasks; i++)
        done &= s->still->task[i].done;
    return done;
}

/* Visits in rounds. New threads may come all the time, so the number of rounds has a limit. */
static void *visit_rounds(void *arg)
{
    struct gt_stop *s = arg;
    sigset_t its;
    sigemptyset(&its);
    sigaddset(&its, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &its, NULL);
    while (!s->error && !s->other_machine && s->round++ < 2 * ROUNDS) {
        bool all_known = !find_new(s->still);
        if (!all_known)
            gt_python_meet_threads();
        bool done = visit_all(s, s->round >= ROUNDS);
        if (s->holds || (done && all_known))
            break;
        if (!done)
            nanosleep(&(struct timespec){.tv_nsec = ROUND_NS}, NULL);
    }
    return NULL;
}

static void set_timer(bool on)
{
    struct itimerval every = {{0, on ? TICK_US : 0}, {0, on ? TICK_US : 0}};
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = gt_visit_tick, .sa_flags = SA_RESTART},
              NULL);
    setitimer(ITIMER_REAL, &every, NULL);
}

/* The rest ----------------------------------------------------------------------------------- */

static long yama(void)
{
    return gt_sysctl("/proc/sys/kernel/yama/ptrace_scope", 0);
}

/* Whether the process is the kernel's: PF_KTHREAD among its flags. */
static bool is_kernels(pid_t pid)
{
    return gt_flags_of(pid) & 0x200000;
}

/*
 * Whether we may debug the process. Opening its memory needs the same permission as seizing it, and
 * works while it has another tracer: __ptrace_may_access.
 */
static bool may_debug(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static _Noreturn void refused(struct gt_stop *s)
{
    pid_t pid = s->still->pid;
    int error = s->error;
    bool mine = gt_status_of(pid, "Uid:") == (long)geteuid();
    if (gt_is_over(pid) && error != EPERM)
        gt_fail(GT_EXIT_FAILED, "there is no process %d", pid);
    if (is_kernels(pid))
        gt_fail(GT_EXIT_FAILED, "process %d is no program: it is the kernel's", pid);
    if (s->tracer)
        gt_fail(GT_EXIT_FAILED,
                "process %d is being debugged already, by process %d (%s): end that first", pid,
                s->tracer, s->tracer_name);
    if (error == EPERM && may_debug(pid))
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

/* Removes threads that have ended meanwhile, or were never visited. */
static void drop_unseen(struct gt_still *still)
{
    size_t n = 0;
    for (size_t i = 0; i < still->tasks; i++) {
        if (still->task[i].done && !still->task[i].gone)
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

/*
 * Visits from a thread of ours until all is done. If a seized thread does not stop, the end of our
 * thread releases it.
 */
static void visit_by_threads(struct gt_stop *s)
{
    pthread_t thread;
    s->round = 0;
    do {
        s->holds = false;
        int error = pthread_create(&thread, NULL, visit_rounds, s);
        if (error)
            gt_fail(GT_EXIT_FAILED, "no thread can be made: %s", strerror(error));
        pthread_join(thread, NULL);
    } while (s->holds && !s->error);
}

/*
 * Whether the process has ended. For a moment it looks so while a thread becomes the first one of
 * another program, hence the tries.
 */
static bool has_ended(struct gt_still *still)
{
    enum { TRIES = 20 };
    for (int i = 0; i < TRIES; i++) {
        find_new(still);
        if (find_alive(still))
            return false;
        nanosleep(&(struct timespec){.tv_nsec = ROUND_NS}, NULL);
    }
    return true;
}

/* False: the process executes another program now. */
static bool look(struct gt_stop *s)
{
    struct gt_still *still = s->still;
    find_new(still);
    still->alive = find_alive(still);
    if (!still->alive) {
        drop_unseen(still);
        return has_ended(still);
    }
    int error = gt_copy_open(still);
    if (error == EACCES || error == EPERM)
        s->error = EPERM;
    if (error)
        return s->error;
    visit_by_threads(s);
    drop_unseen(still);
    return s->error || (still->tasks && gt_copy_is_same(still)) || has_ended(still);
}

void gt_stop(struct gt_still *still, pid_t pid)
{
    struct gt_stop s = {.still = still};
    still->foreign = has_other_numbers(pid);
    still->pid = (pid_t)gt_status_of(pid, "Tgid:"); /* pid may be any thread's id */
    if (!still->pid)
        gt_fail(GT_EXIT_FAILED, "there is no process %d", pid);
    if (still->pid == getpid())
        gt_fail(GT_EXIT_FAILED, "this is process %d itself", pid);
    sigset_t all, before; /* Ctrl-C has to wait until every call will be repeated */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    set_timer(true);
    for (int i = 0; !is_kernels(pid) && !look(&s) && i < PROGRAMS_MOST; i++)
        gt_copy_close(still);
    set_timer(false);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (s.error || is_kernels(still->pid))
        refused(&s);
    if (s.other_machine)
        gt_fail(GT_EXIT_FAILED, "process %d is a program for another kind of processor", pid);
    gt_read_name(still->pid, still->name);
    drop_unseen(still);
    if (!still->tasks)
        gt_fail(GT_EXIT_FAILED, "process %d has ended%s", pid,
                gt_state_of(pid) == 'Z' ? "; its parent has not asked for its status yet" : "");
}
