/* Checks of this system: what recording, reports and viewers need. */
#include "doctor.h"

#include "scripts/tool/alone.h"
#include "scripts/tool/ask.h"
#include "scripts/tool/go.h"
#include "scripts/tool/package.h"
#include "scripts/tool/tool.h"

#include "preload/shared/options.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OLDEST_GLIBC = 31, OLDEST_GO = 23, LINE = 512 };

static bool has_capability(int number)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
    return syscall(SYS_capget, &head, data) == 0 &&
           data[CAP_TO_INDEX(number)].effective & CAP_TO_MASK(number);
}

/* Whether system calls are filtered, as container engines and service managers do. */
static bool is_filtered(void)
{
    return gt_status_of(0, "Seccomp:") == 2;
}

static void look_at_libc(struct gt_check *c)
{
    const char *version = gnu_get_libc_version();
    int minor = 0;
    sscanf(version, "2.%d", &minor);
    gt_found(c, minor < OLDEST_GLIBC ? GT_HEALTH_LIMITED : GT_HEALTH_OK, "glibc %s", version);
    gt_mend(c, "gotrace is made for glibc 2.%d and later: use a newer system or container",
            OLDEST_GLIBC);
}

static void look_at_kernel(struct gt_check *c)
{
    struct utsname u;
    int major = 0, minor = 0;
    uname(&u);
    sscanf(u.release, "%d.%d", &major, &minor);
    bool old = major < 5 || (major == 5 && minor < 9);
    gt_found(c, old ? GT_HEALTH_LIMITED : GT_HEALTH_OK, "Linux %s on %s, %ld CPUs%s", u.release,
             u.machine, sysconf(_SC_NPROCESSORS_ONLN), old ? ": no CPU state (--sched)" : "");
    gt_mend(c, "CPU state needs Linux 5.9 or later");
}

/*
 * Runs a try in a child, because a filter of system calls may kill who makes the call. Returns 0,
 * an errno, or -1: the try was killed.
 */
static int in_child(int (*try)(void))
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(try());
    if (child < 0 || waitpid(child, &status, 0) != child)
        return errno;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static const char *error_text(int error)
{
    return error < 0 ? "the process was killed for the call" : strerror(error);
}

/* The switches of the library in the environment; they are left out of the trial after this. */
static void look_at_settings(struct gt_check *c)
{
    char set[LINE] = "", name[64];
    const char *refusal = NULL, *off = getenv("GOTRACE");
    for (char **variable = environ; *variable && !refusal; variable++) {
        size_t n = strcspn(*variable, "="), length = strlen(set);
        if (strncmp(*variable, "GOTRACE", 7) != 0 || n >= sizeof name || !(*variable)[n] ||
            strncmp(*variable, "GOTRACE_ROOT_", 13) == 0)
            continue;
        snprintf(name, sizeof name, "%.*s", (int)n, *variable);
        snprintf(set + length, sizeof set - length, "%s%s", length ? ", " : "", *variable);
        refusal = gt_options_refusal(name, *variable + n + 1);
    }
    if (off && strcmp(off, "off") == 0) {
        gt_found(c, GT_HEALTH_MISSING, "GOTRACE=off is set: nothing is recorded");
        gt_mend(c, "unset GOTRACE");
    } else if (refusal && !*refusal) {
        gt_found(c, GT_HEALTH_LIMITED, "%s is set, but the library knows no such switch", name);
        gt_mend(c, "unset %s", name);
    } else if (refusal) {
        gt_found(c, GT_HEALTH_LIMITED, "%s=%s is not %s", name, getenv(name), refusal);
        gt_mend(c, "unset %s", name);
    } else {
        gt_found(c, *set ? GT_HEALTH_OK : GT_HEALTH_UNASKED, "%s", set);
    }
}

/* Removes the user's switches from the environment: the trial shows the system. */
static void drop_settings(void)
{
    char name[64];
    for (char **variable = environ; *variable;) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*variable, "="), *variable);
        if (strncmp(name, "GOTRACE", 7) == 0 && unsetenv(name) == 0)
            variable = environ;
        else
            variable++;
    }
}

