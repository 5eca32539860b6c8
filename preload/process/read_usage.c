/* See read_usage.h. Formats: proc(5); schedstat is in Linux's
 * Documentation/scheduler/sched-stats.rst.
 */
#include "read_usage.h"

#include "process_state.h"

#include "encoder/base/cgroup.h"
#include "encoder/base/clock.h"
#include "encoder/base/file.h"
#include "encoder/base/hash.h"
#include "encoder/base/libc.h"
#include "encoder/base/strbuf.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static _Atomic bool forbidden, apart;

static bool is_forbidden(void)
{
    return atomic_load_explicit(&forbidden, memory_order_relaxed);
}

void gt_usage_forbid(void)
{
    atomic_store(&forbidden, true);
}

void gt_usage_apart(void)
{
    atomic_store(&apart, true);
}

bool gt_usage_is_apart(void)
{
    return atomic_load_explicit(&apart, memory_order_relaxed);
}

/* Clocks ------------------------------------------------------------------------------------- */

/* 0 or an errno. Passes the clock's ID as 32 bits, as seccomp(2) filters see it. */
static int read_clock(clockid_t clock, struct gt_usage *usage)
{
    struct timespec ts;
    if (gt_syscall(SYS_clock_gettime, (unsigned long)(uint32_t)clock, &ts) != 0)
        return errno;
    usage->of[GT_USED_CPU] = (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
    usage->known |= GT_KNOWN_CPU;
    return 0;
}

static int read_clock_of(uint32_t tid, struct gt_usage *usage)
{
    return is_forbidden() ? EPERM : read_clock(gt_clock_of_thread(tid), usage);
}

/* Whether the thread has ended. Asks again, since a seccomp filter may have made the EINVAL. */
static bool is_gone(uint32_t tid)
{
    return gt_syscall(SYS_sched_getscheduler, tid) < 0 && errno == ESRCH;
}

/* Files -------------------------------------------------------------------------------------- */

enum { FILE_MAX = 4096 };

/*
 * Whether a file may be opened. In a descriptor table that other threads share, even a short-lived
 * descriptor of ours may disturb them.
 */
static bool may_open(void)
{
    return gt_usage_is_apart() || gt_libc_single_threaded(!gt_process_had_threads());
}

/* Stores "" if the file cannot be read. */
size_t gt_usage_read_file(char *text, size_t size, uint32_t tid, const char *name)
{
    char path[64];
    struct gt_strbuf p = gt_strbuf_start(path, sizeof path);
    gt_strbuf_add(&p, "/proc/self/task/");
    gt_strbuf_decimal(&p, tid);
    gt_strbuf_add(&p, name);
    *text = 0;
    if (may_open())
        gt_file_read_text(path, text, size);
    return strlen(text);
}

/* Reads the number at *p after blanks, and moves *p behind it. */
static bool number(const char **p, uint64_t *value)
{
    *p += strspn(*p, " \t");
    if (**p < '0' || **p > '9')
        return false;
    for (*value = 0; **p >= '0' && **p <= '9'; ++*p)
        *value = *value * 10 + (uint64_t)(**p - '0');
    return true;
}

/*
 * Reads the time on CPU, the time in run queues and the number of slices. schedstat's CPU time
 * stands still while the thread runs; the CPU clock does not, and is read after it. So a schedstat
 * that is ahead of the clock belongs to another thread: /proc may show the PIDs of another PID
 * namespace. If there are no slices, the kernel does not count. Returns 0, or the errno of reading
 * the clock.
 */
static int read_queue(uint32_t tid, struct gt_usage *usage)
{
    char text[FILE_MAX];
    const char *p = text;
    uint64_t ran, queue, slices;
    gt_usage_read_file(text, sizeof text, tid, "/schedstat");
    bool whole = number(&p, &ran) && number(&p, &queue) && number(&p, &slices);
    int error = read_clock_of(tid, usage);
    if (error && whole) { /* a seccomp filter forbids the clock: schedstat will do */
        usage->of[GT_USED_CPU] = ran;
        usage->known |= GT_KNOWN_CPU;
        error = 0;
    }
    if (error || !whole || !slices || ran > usage->of[GT_USED_CPU])
        return error;
    usage->of[GT_USED_QUEUE] = queue;
    usage->of[GT_USED_SLICES] = slices;
    usage->known |= GT_KNOWN_QUEUE;
    return 0;
}

static bool find_number(const char *text, const char *name, uint64_t *value)
{
    const char *p = strstr(text, name);
    p = p ? p + strlen(name) : "";
    return number(&p, value);
}

/* A thread's line in /proc. Behind the name, which stands in brackets and may contain brackets, are
 * the letter of the thread's state and numbers. */
struct stat_line {
    char text[FILE_MAX];
    const char *behind;
};

static bool read_stat(struct stat_line *line, uint32_t tid)
{
    gt_usage_read_file(line->text, sizeof line->text, tid, "/stat");
    line->behind = strrchr(line->text, ')');
    return line->behind && strlen(line->behind) > 3;
}

static bool runs(const struct stat_line *line)
{
    return line->behind[2] == 'R';
}

/* /proc/…/syscall of a sleeping thread has the call's number, and its arguments in hexadecimal. */
bool gt_usage_sleeps(uint32_t tid, uintptr_t *first)
{
    char text[FILE_MAX];
    const char *p = text;
    uint64_t call;
    gt_usage_read_file(text, sizeof text, tid, "/syscall");
    if (!number(&p, &call))
        return false;
    *first = strtoul(p, NULL, 16);
    return true;
}

/* Reads field number `which`, as proc(5) counts, after the letter. */
static bool field(const struct stat_line *line, int which, uint64_t *value)
{
    enum { LETTER = 3 };
    const char *p = line->behind + 3;
    for (int i = LETTER; i < which; i++) {
        p += strspn(p, " -"); /* some may be negative */
        if (!number(&p, value))
            return false;
    }
    return true;
}

static bool read_faults(uint32_t tid, struct gt_usage *usage)
{
    enum { MINOR_FAULTS = 10, MAJOR_FAULTS = 12, SYSTEM_TIME = 15, TICK_NS = 10000000 };
    struct stat_line line;
    uint64_t ticks;
    if (!read_stat(&line, tid) || !field(&line, MAJOR_FAULTS, &usage->of[GT_USED_FAULTS]) ||
        !field(&line, MINOR_FAULTS, &usage->of[GT_USED_TOUCHED]) ||
        !field(&line, SYSTEM_TIME, &ticks))
        return false;
    usage->of[GT_USED_SYSTEM] = ticks * TICK_NS;
    usage->known |= runs(&line) ? GT_KNOWN_RUNS : 0;
    return true;
}

bool gt_usage_where(uint32_t tid, struct gt_where_now *where)
{
    enum { PROCESSOR = 39 };
    struct stat_line line;
    struct gt_usage before = {0}, after = {0};
    uint64_t cpu;
    if (read_clock_of(tid, &before) || !read_stat(&line, tid) || !field(&line, PROCESSOR, &cpu) ||
        read_clock_of(tid, &after))
        return false;
    bool ran = after.of[GT_USED_CPU] != before.of[GT_USED_CPU]; /* while `stat` was read */
    *where = (struct gt_where_now){.sleeps = !runs(&line),
                                   .runs = runs(&line) && ran,
                                   .cpu = (uint32_t)cpu,
                                   .cpu_ns = before.of[GT_USED_CPU]};
    return true;
}

/* Halts -------------------------------------------------------------------------------------- */

/* A cgroup that a process is in, by version 1 of cgroups or 2. */
struct group {
    const char *mount, *quota; /* quota: the file that begins with a digit if there is one */
    const char *path;          /* NULL: there is no such group */
    size_t n;                  /* length of the path */
};

static struct group group_in(const char *text)
{
    struct group g = {.mount = "/sys/fs/cgroup/cpu", .quota = "/cpu.cfs_quota_us"};
    g.path = gt_cgroup_path(text, "cpu", &g.n);
    if (!g.path) {
        g = (struct group){.mount = "/sys/fs/cgroup", .quota = "/cpu.max"};
        g.path = gt_cgroup_path(text, "", &g.n);
    }
    if (g.path && g.n == 1) /* "/" */
        g.n = 0;
    return g;
}

/* The group above; false: there is none. In a cgroup namespace the last is the container's. */
static bool go_up(struct group *g)
{
    if (!g->n)
        return false;
    while (g->path[--g->n] != '/')
        ;
    return true;
}

/* Reads a file of the group as a text; "": it cannot be read. */
static void read_of_group(const struct group *g, const char *name, char text[FILE_MAX])
{
    char path[FILE_MAX + 64];
    struct gt_strbuf p = gt_strbuf_start(path, sizeof path);
    gt_strbuf_add(&p, g->mount);
    gt_strbuf_add_n(&p, g->path, g->n);
    gt_strbuf_add(&p, name);
    gt_file_read_text(path, text, FILE_MAX);
}

static bool has_quota(const struct group *g)
{
    char text[FILE_MAX];
    read_of_group(g, g->quota, text);
    return *text >= '0' && *text <= '9';
}

/* Adds the counts of a cgroup, see cpu.stat in Linux's cgroup-v2.rst and sched-bwc.rst. */
static void add_throttled(const struct group *g, struct gt_halts_count *count)
{
    char text[FILE_MAX];
    uint64_t times, ns, us;
    read_of_group(g, "/cpu.stat", text);
    count->throttled += find_number(text, "nr_throttled", &times) ? times : 0;
    count->throttled_ns += find_number(text, "throttled_time", &ns) ? ns : 0;
    count->throttled_ns += find_number(text, "throttled_usec", &us) ? us * 1000 : 0;
}

/* Drain side. */
static struct {
    unsigned calls;
    bool limited; /* the group or one above has had a quota */
} halts;

/* Asks for quotas at the first call and at every sixteenth: most groups have none, but one may be
 * set later. */
void gt_usage_halts(struct gt_halts_count *count)
{
    enum { AGAIN = 16 };
    char text[FILE_MAX];
    const char *p = text;
    uint64_t ran;
    uint32_t own = (uint32_t)gt_syscall(SYS_gettid);
    gt_usage_read_file(text, sizeof text, own, "/schedstat");
    if (number(&p, &ran))
        number(&p, &count->queue_ns);
    if (halts.calls++ % AGAIN && !halts.limited)
        return;
    gt_usage_read_file(text, sizeof text, own, "/cgroup");
    struct group group = group_in(text), g = group;
    for (size_t i = 0; i < group.n; i++)
        count->group = gt_hash_mix(count->group, (unsigned char)group.path[i]);
    for (bool is = group.path && !halts.limited; is; is = go_up(&g))
        halts.limited |= has_quota(&g);
    g = group;
    for (bool is = group.path && halts.limited; is; is = go_up(&g))
        add_throttled(&g, count);
}

void gt_usage_after_fork(void)
{
    atomic_store(&apart, false);
    halts.calls = 0;
    halts.limited = false;
}

static void read_own_switches(struct gt_usage *usage)
{
    struct rusage own;
    if (is_forbidden() || gt_syscall(SYS_getrusage, RUSAGE_THREAD, &own) != 0)
        return;
    usage->of[GT_USED_VOLUNTARY] = (uint64_t)own.ru_nvcsw;
    usage->of[GT_USED_INVOLUNTARY] = (uint64_t)own.ru_nivcsw;
    usage->of[GT_USED_FAULTS] = (uint64_t)own.ru_majflt;
    usage->of[GT_USED_SYSTEM] =
        (uint64_t)own.ru_stime.tv_sec * 1000000000 + (uint64_t)own.ru_stime.tv_usec * 1000;
    usage->of[GT_USED_TOUCHED] = (uint64_t)own.ru_minflt;
    usage->known |= GT_KNOWN_SWITCHES | GT_KNOWN_RUNS;
}

uint64_t gt_usage_own_waits(void)
{
    struct gt_usage usage = {0};
    read_own_switches(&usage);
    return usage.known ? usage.of[GT_USED_VOLUNTARY] : UINT64_MAX;
}

static void read_switches(uint32_t tid, struct gt_usage *usage)
{
    char text[FILE_MAX];
    if (tid == (uint32_t)gt_syscall(SYS_gettid)) {
        read_own_switches(usage);
        return;
    }
    gt_usage_read_file(text, sizeof text, tid, "/status");
    bool whole =
        find_number(text, "\nvoluntary_ctxt_switches:", &usage->of[GT_USED_VOLUNTARY]) &&
        find_number(text, "\nnonvoluntary_ctxt_switches:", &usage->of[GT_USED_INVOLUNTARY]) &&
        read_faults(tid, usage);
    usage->known |= whole ? GT_KNOWN_SWITCHES : 0;
}

static void read_own(struct gt_usage *usage)
{
    if (!is_forbidden())
        read_clock(CLOCK_THREAD_CPUTIME_ID, usage);
    read_own_switches(usage);
}

bool gt_usage_read(uint32_t tid, unsigned wanted, struct gt_usage *usage)
{
    usage->known = 0;
    if (!tid) {
        read_own(usage);
        return true;
    }
    int error = wanted & GT_KNOWN_QUEUE ? read_queue(tid, usage) : read_clock_of(tid, usage);
    if (!error && (wanted & GT_KNOWN_SWITCHES))
        read_switches(tid, usage);
    return error != EINVAL || !is_gone(tid);
}
