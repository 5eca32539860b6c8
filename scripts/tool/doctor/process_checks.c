/* Checks of a running process: whether `gotrace attach` records it, and if not, why not. */
#include "doctor.h"

#include "scripts/tool/alone.h"
#include "scripts/tool/attach/stub.h"
#include "scripts/tool/target.h"
#include "scripts/tool/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool is_gone(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d", pid);
    return access(path, F_OK) != 0;
}

static bool is_zombie(pid_t pid)
{
    char text[512];
    const char *stat = gt_stat_of(pid, text, sizeof text);
    return !stat || stat[1] == 'Z' || stat[1] == 'X';
}

static bool is_of_kernel(pid_t pid)
{
    return gt_status_of(pid, "VmSize:") == 0;
}

static bool is_traced(pid_t pid)
{
    return gt_status_of(pid, "TracerPid:") != 0;
}

static bool is_stopped(pid_t pid)
{
    return gt_stopped_how(pid) == 'T';
}

static bool is_unfit_processor(pid_t pid)
{
    size_t size;
    (void)pid;
    return !gt_stub_code(&size);
}

/* Reasons against attaching. The first one that holds is told. "@": the process. */
struct reason {
    bool (*holds)(pid_t pid);
    const char *says, *mend;
};

static const struct reason never[] = {
    {is_gone, "is not there", "ps -e (lists the processes)"},
    {is_zombie, "has ended", "start the program again: gotrace -- PROGRAM"},
    {is_of_kernel, "is a thread of the kernel: no program runs in it", "perf sched record"},
    {0},
};

static const struct reason attaching[] = {
    {is_unfit_processor, "cannot be attached to: that takes x86-64 and a processor with XSAVE",
     "start the program anew: gotrace -- PROGRAM"},
    {is_traced, "is being debugged, and a process has one debugger at a time",
     "ps -q $(sed -n 's/TracerPid:.//p' /proc/@/status) (end that debugger)"},
    {gt_is_secure,
     "was started with more privileges than its caller's: no such process is recorded",
     "start the program anew as the user that it becomes"},
    {gt_is_confined, "confines itself by seccomp(2), which could end it for what attaching takes",
     "start the program anew: gotrace -- PROGRAM"},
    {is_stopped, "is stopped by a signal", "kill -CONT @"},
    {gt_is_frozen, "is in a frozen cgroup", "thaw it: docker unpause, or systemctl thaw"},
    {0},
};

static bool tell(struct gt_check *c, pid_t pid, const struct reason *reason)
{
    for (; reason->holds; reason++) {
        if (!reason->holds(pid))
            continue;
        size_t start = strcspn(reason->mend, "@");
        const char *rest = reason->mend + start;
        char number[16] = "";
        if (*rest)
            snprintf(number, sizeof number, "%d", pid);
        gt_found(c, GT_HEALTH_MISSING, "process %d %s", pid, reason->says);
        gt_mend(c, "%.*s%s%s", (int)start, reason->mend, number, *rest ? rest + 1 : rest);
        return true;
    }
    return false;
}

/* The kernel's word: who may debug the process may write to its memory. */
static bool may_debug(struct gt_check *c, pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", pid);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0) {
        close(fd);
        return true;
    }
    gt_found(c, GT_HEALTH_MISSING, "process %d does not let this user debug it: %s", pid,
             strerror(errno));
    if (geteuid() != 0)
        gt_mend(c, "sudo gotrace doctor %d", pid);
    else
        gt_mend(c, "run gotrace where that has CAP_SYS_PTRACE (docker run --cap-add=SYS_PTRACE)");
    return false;
}

/* What the program itself forbids. */
static bool program_fits(struct gt_check *c, pid_t pid, const struct gt_target *target)
{
    if (target->status || *target->first) {
        gt_found(c, GT_HEALTH_MISSING, "process %d cannot be attached to: %s", pid,
                 target->status ? target->why : "it is built with AddressSanitizer");
        gt_mend(c, "%s", target->status ? target->mend : "gotrace -- PROGRAM (start it anew)");
    } else if (!gt_has_libdw()) {
        gt_found(c, GT_HEALTH_MISSING, "attaching takes libdw.so.1, which is not here");
        gt_mend_libdw(c);
    } else {
        return true;
    }
    return false;
}

void gt_process_look(struct gt_check *c, int number, const struct gt_target *target)
{
    pid_t pid = (pid_t)gt_status_of(number, "Tgid:"); /* the number may be a thread's */
    pid = pid ? pid : number;
    if (tell(c, pid, never) || !may_debug(c, pid))
        return;
    if (gt_has_library(pid) && gt_alone_look(pid) != -ENOTCONN)
        gt_found(c, GT_HEALTH_OK, "process %d has the library: gotrace start, stop, snapshot %d",
                 pid, pid);
    else if (!tell(c, pid, attaching) && program_fits(c, pid, target))
        gt_found(c, GT_HEALTH_OK, "process %d can be recorded: gotrace attach %d", pid, pid);
}