/* Makes a folder where files can be written; false: there is none. */
static bool make_folder(char folder[PATH_MAX])
{
    const char *places[] = {getenv("TMPDIR"), "/tmp", "/dev/shm", "."};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (places[i] && *places[i]) {
            snprintf(folder, PATH_MAX, "%s/gotrace-doctor-XXXXXX", places[i]);
            if (mkdtemp(folder))
                return true;
        }
    }
    return false;
}

/* Records a program, and reads the trace. */
static void look_at_library(struct gt_check *c)
{
    char folder[PATH_MAX], trace[PATH_MAX + 16], line[LINE], why[PATH_MAX + LINE],
        output[PATH_MAX + 32];
    char own[PATH_MAX], self[PATH_MAX + 16];
    snprintf(self, sizeof self, "%s/gotrace", gt_own_directory(own));
    if (!make_folder(folder)) {
        gt_found(c, GT_HEALTH_MISSING, "neither this folder nor /tmp nor /dev/shm takes files: %s",
                 strerror(errno));
        gt_mend(c, "gotrace doctor, in a folder of yours");
        return;
    }
    snprintf(trace, sizeof trace, "%s/t.out", folder);
    snprintf(output, sizeof output, "--output=%s", trace);
    drop_settings();
    int status = gt_ask_errors(
        (const char *const[]){self, "--all-children", output, "--", "true", NULL}, why, sizeof why);
    bool reads = status == 0 && gt_ask((const char *const[]){self, "info", "--check", trace, NULL},
                                       line, sizeof line) == 0;
    unlink(trace);
    rmdir(folder);
    if (reads)
        gt_found(c, GT_HEALTH_OK, "a program was recorded here, and its trace is whole");
    else if (status == 0)
        gt_found(c, GT_HEALTH_MISSING, "a program ran, but there is no trace of it%s%s",
                 *why ? ": " : "", why);
    else if (status < 0)
        gt_found(c, GT_HEALTH_MISSING, "gotrace -- true did not start, or was killed");
    else
        gt_found(c, GT_HEALTH_MISSING, "gotrace -- true ended with status %d%s%s", status,
                 *why ? ": " : "", why);
    gt_mend(c, "gotrace -- true (prints what is wrong)");
}

static void look_at_lines(struct gt_check *c)
{
    bool has = gt_has_libdw();
    gt_found(c, has ? GT_HEALTH_OK : GT_HEALTH_LIMITED,
             has ? "libdw.so.1: names of functions, and lines of code"
                 : "no libdw.so.1: stacks have names of functions, but no lines of code");
    gt_mend_libdw(c);
}

/* Tries what GOTRACE_SCHED and kernel samples do; 0 or an errno. */
static int try_perf(void)
{
    struct perf_event_attr attr = {
        .size = sizeof attr,
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_DUMMY,
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .context_switch = 1,
        .sample_id_all = 1,
    };
    long fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        return errno;
    close((int)fd);
    return 0;
}

static void look_at_perf(struct gt_check *c)
{
    static const char path[] = "/proc/sys/kernel/perf_event_paranoid";
    long paranoid = gt_sysctl(path, -1);
    int error = in_child(try_perf);
    if (error == 0) {
        gt_found(c, GT_HEALTH_OK,
                 "perf_event_open(2) is allowed: CPU state, samples by the kernel");
        return;
    }
    gt_found(
        c, GT_HEALTH_LIMITED,
        "perf_event_open(2): %s (kernel.perf_event_paranoid is %ld%s): no CPU state (--sched); "
        "CPU samples are taken by signals",
        error_text(error), paranoid, is_filtered() ? ", and system calls are filtered" : "");
    if (error == EACCES && paranoid > 2) /* the setting's error; filters of containers have EPERM */
        gt_mend(c, "%ssysctl kernel.perf_event_paranoid=2", gt_as_root());
    else if (is_filtered())
        gt_mend(c, "give the container CAP_PERFMON (docker run --cap-add=PERFMON)");
    else
        gt_mend(c, "run the program as root, or use a kernel with perf_event_open(2)");
}

