/*
 * `gotrace attach PID`: loads the library into a program that was started without it, and records.
 * Looks at the threads one by one (stacks/stop.c), to find one that can be borrowed. The borrowed
 * thread makes a new thread, which loads the library while all threads run. `gotrace detach PID`
 * makes the library give the program its calls back. Another attach after that only asks the
 * library.
 */
#include "borrow.h"
#include "carry.h"
#include "choose.h"
#include "target_modules.h"
#include "take_picture.h"

#include "scripts/tool/alone.h"
#include "scripts/tool/run_options.h"
#include "scripts/tool/tool.h"

#include "encoder/read/need.h"
#include "preload/shared/options.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define FAIL(pid, format, ...) gt_fail(GT_EXIT_FAILED, "process %d " format, pid, ##__VA_ARGS__)

#define OUTPUT "GOTRACE_OUTPUT"
#define START "GOTRACE_START"

/* LOOK_S: so many seconds the stub of a killed command can be in the process. */
#define UNTIL "GOTRACE_ATTACH_UNTIL"
enum { LOOK_S = 4 * GT_STUB_PATIENCE_S, STAY_S = 1, LOAD_S = 60, TICK_NS = 1000000 };

static bool verbose;
static struct gt_carried carried = {.parent = -1, .directory = -1};

struct attach {
    struct gt_still still;
    int memory;
    uint64_t code; /* address for the stub */
    bool own_malloc;
    struct gt_stub_constants functions;
    struct gt_borrowing borrowed;
};

/*
 * Starts this command anew, for up to LOOK_S seconds, as the threads may soon be in a better state.
 * gt_stop works once in a process, so the command executes itself.
 */
static void try_again(pid_t pid, const char *why)
{
    char until[24], number[16], *given = getenv(UNTIL);
    time_t end = given ? (time_t)atoll(given) : time(NULL) + LOOK_S;
    if (time(NULL) > end)
        FAIL(pid, "%s", why);
    snprintf(until, sizeof until, "%lld", (long long)end);
    snprintf(number, sizeof number, "%d", pid);
    setenv(UNTIL, until, 1);
    nanosleep(&(struct timespec){.tv_nsec = 50 * TICK_NS}, NULL);
    execl("/proc/self/exe", "gotrace", "attach", number, verbose ? "--verbose" : NULL, NULL);
    FAIL(pid, "%s", why);
}

static void wait_a_tick(void)
{
    nanosleep(&(struct timespec){.tv_nsec = TICK_NS}, NULL);
}

/* Programs that are refused before anything is changed ---------------------------------------- */

static bool is_taken(pid_t pid)
{
    return gt_has_library(pid) && gt_alone_look(pid) != -ENOTCONN;
}

/*
 * Whether the library in the process takes commands. Waits up to a second: the new thread of a
 * command that was killed may still be loading it.
 */
static bool takes_commands(pid_t pid)
{
    enum { TICKS = 1000 };
    for (int i = 0; i < TICKS && is_taken(pid) && !gt_control_finds(pid); i++)
        wait_a_tick();
    return gt_control_finds(pid);
}

static void refuse_early(pid_t pid)
{
    size_t size;
    if (!gt_stub_code(&size))
        gt_fail(GT_EXIT_FAILED, "attaching is there for x86-64 only, on a processor with XSAVE");
    if (is_taken(pid))
        FAIL(pid, "has libgotrace.so already: gotrace start %d", pid);
    if (gt_is_secure(pid))
        FAIL(pid,
             "was started with more privileges than its caller's: nothing is recorded in such");
    if (gt_is_confined(pid))
        FAIL(pid, "confines itself by seccomp(2), which could end it for what attaching takes");
}

/* Looks at the threads and modules, and prepares all that a borrowed thread needs. */
static void look(struct attach *a, pid_t pid)
{
    char path[64];
    size_t n, size;
    gt_stop(&a->still, pid);
    if (!gt_unwind(&a->still))
        gt_fail(GT_EXIT_FAILED,
                "there is no libdw.so.1, which attaching takes: apt install libdw1");
    struct gt_loaded *loaded = gt_loaded_find(&a->still, &n);
    gt_attach_functions(&a->still, loaded, n, &a->functions);
    a->own_malloc = gt_attach_has_own_malloc(loaded);
    gt_stub_code(&size);
    a->code = gt_attach_room(&a->still, loaded, n, size);
    if (!a->code)
        FAIL(pid, "has no room for %zu bytes of code behind its own, its loader's or its libc's",
             size);
    if (gt_choose_is_in_use(&a->still, a->code, size))
        try_again(pid, "is being attached to just now");
    snprintf(path, sizeof path, "/proc/%d/mem", a->still.alive);
    a->memory = open(path, O_RDWR | O_CLOEXEC);
    if (a->memory < 0)
        FAIL(pid, "has memory that cannot be written: %s", strerror(errno));
}

