/* See box.h. System calls are made directly: the wrappers of libc are interposed. */
#include "box.h"

#include "arena.h"
#include "freelist.h"
#include "libc.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

/* Space that is taken at first: enough for a program that has a few threads and ends soon. */
enum { TABLES_FIRST = 256 << 10, BUFFERS_FIRST = 512 << 10 };

/* Tables come in few sizes. A freed table is reused for one of its size. */
enum { SIZES = 4 };

struct gt_box *gt_box;

static uint64_t tables_taken, buffers_taken; /* offsets up to which there is disk space */
static uint64_t next_kept;                   /* where the next kept pages go, if they fit */

static struct {
    _Atomic size_t size;
    struct gt_freelist free;
} given_back[SIZES];

/*
 * Takes disk space for memory before it is used: a store into a page for which the disk has no
 * space left would end the process.
 */
static bool take_space(void *p, size_t size)
{
    int saved = errno;
    bool taken = madvise(p, size, MADV_POPULATE_WRITE) == 0;
    errno = saved;
    return taken;
}

/* ftruncate(2) beyond RLIMIT_FSIZE would raise a signal. */
static bool may_be_so_large(size_t size)
{
    struct rlimit most;
    return getrlimit(RLIMIT_FSIZE, &most) == 0 && size <= most.rlim_cur;
}

/*
 * Takes disk space for a range by writing zeros: several times as fast as take_space, if pages come
 * in large folios.
 */
static bool take_ahead(int fd, uint64_t from, uint64_t size)
{
    static const char zeros[16 * GT_BOX_PAGE];
    int saved = errno;
    long n = sizeof zeros;
    for (uint64_t end = from + size; from < end && n == sizeof zeros; from += sizeof zeros)
        n = gt_syscall(SYS_pwrite64, fd, zeros, sizeof zeros, from);
    errno = saved;
    return n == sizeof zeros;
}

/* NULL: errno says why. */
static struct gt_box *map(int fd, size_t size)
{
    if (!may_be_so_large(size)) {
        errno = EFBIG;
        return NULL;
    }
    if (gt_syscall(SYS_ftruncate, fd, (off_t)size) != 0)
        return NULL;
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return NULL;
    madvise(p, size, MADV_RANDOM);     /* nothing is there to be read ahead */
    madvise(p, size, MADV_NOHUGEPAGE); /* of most buffers only the first page is used */
    enum { BEGINNING = GT_BOX_PAGE + GT_BOX_LIVE };
    bool taken = take_ahead(fd, 0, BEGINNING + TABLES_FIRST);
    tables_taken = taken ? BEGINNING + TABLES_FIRST : 0;
    if (madvise(p, taken ? GT_BOX_PAGE : BEGINNING, MADV_POPULATE_WRITE) == 0)
        return p;
    int error = errno == EFAULT ? ENOSPC : errno == EINVAL ? ENOSYS : errno;
    munmap(p, size);
    errno = error;
    return NULL;
}

static size_t pages(size_t size)
{
    return (size + GT_BOX_PAGE - 1) & ~(size_t)(GT_BOX_PAGE - 1);
}

/*
 * Room for kept pages is twice `kept`: then there is always a free piece, even if pages do not fit
 * at the end and go to the beginning.
 */
int gt_box_open(int fd, uint64_t layout, size_t tables, size_t buffers, size_t kept)
{
    size_t from = GT_BOX_PAGE + GT_BOX_LIVE + tables, to = pages(from + buffers);
    size_t size = to + 2 * pages(kept);
    struct gt_box *box = map(fd, size);
    int error = box ? 0 : -errno;
    buffers_taken = tables_taken && take_ahead(fd, from, BUFFERS_FIRST) ? from + BUFFERS_FIRST : 0;
    gt_syscall(SYS_close, fd);
    if (!box)
        return error;
    box->layout = layout;
    box->at = (uintptr_t)box;
    box->size = size;
    box->tables_end = GT_BOX_PAGE + GT_BOX_LIVE;
    box->buffers = from;
    box->buffers_end = from;
    box->kept = next_kept = to;
    box->magic = GT_BOX_MAGIC;
    gt_box = box;
    return 0;
}

