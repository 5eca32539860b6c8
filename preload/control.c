/* See control.h; and the part of gotrace.h that starts and stops. */
#include "control.h"

#include "attach.h"
#include "exported.h"
#include "options.h"
#include "process.h"
#include "report.h"
#include "sampler.h"
#include "thread.h"

#include "encoder/base/sparse.h"
#include "encoder/drain.h"
#include "encoder/output.h"
#include "encoder/recording.h"
#include "preload/heap/heap.h"

#include <sys/stat.h>

/* From outside ------------------------------------------------------------------------------- */

/* Not 0 to 2: what libraries print in our thread must not go there. */
#define HIGH_FD 1000

/* Not of zeros, so that it stands in the library's data, under its name in /proc/PID/maps. */
static _Alignas(GT_CONTROL_ALIGN) struct gt_control_page alone = {
    .magic = GT_CONTROL_MAGIC, .version = GT_CONTROL_VERSION, .attend = &gt_drain_unattended};

static struct gt_control_page *page = &alone;

static int make_file(void)
{
    /* 8: MFD_NOEXEC_SEAL, without which Linux 6.3 and later complain, and which others refuse */
    unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    int fd = (int)gt_syscall(SYS_memfd_create, GT_CONTROL_FILE, flags | 8);
    if (fd < 0)
        fd = (int)gt_syscall(SYS_memfd_create, GT_CONTROL_FILE, flags);
    int high = fd < 0 ? -1 : (int)gt_syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, HIGH_FD);
    if (high < 0)
        return fd;
    gt_syscall(SYS_close, fd);
    return high;
}

void gt_control_open(void)
{
    int fd = make_file();
    if (fd < 0)
        return;
    void *p = MAP_FAILED;
    if (gt_syscall(SYS_ftruncate, fd, sizeof alone) == 0 && gt_syscall(SYS_fchmod, fd, 0600) == 0 &&
        gt_syscall(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        p = mmap(NULL, sizeof alone, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) {
        gt_syscall(SYS_close, fd);
        return;
    }
    struct gt_control_page *shared = p;
    shared->version = GT_CONTROL_VERSION;
    gt_buffers_sleep_on(&shared->wake);
    atomic_thread_fence(memory_order_release); /* a client that sees the magic sees all this */
    shared->magic = GT_CONTROL_MAGIC;
    page = shared;
}

void gt_control_open_alone(void)
{
    alone.until = 0;
    alone.taken = alone.answered = alone.asked;
    alone.pid = gt_process_is_ours() ? (int32_t)gt_syscall(SYS_getpid) : 0;
    if (gt_attach_is_free() && gt_process_is_ours())
        alone.pid = -alone.pid;
}

/* Whether somebody waits for the command of this number. */
static bool is_good(struct gt_control_page *p, uint32_t asked)
{
    return p != &alone || (time(NULL) < atomic_load(&p->until) && atomic_load(&p->asked) == asked);
}

/* hz: in digits afterwards. text: where there can be samples, if not here. */
static int prepare_samples(char *hz, char *text)
{
    uint32_t n = 0;
    if (!gt_options_hz(hz, &n) || !n)
        return -EINVAL;
    const char *where = gt_sampler_prepare();
    snprintf(hz, PATH_MAX, "%u", n);
    snprintf(text, PATH_MAX, "%s", where ? where : "");
    return where ? -EOPNOTSUPP : 0;
}

static int execute(struct gt_control_page *p, uint32_t asked)
{
    static char path[PATH_MAX] GT_SPARSE; /* a copy: the client may change its mind */
    uint32_t command = p->command;
    snprintf(path, sizeof path, "%.*s", (int)sizeof path - 1, p->path);
    *p->text = 0;
    if (!is_good(p, asked))
        return -ETIMEDOUT; /* it was, just now */
    if (command == GT_CONTROL_ATTACH && p != &alone)
        return gt_attach_again(*path ? path : NULL);
    if (command == GT_CONTROL_DETACH && p != &alone) {
        gt_drain_execute(GT_DRAIN_STOP, NULL);
        return gt_attach_undo();
    }
    bool starts = command == GT_DRAIN_START || command == GT_DRAIN_SAMPLE;
    if (!starts && command != GT_DRAIN_STOP && command != GT_DRAIN_SNAPSHOT)
        return -EINVAL;
    if (starts && gt_attach_is_undone())
        return -ENOTCONN;
    int error = command == GT_DRAIN_SAMPLE ? prepare_samples(path, p->text) : 0;
    if (error)
        return error;
    if (command == GT_DRAIN_STOP && gt_recording() && gt_recording_end_samples()) {
        strcpy(p->text, "no more CPU samples; recording goes on");
        return 0;
    }
    if (p != &alone || gt_recording())
        return gt_drain_execute(command, *path ? path : NULL);
    if (!starts)
        return -EALREADY;
    return gt_process_begin() ? gt_drain_command(command, path) : -ENAMETOOLONG;
}

static void describe(struct gt_control_page *p)
{
    bool stopped = p->command == GT_DRAIN_STOP || p->command == GT_CONTROL_DETACH;
    bool starts = p->command == GT_DRAIN_START || p->command == GT_DRAIN_SAMPLE;
    if (*p->text)
        return;
    if (p->result == 0 && stopped)
        gt_report_describe(p->text);
    else if (p->result == 0 && starts && gt_options.ring_bytes)
        strcpy(p->text, "memory"); /* any file is of a recording before */
    else
        snprintf(p->text, sizeof p->text, "%s", gt_output_path());
}

void gt_control_serve(void)
{
    struct gt_control_page *p = page;
    uint32_t asked = atomic_load(&p->asked);
    if (asked == atomic_load(&p->answered) || !is_good(p, asked))
        return;
    atomic_store(&p->taken, asked);
    p->result = execute(p, asked);
    describe(p);
    atomic_store(&p->answered, asked);
    if (p != &alone)
        gt_syscall(SYS_futex, &p->answered, FUTEX_WAKE, INT_MAX);
}

void gt_control_after_fork(void)
{
    gt_buffers_sleep_on(NULL);
    if (page != &alone)
        munmap(page, sizeof alone);
    page = &alone;
    gt_control_open_alone();
}

/* From inside -------------------------------------------------------------------------------- */

/* 0 or an errno. The guard keeps handlers of signals from asking for something else meanwhile. */
static int command(enum gt_drain_command what, const char *path)
{
    struct gt_thread *t = gt_thread_enter();
    if (!t)
        return gt_recording() ? EBUSY : ESHUTDOWN;
    GT_KEEP_ERRNO;
    GT_HEAP_OWN(own);
    int r = -gt_drain_command(what, path);
    gt_thread_leave(t);
    return r;
}

int gotrace_start(void)
{
    return command(GT_DRAIN_START, NULL);
}

int gotrace_stop(void)
{
    return command(GT_DRAIN_STOP, NULL);
}

int gotrace_snapshot(const char *path)
{
    return command(GT_DRAIN_SNAPSHOT, path);
}
