/* See alone.h. */
#include "alone.h"

#include "encoder/base/cgroup.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* How long, in seconds, a command stays valid after its client last renewed it. */
#define LEASE_S 2

struct program {
    pid_t pid;
    FILE *maps; /* locked, so that clients take turns */
    int memory; /* valid until the program calls exec */
    uint64_t page;
    uint64_t attend;
};

/* What the kernel says ------------------------------------------------------------------------- */

FILE *gt_open_proc(pid_t pid, const char *name)
{
    char path[64], number[16] = "self";
    if (pid)
        snprintf(number, sizeof number, "%d", pid);
    snprintf(path, sizeof path, "/proc/%s/%s", number, name);
    return fopen(path, "re");
}

const char *gt_stat_of(pid_t pid, char *text, size_t size)
{
    char name[32]; /* of the thread alone: sums over all threads of a process are slow */
    snprintf(name, sizeof name, "task/%d/stat", pid);
    FILE *f = gt_open_proc(pid, name);
    size_t n = f ? fread(text, 1, size - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = 0;
    const char *end = strrchr(text, ')'); /* end of the name, which may contain anything */
    return end ? end + 1 : NULL;
}

char gt_stopped_how(pid_t pid)
{
    char text[512];
    const char *stat = gt_stat_of(pid, text, sizeof text);
    return stat && (stat[1] == 'T' || stat[1] == 't') ? stat[1] : 0;
}

/* Whether the file `name` of a cgroup has the word. */
static bool says(const char *mount, const char *group, size_t n, const char *name, const char *word)
{
    char path[PATH_MAX], text[256] = "";
    snprintf(path, sizeof path, "%s%.*s/%s", mount, (int)n, group, name);
    FILE *f = fopen(path, "re");
    size_t bytes = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[bytes] = 0;
    return strstr(text, word);
}

/* Version 2 is mounted at /sys/fs/cgroup, or beside version 1. */
bool gt_is_frozen(pid_t pid)
{
    char text[PATH_MAX];
    size_t n;
    FILE *f = gt_open_proc(pid, "cgroup");
    size_t bytes = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[bytes] = 0;
    const char *group = gt_cgroup_path(text, "freezer", &n);
    if (group && says("/sys/fs/cgroup/freezer", group, n, "freezer.state", "FROZEN"))
        return true;
    group = gt_cgroup_path(text, "", &n);
    return group && (says("/sys/fs/cgroup", group, n, "cgroup.events", "frozen 1") ||
                     says("/sys/fs/cgroup/unified", group, n, "cgroup.events", "frozen 1"));
}

long gt_sysctl(const char *path, long missing)
{
    long value = missing;
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%ld", &value) != 1)
        value = missing;
    if (f)
        fclose(f);
    return value;
}

/* The last number in that line of /proc/PID/status, written to that base. */
static unsigned long number_of(pid_t pid, const char *line_name, int base, unsigned long missing)
{
    char line[256];
    unsigned long number = missing;
    FILE *f = gt_open_proc(pid, "status");
    while (f && fgets(line, sizeof line, f)) {
        const char *last = strrchr(line, '\t');
        if (last && strncmp(line, line_name, strlen(line_name)) == 0)
            number = strtoul(last + 1, NULL, base);
    }
    if (f)
        fclose(f);
    return number;
}

long gt_status_of(pid_t pid, const char *line_name)
{
    return (long)number_of(pid, line_name, 10, 0);
}

uint64_t gt_signals_of(pid_t pid, const char *line_name)
{
    return number_of(pid, line_name, 16, UINT64_MAX);
}

/* Compares with our own filters, as all processes in a container may have some. */
bool gt_is_confined(pid_t pid)
{
    return gt_status_of(pid, "Seccomp:") > gt_status_of(0, "Seccomp:") ||
           gt_status_of(pid, "Seccomp_filters:") > gt_status_of(0, "Seccomp_filters:");
}

bool gt_is_secure(pid_t pid)
{
    Elf64_auxv_t entry;
    bool secure = false;
    FILE *f = gt_open_proc(pid, "auxv");
    while (f && fread(&entry, sizeof entry, 1, f) == 1)
        secure |= entry.a_type == AT_SECURE && entry.a_un.a_val;
    if (f)
        fclose(f);
    return secure;
}

/* The program's memory ------------------------------------------------------------------------- */

/* Reads memory; 0, or -ESRCH: the program is gone. */
static int get(const struct program *p, uint64_t at, void *to, size_t size)
{
    return pread(p->memory, to, size, (off_t)at) == (ssize_t)size ? 0 : -ESRCH;
}

static int put(const struct program *p, uint64_t at, const void *from, size_t size)
{
    return pwrite(p->memory, from, size, (off_t)at) == (ssize_t)size ? 0 : -ESRCH;
}

#define GET(p, field, to) \
    get(p, (p)->page + offsetof(struct gt_control_page, field), to, sizeof *(to))
#define PUT(p, field, from) \
    put(p, (p)->page + offsetof(struct gt_control_page, field), from, sizeof *(from))

static uint64_t find_magic(const struct program *p, uint64_t from, uint64_t to)
{
    uint64_t magic = 0;
    for (; from < to; from += GT_CONTROL_ALIGN) {
        if (get(p, from, &magic, sizeof magic) == 0 && magic == GT_CONTROL_MAGIC)
            return from;
    }
    return 0;
}

static int find_page(struct program *p)
{
    char line[4600], rights[8];
    unsigned long from, to;
    while (!p->page && fgets(line, sizeof line, p->maps)) {
        if (strstr(line, "/libgotrace.so") &&
            sscanf(line, "%lx-%lx %7s", &from, &to, rights) == 3 && strncmp(rights, "rw", 2) == 0)
            p->page = find_magic(p, from, to);
    }
    return p->page ? 0 : -ENOENT;
}

static int open_program(struct program *p)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", p->pid);
    p->memory = open(path, O_RDWR | O_CLOEXEC);
    if (p->memory < 0)
        return errno == ENOENT ? -ESRCH : -errno;
    p->maps = gt_open_proc(p->pid, "maps");
    if (!p->maps)
        return errno == ENOENT ? -ESRCH : -errno;
    TEMP_FAILURE_RETRY(flock(fileno(p->maps), LOCK_EX));
    return find_page(p);
}

