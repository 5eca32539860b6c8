/* See file_lock_names.h. */
#include "file_lock_names.h"

#include "encoder/base/arena.h"
#include "encoder/base/libc.h"
#include "encoder/base/push.h"
#include "encoder/base/strbuf.h"
#include "encoder/format/format.h"
#include "encoder/format/lock_texts.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A program with more names has a lock for each of its data. */
enum { NAMES_MAX = 256 };

struct name {
    struct name *next;
    char text[];
};

static _Atomic(struct name *) all;
static _Atomic unsigned count;
static _Atomic bool forbidden;
static struct gt_arena arena = {.chunk_bytes = 16384};

void gt_file_lock_names_forbid(void)
{
    atomic_store_explicit(&forbidden, true, memory_order_relaxed);
}

static const char *find(const char *text)
{
    /* acquire: pairs with the push in add. */
    for (struct name *n = atomic_load_explicit(&all, memory_order_acquire); n; n = n->next) {
        if (strcmp(n->text, text) == 0)
            return n->text;
    }
    return NULL;
}

/* Two threads may add the same name at once: readers of the trace see one lock. */
static const char *add(const char *text)
{
    size_t size = strlen(text) + 1;
    bool full = atomic_fetch_add(&count, 1) >= NAMES_MAX;
    struct name *fresh = full ? NULL : gt_arena_alloc(&arena, sizeof *fresh + size);
    if (!fresh)
        return NULL;
    memcpy(fresh->text, text, size);
    GT_PUSH(&all, fresh, &fresh->next);
    return fresh->text;
}

bool gt_file_path(int fd, char *path, size_t size)
{
    char link[32];
    struct gt_strbuf t = gt_strbuf_start(link, sizeof link);
    int saved = errno;
    bool asks = !atomic_load_explicit(&forbidden, memory_order_relaxed);
    gt_strbuf_add(&t, "/proc/self/fd/");
    gt_strbuf_decimal(&t, (uint64_t)fd);
    long n = asks ? gt_syscall(SYS_readlinkat, AT_FDCWD, link, path, size) : -1;
    errno = saved;
    if (n <= 0 || (size_t)n == size || *path != '/')
        return false;
    path[n] = 0;
    return true;
}

const char *gt_file_lock_name(int fd, bool whole, int64_t start)
{
    char path[GT_STRING_MAX / 2], text[sizeof path + 64];
    struct gt_strbuf t = gt_strbuf_start(text, sizeof text);
    if (!gt_file_path(fd, path, sizeof path))
        return NULL;
    gt_strbuf_add(&t, whole ? GT_FLOCK : GT_FCNTL);
    gt_strbuf_add_item(&t, path, strlen(path));
    if (!whole && start) {
        gt_strbuf_add(&t, "+");
        gt_strbuf_decimal(&t, (uint64_t)start);
    }
    const char *known = find(text);
    return known ? known : add(text);
}

int64_t gt_file_lock_position(int fd)
{
    int saved = errno;
    bool asks = !atomic_load_explicit(&forbidden, memory_order_relaxed);
    int64_t at = asks ? gt_syscall(SYS_lseek, fd, 0, SEEK_CUR) : -1;
    errno = saved;
    return at;
}

const char *gt_file_lock_name_at(uint64_t address)
{
    for (struct name *n = atomic_load_explicit(&all, memory_order_acquire); n; n = n->next) {
        if ((uintptr_t)n->text == address)
            return n->text;
    }
    return NULL;
}