/* Stops a child of ours and reads its memory, as `stacks` does; 0 or an errno. */
static int try_ptrace(void)
{
    char byte = 0, from = 1;
    int error = 0, status;
    int ends[2];
    if (pipe(ends) != 0)
        return errno;
    pid_t child = fork();
    if (child == 0) { /* lives until this process closes the pipe, or is killed by a filter */
        close(ends[1]);
        read(ends[0], &byte, 1);
        _exit(0);
    }
    if (child < 0)
        return errno;
    struct iovec to = {&byte, 1}, there = {&from, 1};
    if (ptrace(PTRACE_SEIZE, child, NULL, NULL) != 0 ||
        process_vm_readv(child, &to, 1, &there, 1, 0) != 1)
        error = errno;
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return error;
}

static void look_at_ptrace(struct gt_check *c)
{
    long scope = gt_sysctl("/proc/sys/kernel/yama/ptrace_scope", 0);
    int error = in_child(try_ptrace);
    bool may = has_capability(CAP_SYS_PTRACE);
    if (error == EAGAIN) {
        gt_found(c, GT_HEALTH_MISSING, "fork(2): %s: this user has too many processes",
                 strerror(error));
        gt_mend(c, "ulimit -u unlimited (or end some of them)");
    } else if (error) {
        gt_found(c, GT_HEALTH_MISSING, "ptrace(2): %s%s: stacks and attach do not work",
                 error_text(error), is_filtered() ? " (system calls are filtered)" : "");
        gt_mend(c, "give the container CAP_SYS_PTRACE (docker run --cap-add=SYS_PTRACE)");
    } else if (scope >= 3) {
        gt_found(c, GT_HEALTH_MISSING,
                 "kernel.yama.ptrace_scope is 3: no process may look into "
                 "another one, until the system starts again");
        gt_mend(c, "remove ptrace_scope from /etc/sysctl.d, and restart the system");
    } else if (scope >= 1 && !may) {
        gt_found(c, GT_HEALTH_LIMITED,
                 "kernel.yama.ptrace_scope is %ld: stacks and attach need "
                 "root for programs without the library",
                 scope);
        gt_mend(c, "sudo sysctl kernel.yama.ptrace_scope=0 (or: sudo gotrace stacks PID)");
    } else {
        gt_found(c, GT_HEALTH_OK, "allowed for %s: stacks, attach",
                 may ? "all processes" : "this user's processes");
    }
}

static void look_at_clock(struct gt_check *c)
{
    static const char path[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    static const char *const slow[] = {"hpet", "acpi_pm", "xen", "jiffies"};
    char name[64] = "";
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%63s", name) != 1)
        name[0] = 0;
    if (file)
        fclose(file);
    for (size_t i = 0; i < sizeof slow / sizeof *slow; i++) {
        if (strcmp(name, slow[i]) == 0) {
            gt_found(c, GT_HEALTH_LIMITED,
                     "%s: to read the time is a system call, so that each "
                     "event costs a microsecond",
                     name);
            gt_mend(c, "echo tsc | %stee %s (if the machine has a stable TSC)", gt_as_root(), path);
            return;
        }
    }
    gt_found(c, *name ? GT_HEALTH_OK : GT_HEALTH_UNASKED, "%s", name);
}

/* The N of the go1.N that apt would install as golang-go; 0: not known. */
static int packaged_go(void)
{
    char line[LINE];
    int minor = 0;
    if (gt_ask((const char *const[]){"apt-cache", "madison", "golang-go", NULL}, line,
               sizeof line) == 0)
        sscanf(line, " golang-go | %*d:1.%d", &minor);
    return minor;
}

static void look_at_go(struct gt_check *c)
{
    struct gt_go go = {.least = OLDEST_GO, .most = GT_GO_ANY};
    setenv("GOTOOLCHAIN", "local", 1);
    gt_go_find(&go);
    if (go.minor)
        gt_found(c, GT_HEALTH_OK, "%s (1.%d): view", go.best, go.minor);
    else
        gt_found(c, GT_HEALTH_LIMITED,
                 "no Go 1.%d or later%s%s: view does not work; why, top and "
                 "report do",
                 OLDEST_GO, *go.seen ? ", only " : "", go.seen);
    if (!go.minor && packaged_go() >= OLDEST_GO)
        gt_mend(c, "%sapt install golang-go", gt_as_root());
    else
        gt_mend(c, "install Go from https://go.dev/dl (or: gotrace report TRACE)");
}

static void look_at_sqlite(struct gt_check *c)
{
    void *library = dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_LOCAL);
    gt_found(c, library ? GT_HEALTH_OK : GT_HEALTH_LIMITED,
             library ? "libsqlite3.so.0: sql" : "no libsqlite3.so.0: sql does not work");
    gt_mend_by_package(c, "libsqlite3-0", "sqlite-libs");
    if (library)
        dlclose(library);
}