/* Borrowing ---------------------------------------------------------------------------------- */

/* A thread that could be borrowed. */
struct candidate {
    const struct gt_still_thread *task;
    long sleeps; /* its count of sleeps at the last failed try; or -1 */
};

static long sleeps_of(const struct candidate *c)
{
    return gt_status_of(c->task->tid, "voluntary_ctxt_switches:");
}

static bool borrow_one(struct attach *a, struct candidate *c)
{
    pid_t pid = a->still.pid;
    enum gt_borrow how =
        gt_borrow(&a->still, c->task, a->memory, a->code, &a->functions, &a->borrowed);
    c->sleeps = how == GT_BORROW_CHANGED ? sleeps_of(c) : -1;
    if (how == GT_BORROW_REFUSED && a->borrowed.error == EPERM) /* another tracer was faster */
        try_again(pid, "is being debugged, or attached to by somebody else");
    if (how == GT_BORROW_REFUSED)
        FAIL(pid, "does not let its threads be stopped: %s", strerror(a->borrowed.error));
    if (how == GT_BORROW_FAILED)
        FAIL(pid, "could not make a thread; it goes on as before");
    return how == GT_BORROW_DONE;
}

/*
 * Tries all candidates for STAY_S seconds. A thread that has moved comes back to where it waits,
 * and is stopped only there. Each stop makes a thread begin its call anew, with the whole timeout.
 * So a thread with other callers than before is stopped again only after its call has ended.
 */
static bool borrow_any(struct attach *a, struct candidate *all, size_t n)
{
    for (time_t end = time(NULL) + STAY_S; time(NULL) <= end; wait_a_tick()) {
        for (size_t i = 0; i < n; i++) {
            /* The call that began anew is one more sleep. */
            bool moves = all[i].sleeps < 0 || sleeps_of(&all[i]) > all[i].sleeps + 1;
            if (moves && gt_choose_may_be_there(&a->still, all[i].task) && borrow_one(a, &all[i]))
                return true;
        }
    }
    return false;
}

static void borrow(struct attach *a)
{
    const struct gt_still_thread **task = gt_need(calloc(a->still.tasks + 1, sizeof *task));
    size_t n = gt_choose(&a->still, a->own_malloc, task);
    struct candidate *all = gt_need(calloc(n + 1, sizeof *all));
    sigset_t held, before; /* Ctrl-C waits until the thread is back */
    if (!n)
        try_again(
            a->still.pid,
            "has no thread that waits in a system call which can be made again: it computes, "
            "has something half done, as in a write, or is inside of its loader or allocator, "
            "or its stacks cannot be followed");
    for (size_t i = 0; i < n; i++)
        all[i] = (struct candidate){task[i], -1};
    sigfillset(&held);
    sigprocmask(SIG_SETMASK, &held, &before);
    gt_hurry(true);
    bool done = borrow_any(a, all, n);
    gt_hurry(false);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (!done)
        try_again(a->still.pid, "has no thread that stays in its calls for long enough");
    free(all);
    free(task);
}

/* The new thread ----------------------------------------------------------------------------- */

#define AT(a, field) (off_t)((a)->borrowed.pages + offsetof(struct gt_stub_pages, field))

static void put(struct attach *a, off_t at, const void *from, size_t size)
{
    if (pwrite(a->memory, from, size, at) != (ssize_t)size)
        FAIL(a->still.pid, "has ended");
}

static void get(struct attach *a, off_t at, void *to, size_t size)
{
    if (pread(a->memory, to, size, at) != (ssize_t)size)
        FAIL(a->still.pid, "has ended");
}

static void put_picture(struct attach *a)
{
    gt_find_waits(&a->still);
    size_t size;
    struct gt_picture *picture = gt_attach_picture(&a->still, GT_STUB_PICTURE_BYTES, &size);
    put(a, (off_t)a->borrowed.pages + GT_STUB_PICTURE, picture, size);
    free(picture);
}

static void await_load(struct attach *a)
{
    uint32_t done = 0;
    for (time_t end = time(NULL) + LOAD_S; !done; wait_a_tick()) {
        get(a, AT(a, done), &done, sizeof done);
        if (!done && time(NULL) > end)
            FAIL(a->still.pid, "is loading the library and does not get on: one of its threads is "
                               "inside of the loader");
    }
}

static _Noreturn void not_loaded(const struct attach *a, int result, const char *text)
{
    if (*text)
        FAIL(a->still.pid, "cannot load the library: %s", text);
    FAIL(a->still.pid, "has loaded the library, which does nothing there: %s", strerror(-result));
}

