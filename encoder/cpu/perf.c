/* See perf.h. */
#include "perf.h"

#include "encoder/base/clock.h"
#include "encoder/base/libc.h"
#include "encoder/base/sparse.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The end of each record but a sample: open_event_reading asks for these fields. */
struct trailer {
    uint64_t time;
    uint32_t cpu, unused;
};

clockid_t gt_perf_clock(void)
{
    return gt_clock.hardware ? CLOCK_MONOTONIC_RAW : CLOCK_MONOTONIC;
}

static uint64_t event_of(const struct gt_perf_wanted *wanted)
{
    return wanted->every       ? PERF_COUNT_SW_CONTEXT_SWITCHES
           : wanted->period_ns ? PERF_COUNT_SW_TASK_CLOCK
                               : PERF_COUNT_SW_DUMMY;
}

static int open_event_reading(uint32_t tid, const struct gt_perf_wanted *wanted,
                              uint64_t read_format)
{
    uint64_t samples = wanted->every ? wanted->every : wanted->period_ns;
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof attr,
        .config = event_of(wanted),
        .sample_period = samples,
        .sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
                       (samples ? PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER : 0),
        .sample_regs_user = samples ? GT_ARCH_PERF_REGISTERS : 0,
        .sample_stack_user = samples ? wanted->stack_bytes : 0,
        .read_format = read_format,
        .exclude_kernel = !samples,
        .exclude_hv = 1,
        .context_switch = wanted->switches,
        .sample_id_all = 1,
        .use_clockid = 1,
        .clockid = gt_perf_clock(),
    };
    return (int)gt_syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

#define READ_LOST (1u << 4) /* PERF_FORMAT_LOST, since Linux 6.0 */

static int open_event(uint32_t tid, const struct gt_perf_wanted *wanted)
{
    int fd = open_event_reading(tid, wanted, READ_LOST);
    return fd < 0 && errno == EINVAL ? open_event_reading(tid, wanted, 0) : fd;
}

static size_t page_bytes(void)
{
    static size_t bytes;
    if (!bytes)
        bytes = (size_t)sysconf(_SC_PAGESIZE);
    return bytes;
}

int gt_perf_open(struct gt_perf *perf, uint32_t tid, const struct gt_perf_wanted *wanted,
                 size_t most, size_t least)
{
    int error = -ENOMEM;
    size_t page = page_bytes();
    *perf = (struct gt_perf){.fd = open_event(tid, wanted)};
    if (perf->fd < 0)
        return -errno;
    for (size_t bytes = most; bytes >= page && bytes >= least && error; bytes /= 2) {
        void *p = (void *)gt_syscall(SYS_mmap, NULL, page + bytes, PROT_READ | PROT_WRITE,
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

uint64_t gt_perf_close(struct gt_perf *perf)
{
    uint64_t read[2], untold = 0; /* the event's count, and what is lost */
    if (perf->pages) {
        if (gt_syscall(SYS_read, perf->fd, read, sizeof read) == sizeof read &&
            read[1] > perf->lost)
            untold = read[1] - perf->lost;
        gt_syscall(SYS_munmap, perf->pages, page_bytes() + perf->bytes);
    }
    if (perf->fd >= 0)
        gt_syscall(SYS_close, perf->fd);
    *perf = (struct gt_perf){.fd = -1};
    return untold;
}

/* Copies out of the ring; what reaches its end goes on at its beginning. */
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

/* A sample's record, but for the stack; see PERF_RECORD_SAMPLE in perf_event_open(2). */
struct sample {
    struct perf_event_header head;
    uint64_t time;
    uint32_t cpu, unused;
    uint64_t abi;
};
_Static_assert(sizeof(struct sample) + (GT_ARCH_PERF_COUNT + 2) * sizeof(uint64_t) <=
                   GT_PERF_SAMPLE_BYTES,
               "beside the stack: registers, its size, and how much of that was copied");

/* `record` is one whole record of `size` bytes. */
static void tell_sample(const struct gt_perf_reader *reader, void *arg, const uint8_t *record,
                        size_t size)
{
    uint64_t registers[GT_ARCH_PERF_COUNT] = {0}, room = 0, bytes = 0;
    const struct sample *sample = (const void *)record;
    const uint8_t *p = record + sizeof *sample, *end = record + size;
    if (sample->abi != PERF_SAMPLE_REGS_ABI_NONE && (size_t)(end - p) >= sizeof registers) {
        memcpy(registers, p, sizeof registers);
        p += sizeof registers;
    }
    if ((size_t)(end - p) >= sizeof room)
        memcpy(&room, p, sizeof room);
    p += sizeof room;
    if (room && p + room + sizeof bytes <= end)
        memcpy(&bytes, p + room, sizeof bytes);
    reader->note_sample(arg, &(struct gt_perf_sample){.ns = sample->time,
                                                      .cpu = sample->cpu,
                                                      .registers = gt_arch_sampled(registers),
                                                      .stack = p,
                                                      .bytes = bytes < room ? bytes : room});
}

/* Room to put together a record of any length. */
static _Alignas(uint64_t) uint8_t piece[UINT16_MAX + 1] GT_SPARSE;

static void tell(struct gt_perf *perf, uint64_t at, const struct perf_event_header *head,
                 const struct gt_perf_reader *reader, void *arg, bool *gap)
{
    struct trailer trailer;
    struct {
        struct perf_event_header head;
        uint64_t id, lost;
    } lost;
    if (head->type == PERF_RECORD_LOST && head->size >= sizeof lost) {
        copy(perf, at, &lost, sizeof lost);
        perf->lost += lost.lost;
        reader->note_lost(arg, lost.lost);
        *gap = true;
    } else if (head->type == PERF_RECORD_SAMPLE && head->size >= sizeof(struct sample)) {
        copy(perf, at, piece, head->size);
        tell_sample(reader, arg, piece, head->size);
    } else if (head->type == PERF_RECORD_SWITCH && head->size >= sizeof *head + sizeof trailer) {
        copy(perf, at + head->size - sizeof trailer, &trailer, sizeof trailer);
        bool out = head->misc & PERF_RECORD_MISC_SWITCH_OUT;
        bool preempted = head->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
        reader->note_switch(
            arg, &(struct gt_perf_switch){trailer.time, trailer.cpu, out, preempted, *gap});
        *gap = false;
    }
}

size_t gt_perf_read(struct gt_perf *perf, const struct gt_perf_reader *reader, void *arg)
{
    struct perf_event_mmap_page *page = (void *)perf->pages;
    struct perf_event_header head;
    bool gap = false;
    uint64_t begin = page->data_tail, tail = begin;
    uint64_t end =
        __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE); /* pairs with the kernel's */
    for (; end - tail >= sizeof head; tail += head.size) {
        copy(perf, tail, &head, sizeof head);
        if (head.size < sizeof head || head.size > end - tail)
            break;
        tell(perf, tail, &head, reader, arg, &gap);
    }
    __atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
    return tail - begin;
}
