/* See thread_names.h. */
#include "thread_names.h"

#include "preload/bind/file_lock_names.h"
#include "preload/bind/real.h"
#include "preload/control/process_relief.h"
#include "preload/life/births.h"
#include "preload/process/process_state.h"
#include "preload/thread/thread.h"

#include <string.h>

void gt_thread_names_self(const char *name)
{
    char text[GT_GIVEN_NAME] = {0};
    struct gt_thread *t = gt_thread_enter();
    if (!t)
        return;
    strncpy(text, name, sizeof text - 1);
    gt_thread_label(t, text);
    gt_thread_leave(t);
    gt_process_check_queue();
}

/* Files of the kernel's --------------------------------------------------------------------- */

static const char comm[] = "/comm";

static bool is_comm(const char *path, size_t n)
{
    enum { SUFFIX = sizeof comm - 1 };
    return (n >= SUFFIX && memcmp(path + n - SUFFIX, comm, SUFFIX) == 0) ||
           strcmp(path, comm + 1) == 0; /* of a directory that is open */
}

void gt_thread_names_opened_slow(int fd, const char *path)
{
    if (is_comm(path, strlen(path)))
        gt_fd_set(fd, GT_FD_COMM);
}

/* The number behind `before` at *p, and moves *p behind that; 0: another text stands there. */
static uint32_t number_behind(const char **p, const char *before)
{
    size_t n = strlen(before);
    uint32_t number = 0;
    if (strncmp(*p, before, n) != 0)
        return 0;
    for (*p += n; **p >= '0' && **p <= '9'; ++*p)
        number = number * 10 + (uint32_t)(**p - '0');
    return number;
}

/*
 * The thread whose name the open file is: "/proc/12/task/13/comm", or "/proc/12/comm" for the first
 * thread of 12. 0: another file. Only the threads of a process can write there.
 */
static uint32_t thread_of(int fd)
{
    char path[64];
    const char *p = path;
    if (!gt_process_is_ours() || !gt_file_path(fd, path, sizeof path))
        return 0;
    uint32_t process = number_behind(&p, "/proc/"), thread = number_behind(&p, "/task/");
    return strcmp(p, comm) != 0 ? 0 : thread ? thread : process;
}

/* Takes as much as the kernel does. The end of a line, which `echo` writes, is no part of a name.
 */
static void take(char name[GT_GIVEN_NAME], const char *text, size_t n)
{
    n = n < GT_GIVEN_NAME ? n : GT_GIVEN_NAME - 1;
    memcpy(name, text, n);
    name[n] = 0;
    name[strcspn(name, "\n")] = 0;
}

static void give(uint32_t tid, const char *name)
{
    if (tid == (uint32_t)gt_syscall(SYS_gettid))
        gt_thread_names_self(name);
    else
        gt_given_name(tid, name);
}

__attribute__((noinline)) void gt_thread_names_written_slow(int fd, const char *text, size_t n)
{
    GT_KEEP_ERRNO;
    char name[GT_GIVEN_NAME];
    uint32_t tid = gt_recording() ? thread_of(fd) : 0;
    if (!tid)
        return;
    take(name, text, n);
    give(tid, name);
}

struct gt_stream_name gt_thread_names_in(FILE *file)
{
    struct gt_stream_name name = {0};
    GT_KEEP_ERRNO;
    int fd = gt_recording() ? fileno_unlocked(file) : -1;
    const char *from = file->_IO_write_base, *to = file->_IO_write_ptr;
    if (fd < 0 || gt_fd_known(fd) != GT_FD_COMM || from >= to)
        return name;
    name.tid = thread_of(fd);
    take(name.text, from, (size_t)(to - from));
    return name;
}

void gt_thread_names_closed(const struct gt_stream_name *name)
{
    GT_KEEP_ERRNO;
    if (name->tid)
        give(name->tid, name->text);
}
