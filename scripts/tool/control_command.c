/*
 * `gotrace start|stop|snapshot PID`: asks the tracer in a running program, through the page that
 * preload/shared/control_page.h describes, and waits for its answer. A process of the same user
 * wrote that page; the command follows no address in it and executes nothing of it.
 */
#include "alone.h"
#include "tool.h"

#include "encoder/base/printable.h"
#include "encoder/base/strbuf.h"
#include "encoder/read/need.h"
#include "preload/shared/options.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* The request of each command, by the command's name. */
static const struct action {
    const char *name;
    uint32_t command;
    const char *done, *already; /* message of success, and of -EALREADY; NULL: none */
} actions[] = {
    {"start", GT_DRAIN_START, "recording to %s", "is recording already"},
    {"start --cpu", GT_DRAIN_SAMPLE, "recording to %s, with CPU samples", NULL},
    {"stop", GT_DRAIN_STOP, "%s", "is not recording"},
    {"snapshot", GT_DRAIN_SNAPSHOT, "written to %s", "is not recording"},
    {"attach", GT_CONTROL_ATTACH, NULL, NULL},
    {"detach", GT_CONTROL_DETACH, "detached; %s", "is not attached any more"},
};

#define FAIL(pid, format, ...) gt_fail(GT_EXIT_FAILED, "process %d " format, pid, ##__VA_ARGS__)

/* Finding the page --------------------------------------------------------------------------- */

static bool comm_is(const char *task, const char *comm)
{
    char path[PATH_MAX], text[32] = "";
    snprintf(path, sizeof path, "%s/comm", task);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    bool same = fgets(text, sizeof text, f) && strcspn(text, "\n") == strlen(comm) &&
                strncmp(text, comm, strlen(comm)) == 0;
    fclose(f);
    return same;
}

/* Opens the page's memfd, from the descriptors of a task; or -errno. */
static int open_in(const char *task)
{
    static const char expected[] = "/memfd:" GT_CONTROL_FILE " (deleted)";
    char path[PATH_MAX], target[sizeof expected + 1];
    snprintf(path, sizeof path, "%s/fd", task);
    DIR *dir = opendir(path);
    if (!dir)
        return -errno;
    int fd = -ENOENT;
    for (struct dirent *e; fd < 0 && (e = readdir(dir));) {
        snprintf(path, sizeof path, "%s/fd/%s", task, e->d_name);
        ssize_t n = readlink(path, target, sizeof target);
        if (n == sizeof expected - 1 && memcmp(target, expected, sizeof expected - 1) == 0) {
            fd = open(path, O_RDWR | O_CLOEXEC);
            fd = fd < 0 ? -errno : fd;
        }
    }
    closedir(dir);
    return fd;
}

static bool may_list_descriptors(const char *task)
{
    char path[80];
    snprintf(path, sizeof path, "%s/fd", task);
    return access(path, R_OK | X_OK) == 0;
}

/*
 * Opens the page's file, and finds the thread that serves it. -ENOENT: no thread does. -ESRCH or
 * -EACCES: no access to the process.
 *
 * The descriptors of a thread that is ending are root's, as it has no memory any more (the kernel's
 * task_dump_owner). So one refusal says nothing about the process: its first thread may have ended,
 * and so may the thread by which gotrace attach loaded the library.
 */
static int find_page(pid_t pid, char thread[64])
{
    char path[64];
    bool allowed = false;
    int fd = -ENOENT;
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *dir = opendir(path);
    if (!dir)
        return errno == ENOENT ? -ESRCH : -errno;
    for (struct dirent *e; fd < 0 && (e = readdir(dir));) {
        if (!isdigit(e->d_name[0]))
            continue;
        snprintf(thread, 64, "/proc/%d/task/%.16s", pid, e->d_name);
        allowed = allowed || may_list_descriptors(thread);
        if (comm_is(thread, GT_CONTROL_THREAD))
            fd = open_in(thread);
    }
    closedir(dir);
    return fd == -ENOENT && !allowed ? -EACCES : fd;
}

