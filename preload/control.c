/* See control.h; and the part of gotrace.h that starts and stops. */
#define GOTRACE_LIBRARY
#define GOTRACE_WEAK GT_EXPORT
#include "real.h"

#include "gotrace.h"

#include "control.h"
#include "heap.h"
#include "process.h"
#include "thread.h"

#include "../encoder/drain.h"
#include "../encoder/output.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* From outside ------------------------------------------------------------------------------- */

/* Not 0 to 2: what libraries print in our thread must not go there. */
#define HIGH_FD 1000

static struct gt_control_page *page;

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
    if (ftruncate(fd, sizeof *page) == 0 && fchmod(fd, 0600) == 0 &&
        gt_syscall(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        p = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) {
        gt_syscall(SYS_close, fd);
        return;
    }
    page = p;
    page->version = GT_CONTROL_VERSION;
    gt_buffers_sleep_on(&page->wake);
    atomic_thread_fence(memory_order_release); /* a client that sees the magic sees all this */
    page->magic = GT_CONTROL_MAGIC;
}

static void describe(enum gt_drain_command command, int result)
{
    if (result == 0 && command == GT_DRAIN_STOP)
        gt_process_describe(page->text);
    else
        snprintf(page->text, sizeof page->text, "%s", gt_output_path());
}

void gt_control_serve(void)
{
    if (!page)
        return;
    uint32_t asked = atomic_load(&page->asked);
    if (asked == atomic_load(&page->answered))
        return;
    enum gt_drain_command command = page->command;
    static char path[PATH_MAX]; /* a copy: the client may change its mind */
    snprintf(path, sizeof path, "%.*s", (int)sizeof path - 1, page->path);
    int result =
        command <= GT_DRAIN_SNAPSHOT ? gt_drain_execute(command, *path ? path : NULL) : -EINVAL;
    page->result = result;
    describe(command, result);
    atomic_store(&page->answered, asked);
    gt_syscall(SYS_futex, &page->answered, FUTEX_WAKE, INT_MAX);
}

void gt_control_after_fork(void)
{
    gt_buffers_sleep_on(NULL);
    if (page)
        munmap(page, sizeof *page);
    page = NULL;
}

/* From inside -------------------------------------------------------------------------------- */

/* 0 or an errno. The guard keeps handlers of signals from asking for something else meanwhile. */
static int command(enum gt_drain_command what, const char *path)
{
    struct gt_thread *t = gt_thread_enter();
    if (!t)
        return gt_recording() ? EBUSY : ESHUTDOWN;
    int saved = errno;
    GT_HEAP_OWN(own);
    int r = -gt_drain_command(what, path);
    errno = saved;
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