/* Allocates `size` bytes that end before `limit`. NULL: there is no room. */
static void *reserve(_Atomic uint64_t *end, uint64_t limit, size_t size)
{
    uint64_t at = atomic_load_explicit(end, memory_order_relaxed);
    do {
        if (limit - at < size)
            return NULL;
    } while (!atomic_compare_exchange_weak(end, &at, at + size));
    return (char *)gt_box + at;
}

void gt_box_count_outside(size_t size)
{
    if (gt_box)
        atomic_fetch_add(&gt_box->outside, size);
}

static void *or_elsewhere(void *p, size_t size)
{
    if (p)
        return p;
    gt_box_count_outside(size);
    return gt_pages_alloc(size);
}

static void *again(size_t size)
{
    for (int i = 0; i < SIZES; i++) {
        void *p = given_back[i].size == size ? gt_freelist_pop(&given_back[i].free) : NULL;
        if (p)
            return memset(p, 0, size);
    }
    return NULL;
}

/* Whether there is disk space for a range of the box, after taking it. Up to `taken` there is. */
static bool has_space(void *p, size_t size, uint64_t taken)
{
    return (uint64_t)((char *)p + size - (char *)gt_box) <= taken || take_space(p, size);
}

static void *new_table(size_t size)
{
    void *p = reserve(&gt_box->tables_end, gt_box->buffers, size);
    return p && has_space(p, size, tables_taken) ? p : NULL;
}

void *gt_box_alloc_table(size_t size)
{
    void *p = NULL;
    if (gt_box && !(p = again(pages(size))))
        p = new_table(pages(size));
    return or_elsewhere(p, size);
}

bool gt_box_fill(void *p, size_t size)
{
    return !gt_box_has(p) || has_space(p, size, buffers_taken);
}

void *gt_box_alloc_outside(size_t size)
{
    if (gt_box)
        atomic_fetch_add(&gt_box->buffers_outside, size);
    return or_elsewhere(NULL, size);
}

void *gt_box_alloc_buffer(size_t size)
{
    void *p = gt_box ? reserve(&gt_box->buffers_end, gt_box->kept, size) : NULL;
    return p && gt_box_fill(p, GT_BOX_PAGE) ? p : gt_box_alloc_outside(size);
}

void *gt_box_alloc_kept(size_t size)
{
    if (!gt_box)
        return NULL;
    uint64_t at = gt_box->size - next_kept < size ? gt_box->kept : next_kept;
    void *p = (char *)gt_box + at;
    if (!take_space(p, size))
        return NULL;
    next_kept = at + size;
    return p;
}

/* Keeps a table for reuse. One whose size is not among the first SIZES is forgotten. */
static void free_table(void *p, size_t size)
{
    for (int i = 0; i < SIZES; i++) {
        size_t its = 0;
        if (atomic_compare_exchange_strong(&given_back[i].size, &its, size) || its == size) {
            gt_freelist_push(&given_back[i].free, p);
            return;
        }
    }
}

void gt_box_free(void *p, size_t size)
{
    if ((uint64_t)((char *)p - (char *)gt_box) < gt_box->kept)
        free_table(p, pages(size));
    else
        madvise(p, size, MADV_REMOVE); /* frees disk space, too, if the file system can */
}

/* How much further than tables_end is copied: the parent's threads add tables meanwhile. */
enum { MORE = 16 << 20 };

static void make_own(void *p, size_t size)
{
    enum { OWN = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED };
    mmap(p, size, PROT_READ | PROT_WRITE, OWN, -1, 0);
}

void gt_box_leave(void (*keep)(char *copy, const char *base))
{
    struct gt_box *box = gt_box;
    if (!box)
        return;
    char *base = (char *)box;
    uint64_t end = box->tables_end + MORE, size = box->size;
    uint64_t buffers = box->buffers, buffers_end = box->buffers_end;
    size_t kept = end < buffers ? end : buffers;
    char *copy = gt_pages_alloc(kept);
    if (copy) {
        keep(copy, base);
        mremap(copy, kept, kept, MREMAP_MAYMOVE | MREMAP_FIXED, base);
    } else {
        make_own(base, kept);
    }
    make_own(base + buffers, buffers_end - buffers);
    munmap(base + kept, buffers - kept);
    munmap(base + buffers_end, size - buffers_end);
    gt_box = NULL;
    memset(given_back, 0, sizeof given_back);
}