bool gt_has_library(pid_t pid)
{
    char line[4600];
    bool found = false;
    FILE *f = gt_open_proc(pid, "maps");
    while (f && !found && fgets(line, sizeof line, f))
        found = strstr(line, "/libgotrace.so") != NULL;
    if (f)
        fclose(f);
    return found;
}

/*
 * find_page; waits up to a second for a program that is just making its first thread, and ours, and
 * for the end of a thread that refuses.
 */
static int await_page(pid_t pid, char thread[64])
{
    struct timespec tick = {.tv_nsec = 20000000};
    int fd = find_page(pid, thread);
    for (int i = 0; fd < 0 && i < 50 && gt_has_threads(pid) && gt_has_library(pid); i++) {
        nanosleep(&tick, NULL);
        fd = find_page(pid, thread);
    }
    return fd;
}

/* The value of a variable in the environment that the program was started with; NULL: not set. */
static const char *variable_of(pid_t pid, const char *name)
{
    static char *text;
    static size_t room;
    const char *value = NULL;
    FILE *f = gt_open_proc(pid, "environ");
    for (size_t n = strlen(name); f && !value && getdelim(&text, &room, 0, f) > 0;) {
        if (strncmp(text, name, n) == 0 && text[n] == '=')
            value = text + n + 1;
    }
    if (f)
        fclose(f);
    return value;
}

static bool variable_is(pid_t pid, const char *name, const char *expected)
{
    const char *value = variable_of(pid, name);
    return value && strcmp(value, expected) == 0;
}

/* Says why a process with the library is not traced. */
static _Noreturn void is_untraced(pid_t pid)
{
    const char *root = variable_of(pid, "GOTRACE_ROOT_PID");
    bool confined = root && *root == 'x'; /* preload/shared/descent.c */
    if (variable_is(pid, "GOTRACE", "off"))
        FAIL(pid, "was started with GOTRACE=off: nothing is recorded in it. "
                  "GOTRACE_START=manual records when told to");
    if (variable_is(pid, "GOTRACE_CHILDREN", "0"))
        FAIL(pid, "is a child of the program that was started with GOTRACE_CHILDREN=0: "
                  "nothing is recorded in it");
    if (confined || gt_is_confined(pid))
        FAIL(pid, "confines itself by seccomp(2): nothing is recorded in it any more");
    FAIL(pid, "is not traced; its standard error may say why");
}

/* Prints the process's command line, quoted for a shell. One of more than MOST bytes: "PROGRAM …".
 */
static void print_command(pid_t pid, FILE *out)
{
    enum { MOST = 500 };
    char text[4 * MOST + 1], *word = NULL;
    struct gt_strbuf words = gt_strbuf_start(text, sizeof text);
    size_t room = 0, size = 0, first = 0;
    FILE *f = gt_open_proc(pid, "cmdline");
    for (ssize_t n; f && (n = getdelim(&word, &room, 0, f)) > 0; size += (size_t)n) {
        gt_strbuf_add(&words, " ");
        gt_shell_word(&words, word);
        first = first ? first : (size_t)(words.pos - text);
    }
    free(word);
    if (f)
        fclose(f);
    bool cut = size > MOST;
    fprintf(out, "%.*s%s", cut ? (int)first : INT_MAX, text, cut ? " …" : "");
}

static _Noreturn void has_no_library(pid_t pid, uint32_t command)
{
    char *line;
    size_t size;
    FILE *out = gt_need(open_memstream(&line, &size));
    print_command(pid, out);
    fclose(out);
    FAIL(pid,
         "does not run with libgotrace.so: gotrace attach %d, or from its start: gotrace %s --%s",
         pid, command == GT_DRAIN_SNAPSHOT ? "--ring=30s" : "--start=manual", line);
}

static bool kernel_is_old(void)
{
    struct utsname kernel;
    int major = 0, minor = 0;
    return uname(&kernel) == 0 && sscanf(kernel.release, "%d.%d", &major, &minor) == 2 &&
           (major < 5 || (major == 5 && minor < 9));
}

static _Noreturn void is_free(pid_t pid)
{
    FAIL(pid, "was forked by a program that had been attached before: gotrace attach %d", pid);
}