/* Whether the page is of our version, and of the process we mean, not of its parent by vfork. */
static int check(struct program *p)
{
    struct gt_control_page page;
    int error = get(p, p->page, &page, sizeof page);
    if (error)
        return error;
    if (page.version != GT_CONTROL_VERSION)
        return -EPROTO;
    long pid = gt_status_of(p->pid, "NSpid:"); /* its pid in its own container */
    if (page.pid < 0 && (!pid || page.pid == -pid))
        return -ENOTCONN;
    if (!page.pid || (pid && page.pid != pid))
        return -ENXIO;
    p->attend = (uintptr_t)page.attend;
    return 0;
}

static void close_program(const struct program *p)
{
    if (p->maps)
        fclose(p->maps);
    if (p->memory >= 0)
        close(p->memory);
}

int gt_alone_look(pid_t pid)
{
    struct program p = {.pid = pid};
    int error = open_program(&p);
    error = error ? error : check(&p);
    close_program(&p);
    return error;
}

/* Asking --------------------------------------------------------------------------------------- */

/* Sets the time until which the command is valid; 0: withdraws the command. */
static int put_until(const struct program *p, int64_t until)
{
    return PUT(p, until, &until);
}

static int kick(const struct program *p)
{
    uint8_t yes = 1; /* the other bytes are the program's: see gt_drain_unattended */
    int error = put_until(p, time(NULL) + LEASE_S);
    return error ? error : put(p, p->attend, &yes, sizeof yes);
}

bool gt_has_threads(pid_t pid)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    return stat(path, &st) == 0 && st.st_nlink > 3; /* a link for each thread, and two more */
}

static void wait_a_little(void)
{
    struct timespec tick = {.tv_nsec = 5000000};
    nanosleep(&tick, NULL);
}

/* Waits until the program has finished a command of a client before us. */
static int await_turn(const struct program *p)
{
    time_t end = time(NULL) + GT_PATIENCE_S;
    uint32_t taken = 0, answered = 1;
    int error = put_until(p, 0);
    while (!error && taken != answered) {
        error = GET(p, answered, &answered);
        error = error ? error : GET(p, taken, &taken);
        if (!error && taken != answered && time(NULL) > end)
            return -EBUSY;
        if (taken != answered)
            wait_a_little();
    }
    return error;
}

static int write_command(const struct program *p, uint32_t command, const char *path,
                         uint32_t *number)
{
    char whole[PATH_MAX] = "";
    strncpy(whole, path, sizeof whole - 1);
    int error = PUT(p, command, &command);
    error = error ? error : PUT(p, path, &whole);
    error = error ? error : GET(p, asked, number);
    ++*number;
    return error ? error : PUT(p, asked, number);
}

/* Waits until the program begins the command; -ETIMEDOUT, -EAGAIN: the command is withdrawn. */
static int await_begin(const struct program *p, uint32_t number)
{
    time_t end = time(NULL) + GT_ALONE_BEGIN_S;
    uint32_t taken;
    int error = 0, why = 0;
    while (!error && !why) {
        error = kick(p);
        wait_a_little();
        error = error ? error : GET(p, taken, &taken);
        if (!error && taken == number)
            return 0;
        why = gt_has_threads(p->pid) ? -EAGAIN : time(NULL) > end ? -ETIMEDOUT : 0;
    }
    error = error ? error : put_until(p, 0);
    error = error ? error : GET(p, taken, &taken);
    return error ? error : taken == number ? 0 : why;
}

static int await_end(const struct program *p, uint32_t number)
{
    time_t end = time(NULL) + GT_PATIENCE_S;
    uint32_t answered;
    int error;
    while ((error = GET(p, answered, &answered)) == 0 && answered != number) {
        if (time(NULL) > end)
            return -EBUSY;
        wait_a_little();
    }
    return error;
}

static int ask(const struct program *p, enum gt_drain_command command, const char *path)
{
    uint32_t number;
    int error = await_turn(p);
    error = error ? error : write_command(p, command, path, &number);
    error = error ? error : await_begin(p, number);
    return error ? error : await_end(p, number);
}

int gt_alone_ask(pid_t pid, enum gt_drain_command command, const char *path,
                 struct gt_control_page *answer)
{
    struct program p = {.pid = pid};
    int error = open_program(&p);
    error = error ? error : check(&p);
    error = !error && gt_is_confined(pid) ? -EOPNOTSUPP : error;
    error = error ? error : ask(&p, command, path);
    error = error ? error : get(&p, p.page, answer, sizeof *answer);
    close_program(&p);
    return error ? error : answer->result == -ETIMEDOUT ? -ETIMEDOUT : 0;
}