static void load(struct attach *a, const char *settings, size_t size)
{
    struct gt_stub_pages answer = {0};
    uint32_t yes = 1;
    int32_t not_made;
    get(a, AT(a, not_made), &not_made, sizeof not_made);
    if (not_made)
        FAIL(a->still.pid, "could not make a thread: %s", strerror(not_made));
    put(a, AT(a, path), carried.path, strlen(carried.path) + 1);
    put(a, AT(a, settings), settings, size);
    put_picture(a);
    put(a, AT(a, go), &yes, sizeof yes);
    await_load(a);
    get(a, AT(a, result), &answer.result, sizeof answer.result);
    get(a, AT(a, text), answer.text, sizeof answer.text - 1);
    put(a, AT(a, seen), &yes, sizeof yes);
    if (answer.result || *answer.text)
        not_loaded(a, answer.result, answer.text);
}

/* Removes the copy of the library, at any exit. */
static void drop_copy(void)
{
    gt_carry_end(&carried);
}

/* The commands ------------------------------------------------------------------------------- */

static void attach(pid_t pid)
{
    static char settings[GT_STUB_SETTINGS] = "GOTRACE_QUIET=1";
    char library[PATH_MAX];
    struct attach a = {.memory = -1};
    size_t quiet = strlen(settings) + 1;
    setenv(OUTPUT, GT_OUTPUT_DEFAULT, 0); /* in our directory, not the program's */
    size_t n = quiet + gt_run_settings(settings + quiet, sizeof settings - quiet - 1);
    if (n >= sizeof settings)
        gt_fail(GT_EXIT_USAGE, "settings are too long");
    refuse_early(pid);
    gt_find_library(library);
    look(&a, pid);
    borrow(&a);
    atexit(drop_copy);
    gt_carry(&carried, &a.still, library);
    load(&a, settings, n + 1);
    close(a.memory);
    if (verbose)
        printf("gotrace: no thread stood still for more than %s, but one for %s\n",
               gt_duration(a.still.stopped_ns), gt_duration(a.borrowed.paused_ns));
}

static void help(FILE *to, bool attaches)
{
    if (!attaches) {
        fputs("usage: gotrace detach PID\n\nEnds the recording of a program that was attached, "
              "which then runs as before.\n",
              to);
        return;
    }
    fputs("usage: gotrace attach [options] [--verbose] PID\n"
          "\n"
          "Records a running program that was started without libgotrace.so, until\n"
          "gotrace detach. Meanwhile it takes gotrace start, stop and snapshot.\n",
          to);
    gt_run_print_options(true);
    fputs("\nOther:\n"
          "      --verbose          print how long the program was stopped\n"
          "  -h, --help             print this\n",
          to);
}

/* Takes --verbose out of the arguments: it is no option of the library. */
static bool take_verbose(int *argc, char **argv)
{
    int n = 0;
    for (int i = 0; i < *argc; i++) {
        if (strcmp(argv[i], "--verbose") != 0)
            argv[n++] = argv[i];
    }
    bool found = n < *argc;
    argv[n] = NULL;
    *argc = n;
    return found;
}

static pid_t read_pid(int argc, char **argv, bool attaches)
{
    char *end = "";
    long pid = optind == argc - 1 ? strtol(argv[optind], &end, 10) : 0;
    if (pid <= 0 || pid > INT_MAX || *end) {
        if (optind == argc - 1)
            gt_say("%s: %s is no process id", argv[0], argv[optind]);
        help(stderr, attaches);
        exit(GT_EXIT_USAGE);
    }
    return (pid_t)pid;
}

/* Waits for other commands on this process to end: two stubs would have one place. */
static void take_turn(pid_t pid)
{
    FILE *f = gt_open_proc(pid, "auxv"); /* opening it takes the permission to debug the process */
    if (f)
        TEMP_FAILURE_RETRY(flock(fileno(f), LOCK_EX));
}

static bool starts_at_once(void)
{
    const char *start = getenv(START);
    return !start || strcmp(start, "manual") != 0;
}

/* Attaches to a process that was attached before: only --output and --start may differ. */
static int attach_again(pid_t pid)
{
    char settings[GT_STUB_SETTINGS], *end = settings;
    const char *output = "";
    end += gt_run_settings(settings, sizeof settings);
    for (char *s = settings; s < end; s += strlen(s) + 1) {
        if (strncmp(s, OUTPUT "=", sizeof OUTPUT) == 0)
            output = s + sizeof OUTPUT;
        else if (strncmp(s, START "=", sizeof START) != 0)
            FAIL(pid, "was attached before: of its options only --output and --start can change");
    }
    return gt_control("attach", pid, output);
}

int gt_command_attach(int argc, char **argv)
{
    bool attaches = strcmp(argv[0], "attach") == 0;
    verbose = take_verbose(&argc, argv);
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        help(stdout, attaches);
        return 0;
    }
    if (attaches)
        gt_run_read_options(argc, argv);
    pid_t pid = read_pid(argc, argv, attaches);
    take_turn(pid);
    if (!attaches)
        return gt_control("detach", pid, "");
    int status = takes_commands(pid) ? attach_again(pid) : (attach(pid), 0);
    return status || !starts_at_once() ? status : gt_control("start", pid, "");
}