/* Why a process does not answer. SILENT: it has ended, or no reason is known; else no thread of it
 * runs. */
enum silence { ANSWERS, FROZEN, SILENT, STOPPED = 'T', DEBUGGED = 't' };

/* ANSWERS: a thread may run. */
static enum silence halted_how(pid_t pid)
{
    char how = gt_stopped_how(pid);
    return how ? (enum silence)how : gt_is_frozen(pid) ? FROZEN : ANSWERS;
}

/* Says why no thread of the process runs, if that is so. It takes the command when it goes on. */
static void cannot_ask_halted(pid_t pid, enum silence why)
{
    if (why == DEBUGGED)
        FAIL(pid, "is stopped by a debugger, and does not answer: let the debugger continue it");
    if (why == STOPPED)
        FAIL(pid, "is stopped, and does not answer: kill -CONT %d", pid);
    if (why == FROZEN)
        FAIL(pid,
             "is frozen by its cgroup (see /proc/%d/cgroup), and does not answer: thaw the cgroup, "
             "and repeat the command",
             pid);
}

/* Says why no thread serves the page, in a process with threads and the library. */
static _Noreturn void is_not_served(pid_t pid)
{
    int found = gt_alone_look(pid);
    if (found == -ENOTCONN)
        is_free(pid);
    if (found == -ENXIO || variable_is(pid, "GOTRACE", "off"))
        is_untraced(pid);
    if (kernel_is_old())
        FAIL(pid, "cannot be asked: the kernel is older than 5.9; use gotrace.h in it, or "
                  "GOTRACE_SIGNAL");
    if (found == -ENOENT || found == -EPROTO)
        FAIL(pid, "has another version of libgotrace.so");
    /* The tracer's thread may not have come to make the page. */
    cannot_ask_halted(pid, halted_how(pid));
    FAIL(pid,
         "cannot be asked: it has no thread of the tracer's, is about to end, or is not traced");
}

/* Whether we may look at the process: root may list its /proc/PID/fd and yet not see the files. */
static bool may_look_at(pid_t pid)
{
    FILE *f = gt_open_proc(pid, "maps");
    bool refused = !f && (errno == EACCES || errno == EPERM);
    if (f)
        fclose(f);
    return !refused;
}

static _Noreturn void cannot_find(pid_t pid, uint32_t command, int error)
{
    if (error == -ESRCH)
        gt_fail(GT_EXIT_FAILED, "there is no process %d", pid);
    if (geteuid() == 0 && !may_look_at(pid))
        FAIL(pid, "is another user's, and root may not look at it without CAP_SYS_PTRACE, as in "
                  "containers");
    if (error == -EACCES || error == -EPERM)
        FAIL(pid, "is another user's, or changed its own; try as root");
    if (error != -ENOENT)
        gt_fail(GT_EXIT_FAILED, "process %d: %s", pid, strerror(-error));
    if (!gt_has_library(pid))
        has_no_library(pid, command);
    is_not_served(pid);
}

/* Says why a program with one thread did not carry out the command. */
static _Noreturn void cannot_ask_alone(pid_t pid, uint32_t command, int error)
{
    static const struct {
        int error;
        const char *why;
    } reasons[] = {
        {EACCES, "has one thread: only who may debug it can ask it, try as root"},
        {EPERM, "has one thread: only who may debug it can ask it, try as root"},
        {EPROTO, "has another version of libgotrace.so"},
        {EOPNOTSUPP,
         "has one thread and is under seccomp(2), which may kill it for what that takes"},
        {EBUSY, "does not answer"},
        {ESRCH, "has ended, or become another program"},
    };
    if (error == -ETIMEDOUT || error == -EBUSY)
        cannot_ask_halted(pid, halted_how(pid));
    if (error == -ETIMEDOUT)
        FAIL(pid,
             "has one thread, and that made no call that may block for %d s: nothing was done, "
             "nor will be",
             GT_ALONE_BEGIN_S);
    if (error == -ENOTCONN)
        is_free(pid);
    if (error == -ENXIO)
        is_untraced(pid);
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        if (reasons[i].error == -error)
            FAIL(pid, "%s", reasons[i].why);
    }
    cannot_find(pid, command, error);
}

