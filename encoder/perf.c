/* See perf.h. */
#include "perf.h"

#include "encoder/base/clock.h"
#include "encoder/base/futex.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A record as it was asked for below: a head, what is of its type, and these. */
struct trailer {
    uint64_t time;
    uint32_t cpu, unused;
};

clockid_t gt_perf_clock(void)
{
    return gt_clock.hardware ? CLOCK_MONOTONIC_RAW : CLOCK_MONOTONIC;
}

static int open_event(uint32_t tid)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof attr,
        .config = PERF_COUNT_SW_DUMMY,
        .sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .context_switch = 1,
        .sample_id_all = 1,
        .use_clockid = 1,
        .clockid = gt_perf_clock(),
    };
    return (int)gt_syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static size_t page_bytes(void)
{
    static size_t bytes;
    if (!bytes)
        bytes = (size_t)sysconf(_SC_PAGESIZE);
    return bytes;
}

int gt_perf_open(struct gt_perf *perf, uint32_t tid, size_t bytes)
{
    int error = 0;
    *perf = (struct gt_perf){.fd = open_event(tid)};
    if (perf->fd < 0)
        return -errno;
    for (; bytes >= page_bytes() && !perf->pages; bytes /= 2) {
        void *p = (void *)gt_syscall(SYS_mmap, NULL, page_bytes() + bytes, PROT_READ | PROT_WRITE,
                                     MAP_SHARED, perf->fd, 0);
        error = p == MAP_FAILED ? -ENOMEM : 0; /* EPERM is the limit of locked memory */
        if (!error) {
            perf->pages = p;
            perf->bytes = bytes;
        }
    }
    if (error)
        gt_perf_close(perf);
    return error;
}

void gt_perf_close(struct gt_perf *perf)
{
    if (perf->pages)
        gt_syscall(SYS_munmap, perf->pages, page_bytes() + perf->bytes);
    if (perf->fd >= 0)
        gt_syscall(SYS_close, perf->fd);
    *perf = (struct gt_perf){.fd = -1};
}

/* Copies out of the ring, which may go on at its beginning. */
static void copy(const struct gt_perf *perf, uint64_t from, void *to, size_t size)
{
    const uint8_t *ring = perf->pages + page_bytes();
    size_t at = (size_t)from & (perf->bytes - 1);
    size_t first = size < perf->bytes - at ? size : perf->bytes - at;
    memcpy(to, ring + at, first);
    memcpy((uint8_t *)to + first, ring, size - first);
}

bool gt_perf_has_more(const struct gt_perf *perf)
{
    const struct perf_event_mmap_page *page = (void *)perf->pages;
    return __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE) != page->data_tail;
}

void gt_perf_read(struct gt_perf *perf, gt_perf_fn *fn, void *arg)
{
    struct perf_event_mmap_page *page = (void *)perf->pages;
    struct perf_event_header head;
    struct trailer trailer;
    bool gap = false;
    uint64_t tail = page->data_tail;
    uint64_t end =
        __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE); /* pairs with the kernel's */
    for (; end - tail >= sizeof head; tail += head.size) {
        copy(perf, tail, &head, sizeof head);
        if (head.size < sizeof head + sizeof trailer || head.size > end - tail)
            break;
        copy(perf, tail + head.size - sizeof trailer, &trailer, sizeof trailer);
        gap |= head.type == PERF_RECORD_LOST;
        if (head.type != PERF_RECORD_SWITCH)
            continue;
        fn(arg, &(struct gt_perf_switch){
                    .ns = trailer.time,
                    .cpu = trailer.cpu,
                    .out = head.misc & PERF_RECORD_MISC_SWITCH_OUT,
                    .preempted = head.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT,
                    .gap = gap,
                });
        gap = false;
    }
    __atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
}