static void look_at_debuginfod(struct gt_check *c)
{
    char line[LINE];
    const char *servers = getenv("DEBUGINFOD_URLS");
    bool client =
        gt_ask((const char *const[]){"debuginfod-find", "--help", NULL}, line, sizeof line) >= 0;
    if (client && servers && *servers) {
        gt_found(c, GT_HEALTH_OK, "%s: symbolize --debuginfod", servers);
        return;
    }
    gt_found(c, GT_HEALTH_LIMITED, "%s: debug symbols of packages are not fetched",
             client ? "DEBUGINFOD_URLS is not set" : "no debuginfod-find");
    if (!client)
        gt_mend_by_package(c, "debuginfod", "elfutils-debuginfod-client");
    else if (gt_has_debuginfod_urls())
        gt_mend(c, "export " GT_DEBUGINFOD_URLS);
    else
        gt_mend_by_package(c, "libdebuginfod-common", "elfutils-debuginfod-client");
}

/* Whether a file in the folder has room for a small trace; 0 or an errno. */
static int try_file(const char *folder)
{
    enum { SMALL_TRACE = 1 << 20 };
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/gotrace-doctor-XXXXXX", folder);
    int fd = mkstemp(path);
    if (fd < 0)
        return errno;
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN); /* a limit of this size has EFBIG */
    int error = posix_fallocate(fd, 0, SMALL_TRACE);
    signal(SIGXFSZ, before);
    unlink(path);
    close(fd);
    return error;
}

static void look_at_folder(struct gt_check *c)
{
    char here[PATH_MAX] = "", other[PATH_MAX];
    const char *output = getenv("GOTRACE_OUTPUT"), *slash = output ? strrchr(output, '/') : NULL;
    int error = getcwd(here, sizeof here) ? 0 : errno;
    if (slash && !memchr(output, '%', (size_t)(slash - output))) {
        snprintf(here, sizeof here, "%.*s", (int)(slash - output), output);
        error = 0;
    }
    error = error ? error : try_file(here);
    if (error) {
        gt_found(c, GT_HEALTH_MISSING, "%s takes no trace of 1 MiB: %s",
                 *here ? here : "this folder", strerror(error));
        if (error == EFBIG)
            gt_mend(c, "ulimit -f unlimited");
        else if (make_folder(other)) {
            rmdir(other);
            gt_mend(c, "gotrace --output=%.*s/t.out PROGRAM", (int)(strrchr(other, '/') - other),
                    other);
        } else
            gt_mend(c, "cd to a folder with room, which this user may write to");
    } else {
        gt_found(c, GT_HEALTH_OK, "traces can be written to %s", here);
    }
}

const struct gt_check_row gt_system_checks[] = {{"kernel", look_at_kernel, false},
                                                {"libc", look_at_libc, false},
                                                {"folder", look_at_folder, true},
                                                {"settings", look_at_settings, true},
                                                {"recording", look_at_library, true},
                                                {"lines", look_at_lines, false},
                                                {"perf", look_at_perf, false},
                                                {"ptrace", look_at_ptrace, false},
                                                {"clock", look_at_clock, false},
                                                {"go", look_at_go, false},
                                                {"sqlite", look_at_sqlite, false},
                                                {"debuginfod", look_at_debuginfod, false},
                                                {0}};