/* Maps the page, if it is sealed against shrinking. NULL: the file is no page of our version. */
static struct gt_control_page *map_page(int fd)
{
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st) != 0 ||
        st.st_size != sizeof(struct gt_control_page))
        return NULL;
    void *p = mmap(NULL, sizeof(struct gt_control_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    struct gt_control_page *page = p == MAP_FAILED ? NULL : p;
    return page && page->magic == GT_CONTROL_MAGIC && page->version == GT_CONTROL_VERSION ? page
                                                                                          : NULL;
}

/* Asking ------------------------------------------------------------------------------------- */

static void wait_for_change(_Atomic uint32_t *word, uint32_t from)
{
    struct timespec tenth = {.tv_nsec = 100000000};
    syscall(SYS_futex, word, FUTEX_WAIT, from, &tenth);
}

/* Asks and waits for the answer. */
static enum silence ask(pid_t pid, struct gt_control_page *page, const char *thread,
                        uint32_t command, const char *path)
{
    time_t begin = time(NULL);
    page->command = command;
    snprintf(page->path, sizeof page->path, "%s", path);
    uint32_t mine = atomic_fetch_add(&page->asked, 1) + 1, done;
    atomic_store(&page->wake, 1);
    syscall(SYS_futex, &page->wake, FUTEX_WAKE, 1);
    while ((done = atomic_load(&page->answered)) != mine) {
        time_t took = time(NULL) - begin;
        enum silence halted = took > 1 ? halted_how(pid) : ANSWERS;
        if (halted)
            return halted;
        if (took > GT_PATIENCE_S || access(thread, F_OK) != 0)
            return SILENT;
        wait_for_change(&page->answered, done);
    }
    return ANSWERS;
}

static int run(const struct action *action, pid_t pid, const char *path);

static int report(const struct action *action, pid_t pid, const struct gt_control_page *page)
{
    char text[sizeof page->text];
    snprintf(text, sizeof text, "%.*s", (int)sizeof text - 1, page->text);
    gt_make_printable(text, strlen(text));
    const char *said = page->result == 0 ? action->done : action->already;
    if ((page->result == 0 || page->result == -EALREADY) && !said)
        return 0;
    if (page->result == 0) {
        printf("gotrace: ");
        printf(action->done, text);
        printf("\n");
        return fflush(stdout) == 0 ? 0 : GT_EXIT_FAILED;
    }
    if (page->result == -EALREADY)
        FAIL(pid, "%s", action->already);
    if (page->result == -EINVAL && action->command == GT_DRAIN_SAMPLE)
        FAIL(pid, "has an older libgotrace.so, which takes CPU samples by GOTRACE_CPU_HZ only");
    if (page->result == -EOPNOTSUPP && action->command == GT_DRAIN_SAMPLE)
        FAIL(pid, "goes on as before: there are only CPU samples where %s", text);
    if (page->result == -ENOTCONN)
        FAIL(pid, "is not attached any more: gotrace attach %d", pid);
    if (page->result == -EINVAL)
        FAIL(pid,
             "is a child of a program that was attached, and has one thread; it ends with that");
    if (page->result == -EOPNOTSUPP && action->command >= GT_CONTROL_ATTACH)
        FAIL(pid, "was started with libgotrace.so: gotrace start, stop or snapshot");
    if (page->result == -ENOTSUP)
        FAIL(pid, "is no flight recorder (GOTRACE_RING): it writes to %s", text);
    FAIL(pid, "cannot write %s: %s", text, strerror(-page->result));
}

static int run_alone(const struct action *action, pid_t pid, const char *path)
{
    static struct gt_control_page page;
    int error = gt_alone_ask(pid, action->command, path, &page);
    if (error == -EAGAIN)
        return run(action, pid, path);
    if (error)
        cannot_ask_alone(pid, action->command, error);
    return report(action, pid, &page);
}

static int run(const struct action *action, pid_t pid, const char *path)
{
    char thread[64];
    int fd = await_page(pid, thread);
    if (fd == -ENOENT && !gt_has_threads(pid))
        return run_alone(action, pid, path);
    if (fd < 0)
        cannot_find(pid, action->command, fd);
    struct timespec tick = {.tv_nsec = 20000000};
    struct gt_control_page *page = map_page(fd);
    for (int i = 0; i < 50 && !page; i++) { /* the library may not have filled it in yet */
        nanosleep(&tick, NULL);
        page = map_page(fd);
    }
    if (!page)
        FAIL(pid, "has another version of libgotrace.so");
    TEMP_FAILURE_RETRY(flock(fd, LOCK_EX));
    do {
        enum silence why = ask(pid, page, thread, action->command, path);
        cannot_ask_halted(pid, why);
        if (why)
            FAIL(pid, "does not answer");
    } while (page->result == -EAGAIN && nanosleep(&tick, NULL) == 0); /* it is being attached */
    int status = report(action, pid, page);
    flock(fd, LOCK_UN);
    close(fd);
    return status;
}

int gt_control(const char *name, pid_t pid, const char *path)
{
    const struct action *action = actions;
    while (strcmp(action->name, name) != 0)
        action++;
    return run(action, pid, path);
}

bool gt_control_finds(pid_t pid)
{
    char thread[64];
    int fd = find_page(pid, thread);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static void help(FILE *to)
{
    fputs("usage: gotrace start [--cpu=HZ] PID\n"
          "       gotrace stop PID\n"
          "       gotrace snapshot PID [FILE]\n"
          "\n"
          "Starts or stops the recording of a program that runs with libgotrace.so, or\n"
          "writes its flight recorder (--ring) to FILE, which must not exist\n"
          "(default: a new file beside its other traces). Exit status 0: it is done.\n"
          "\n"
          "With --cpu=HZ each thread is sampled HZ times in a second of its CPU time, also\n"
          "in a recording that is under way: then stop ends only the samples.\n",
          to);
}

/* Makes the path absolute, as the program may have another directory. */
static void absolute(const char *path, char out[PATH_MAX])
{
    *out = 0;
    if (*path != '/' && !getcwd(out, PATH_MAX - 1))
        gt_fail(GT_EXIT_FAILED, "%s", strerror(errno));
    size_t used = strlen(out);
    int n = snprintf(out + used, PATH_MAX - used, "%s%s", used ? "/" : "", path);
    if ((size_t)n >= PATH_MAX - used)
        gt_fail(GT_EXIT_FAILED, "%s", strerror(ENAMETOOLONG));
}

/* Reads the value of --cpu=HZ; out: the number in digits. */
static void read_hz(const char *value, char out[PATH_MAX])
{
    uint32_t hz = 0;
    if (!gt_options_hz(value, &hz) || !hz)
        gt_fail(GT_EXIT_USAGE, "--cpu=%s is not a number from 1 to 10000", value);
    snprintf(out, PATH_MAX, "%u", hz);
}

int gt_command_control(int argc, char **argv)
{
    static const char cpu[] = "--cpu=";
    const struct action *action = actions;
    char *end = "", path[PATH_MAX] = "";
    while (strcmp(action->name, argv[0]) != 0)
        action++;
    if (argc > 1 && action->command == GT_DRAIN_START &&
        strncmp(argv[1], cpu, sizeof cpu - 1) == 0) {
        read_hz(argv[1] + sizeof cpu - 1, path);
        action++;
        argc--;
        argv++;
    }
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        help(stdout);
        return 0;
    }
    long pid = argc > 1 ? strtol(argv[1], &end, 10) : 0;
    if (pid <= 0 || pid > INT_MAX || *end || argc > 2 + (action->command == GT_DRAIN_SNAPSHOT)) {
        if (argc > 1 && (pid <= 0 || pid > INT_MAX || *end))
            gt_say("%s: %s is no process id", action->name, argv[1]);
        else if (argc == 1)
            gt_say("%s needs a process id: gotrace %s PID", action->name, action->name);
        help(stderr);
        return GT_EXIT_USAGE;
    }
    if (argc > 2)
        absolute(argv[2], path);
    return run(action, (pid_t)pid, path);
}
