/* See boxed.h. */
#include "boxed.h"

#include "box_names.h"

#include "encoder/base/era.h"
#include "encoder/base/sort.h"
#include "encoder/read/batches.h"
#include "encoder/read/need.h"
#include "encoder/thread/stacks.h"
#include "encoder/thread/strings.h"
#include "encoder/thread/texts.h"
#include "encoder/thread/writer.h"
#include "preload/shared/leaves.h"
#include "scripts/tool/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The box's file ----------------------------------------------------------------------------- */

static bool read_all(int fd, uint8_t *to, off_t from, off_t end)
{
    ssize_t n = 1;
    for (; from < end && n > 0; from += n)
        n = pread(fd, to + from, (size_t)(end - from), from);
    return n > 0;
}

/* Reads the file's data, not its holes. Mapped, a hole could be a SIGBUS on a full disk. */
static bool load(int fd, uint8_t *to, off_t size)
{
    off_t from = lseek(fd, 0, SEEK_DATA);
    while (from >= 0 && from < size) {
        off_t end = lseek(fd, from, SEEK_HOLE);
        if (end < 0 || !read_all(fd, to, from, end < size ? end : size))
            return false;
        from = lseek(fd, end, SEEK_DATA);
    }
    return from >= 0 || errno == ENXIO;
}

/* Whether the file became shorter meanwhile, so that data was read as zeros. Keeps errno. */
static bool is_shorter(int fd, off_t size)
{
    int saved = errno;
    struct stat now;
    bool shorter = fstat(fd, &now) == 0 && now.st_size < size;
    errno = saved;
    return shorter;
}

/* The bytes of the box; NULL: the file is no box. */
static const uint8_t *load_box(const char *path, struct stat *file)
{
    enum {
        PROTECTION = PROT_READ | PROT_WRITE,
        KIND = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
    };
    struct stat st = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        gt_fail(GT_EXIT_FAILED, "%s: %s", path, strerror(errno));
    bool fits = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
                st.st_size >= (off_t)(GT_BOX_PAGE + GT_BOX_LIVE);
    uint8_t *base = fits ? mmap(NULL, (size_t)st.st_size, PROTECTION, KIND, -1, 0) : NULL;
    bool loaded = base != MAP_FAILED && (!base || load(fd, base, st.st_size));
    if (base && base != MAP_FAILED && is_shorter(fd, st.st_size))
        gt_fail(GT_EXIT_FAILED, "%s: it became shorter while it was read", path);
    if (!loaded)
        gt_fail(GT_EXIT_FAILED, "%s: %s", path, strerror(errno));
    close(fd);
    *file = st;
    return base;
}

int gt_boxed_trace_length(const char *name)
{
    size_t length = strlen(name), suffix = sizeof GT_LIVE_SUFFIX - 1;
    bool named = length > suffix && strcmp(name + length - suffix, GT_LIVE_SUFFIX) == 0;
    return named ? (int)(length - suffix) : 0;
}

bool gt_boxed_is(const char *path, uint64_t *pid)
{
    uint64_t magic = 0;
    struct stat st; /* opening a FIFO may take for ever */
    int fd = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    *pid = 0;
    bool is = fd >= 0 &&
              pread(fd, &magic, sizeof magic, offsetof(struct gt_box, magic)) == sizeof magic &&
              pread(fd, pid, sizeof *pid, GT_BOX_PAGE + offsetof(struct gt_live, pid)) > 0 &&
              magic == GT_BOX_MAGIC;
    if (fd >= 0)
        close(fd);
    return is;
}

void gt_boxed_open(struct gt_boxed *b, const char *path)
{
    struct stat file;
    const uint8_t *base = load_box(path, &file);
    const struct gt_box *box = (const void *)base;
    if (!box || box->magic != GT_BOX_MAGIC)
        gt_fail(GT_EXIT_FAILED, "%s is no black box, such as the t.out.live of GOTRACE_LIVE=on",
                path);
    if (box->layout != gt_live_layout(gt_real_names()))
        gt_fail(GT_EXIT_FAILED, "%s: of another version of libgotrace: its gotrace recovers it",
                path);
    *b = (struct gt_boxed){.path = path,
                           .file = file,
                           .base = base,
                           .size = (size_t)file.st_size,
                           .box = box,
                           .live = (const void *)(base + GT_BOX_PAGE)};
    char format[sizeof b->live->format + 1] = "";
    memcpy(format, b->live->format, sizeof b->live->format);
    b->format = gt_format_find(format);
    if (!b->format || b->size < box->size)
        gt_fail(GT_EXIT_FAILED, "%s: damaged", path);
}

const void *gt_boxed_at(const struct gt_boxed *b, uint64_t address, size_t size)
{
    uint64_t at = address - b->box->at;
    bool is_in = at < b->size && size <= b->size - at && at % sizeof(uint64_t) == 0;
    return is_in ? b->base + at : NULL;
}

const struct gt_live_whole *gt_boxed_whole(const struct gt_boxed *b)
{
    const struct gt_live_whole *w = b->live->whole;
    return &w[w[1].gen > w[0].gen];
}

/* Tables ------------------------------------------------------------------------------------- */

/* Damaged links may form a circle: so each list notes the elements that it has seen. */

static void adopt_stacks(struct gt_boxed *b, uint64_t address, struct gt_memo *seen)
{
    const struct gt_stack *s;
    while ((s = gt_boxed_at(b, address, sizeof *s)) && gt_need_new(seen, address)) {
        bool is_whole = s->n && s->n <= GT_FRAMES_MAX &&
                        gt_boxed_at(b, address, sizeof *s + s->n * sizeof *s->pcs);
        uint64_t *slot = is_whole ? gt_need(gt_memo_at(&b->stacks, address)) : NULL;
        if (slot)
            *slot = (uintptr_t)gt_need(gt_stacks_adopt(s));
        address = (uintptr_t)s->next;
    }
}

static void adopt_strings(struct gt_boxed *b, uint64_t address, struct gt_memo *seen)
{
    const struct gt_string *s;
    while ((s = gt_boxed_at(b, address, sizeof *s)) && gt_need_new(seen, address)) {
        bool is_whole = s->id && s->len && s->len <= GT_STRING_MAX &&
                        gt_boxed_at(b, address, sizeof *s + s->len);
        bool is_one = is_whole && (!s->of_lock || s->len == sizeof(struct gt_held_key));
        uint64_t *slot = is_one ? gt_need(gt_memo_at(&b->strings, address)) : NULL;
        if (slot)
            *slot = (uintptr_t)gt_need(gt_strings_adopt(s));
        address = (uintptr_t)s->next;
    }
}

static void adopt_modules(const struct gt_boxed *b, struct gt_memo *seen)
{
    const struct gt_boxed_module *m;
    uint64_t address = b->box->root[GT_BOX_MODULES];
    while ((m = gt_boxed_at(b, address, sizeof *m)) && gt_need_new(seen, address)) {
        size_t room = b->size - (size_t)((const uint8_t *)m->description - b->base);
        if (memchr(m->description, 0, room))
            gt_recovered_module(m);
        address = m->next;
    }
}

void gt_boxed_adopt(struct gt_boxed *b)
{
    const struct gt_era *era;
    uint64_t address = b->box->root[GT_BOX_ERA];
    struct gt_memo seen = {0};
    adopt_modules(b, &seen);
    while ((era = gt_boxed_at(b, address, sizeof *era)) && gt_need_new(&seen, address)) {
        for (size_t i = 0; i < GT_ERA_STACKS; i++)
            adopt_stacks(b, (uintptr_t)era->stacks[i], &seen);
        adopt_strings(b, (uintptr_t)era->first_string, &seen);
        address = (uintptr_t)era->older;
    }
    gt_memo_free(&seen);
}

/* Buffers ------------------------------------------------------------------------------------ */

/* The whole events at the beginning of a buffer. */
struct row {
    uint32_t whole; /* bytes */
    uint64_t events;
    uint64_t ts; /* time of the last event, since the buffer's beginning */
    uint8_t last;
};

static struct row row_of(struct gt_bytes data)
{
    const uint8_t *start = data.p;
    struct row row = {0};
    while (gt_bytes_left(&data)) {
        uint8_t type = gt_get_byte(&data);
        int n = type < GT_EVENTS_END ? gt_event_args[type] : -1;
        uint64_t delta = gt_get_varint(&data);
        for (int i = 0; i < n; i++)
            gt_get_varint(&data);
        if (n < 0 || data.bad)
            break;
        row = (struct row){(uint32_t)(data.p - start), row.events + 1, row.ts + delta, type};
    }
    return row;
}

static uint32_t whole_events(struct gt_bytes data, uint64_t *events)
{
    struct row row = row_of(data);
    *events += row.events;
    return row.whole;
}

static uint32_t whole_texts(struct gt_bytes data)
{
    uint64_t id;
    struct gt_bytes text;
    const uint8_t *start = data.p, *whole = start + 1;
    gt_get_byte(&data);
    while (gt_batch_next_string(&data, &id, &text) && gt_bytes_left(&text) <= GT_STRING_MAX) {
        gt_texts_adopt_id(id);
        whole = data.p;
    }
    return (uint32_t)(whole - start);
}

static uint32_t whole_batches(struct gt_bytes data, uint64_t *events)
{
    struct gt_batch batch;
    const uint8_t *start = data.p, *whole = start;
    while (gt_batch_next(&data, &batch) && batch.kind == GT_EV_EVENT_BATCH &&
           whole_events(batch.data, events) == gt_bytes_left(&batch.data))
        whole = data.p;
    return (uint32_t)(whole - start);
}

static uint32_t used_of(const struct gt_boxed *b, const struct gt_buf *buf)
{
    uint64_t data = b->box->at + (uint64_t)(buf->data - b->base);
    uint64_t used = buf->pos ? (uintptr_t)buf->pos - data : buf->used;
    return used <= GT_BUF_ROOM ? (uint32_t)used : 0;
}

static uint32_t whole_of(const struct gt_buf *buf, uint32_t used, uint64_t *events)
{
    struct gt_bytes data = {buf->data, buf->data + used, false};
    if (buf->m == GT_BUF_PACKED)
        return whole_batches(data, events);
    return *data.p == GT_EV_STRINGS ? whole_texts(data) : whole_events(data, events);
}

struct gt_buf *gt_boxed_copy(const struct gt_boxed *b, const struct gt_buf *buf,
                             struct gt_boxed_sum *sum)
{
    uint32_t used = used_of(b, buf), whole = used ? whole_of(buf, used, &sum->events) : 0;
    struct gt_buf *copy = gt_need(malloc(sizeof *copy + whole));
    memcpy(copy, buf, sizeof *copy + whole);
    sum->torn += used - whole;
    copy->used = whole;
    copy->cuts = copy->cuts < GT_CUTS_MAX ? copy->cuts : GT_CUTS_MAX;
    for (uint32_t i = 0; i < copy->cuts; i++) {
        uint32_t before = i ? copy->cut[i - 1].at : 0;
        if (copy->cut[i].at <= before || copy->cut[i].at >= whole)
            copy->cuts = i;
    }
    return copy;
}

/*
 * A thread that woke without getting its lock notes the repeated wait in memory of its own, and
 * writes it later, with its next events: see gt_ev_rewaits_locked. Notes up to the time of the
 * thread's last event were written.
 */
struct stream {
    uint64_t ts;
    uint8_t last;
};

static struct stream stream_of(struct gt_buf *const *bufs, size_t n, uint32_t m)
{
    struct stream stream = {0};
    for (size_t i = 0; i < n; i++) {
        const struct gt_buf *buf = bufs[i];
        if (buf->m != m || gt_texts_in(buf))
            continue;
        struct row row = row_of((struct gt_bytes){buf->data, buf->data + buf->used, false});
        stream = (struct stream){buf->ts + row.ts, row.events ? row.last : stream.last};
    }
    return stream;
}

static uint32_t stack_of(const struct gt_boxed *b, const struct gt_stack *its, uint32_t gen)
{
    uint64_t stack = gt_memo_find(&b->stacks, (uintptr_t)its);
    return gt_stack_use((struct gt_stack *)(uintptr_t)stack, gen);
}

static uint8_t *put_rewait(const struct gt_boxed *b, uint8_t *p, const struct gt_rewaits *all,
                           const struct gt_rewait *r, struct stream *stream)
{
    bool half = r->ts == stream->ts && stream->last == GT_EV_GO_START;
    if (r->ts <= stream->ts && !half)
        return p;
    if (!half) {
        *p++ = GT_EV_GO_START;
        p = gt_varint_put(p, r->ts - stream->ts);
        p = gt_varint_put(gt_varint_put(p, all->g), r->seq);
    }
    *p++ = GT_EV_GO_BLOCK;
    p = gt_varint_put(gt_varint_put(p, 0), GT_REASON_SYNC);
    *stream = (struct stream){r->ts, GT_EV_GO_BLOCK};
    return gt_varint_put(p, stack_of(b, r->stack, r->gen));
}

static struct gt_buf *rewaits_of(const struct gt_boxed *b, const struct gt_rewaits *all,
                                 uint32_t gen, struct stream stream)
{
    struct gt_buf *buf = gt_need(calloc(1, GT_BUF_BYTES));
    if (!stream.last)
        stream.ts = all->at[0].ts - 1; /* the thread has no events in this generation */
    *buf = (struct gt_buf){.gen = gen, .m = all->m, .ts = stream.ts, .serial = UINT64_MAX};
    uint8_t *p = buf->data;
    for (uint32_t i = 0; i < all->n && i < GT_REWAITS_MAX; i++) {
        if (all->at[i].gen == gen)
            p = put_rewait(b, p, all, &all->at[i], &stream);
    }
    buf->used = (uint32_t)(p - buf->data);
    return buf;
}

GT_ORDER_POINTERS(by_serial, struct gt_buf, GT_UP(serial))

static void add(struct gt_buf ***link, struct gt_buf *buf)
{
    buf->next = NULL;
    **link = buf;
    *link = &buf->next;
}

/* NULL: not there, or not aligned to a cache line, as a damaged address may be. */
static const struct gt_rewaits *rewaits_at(const struct gt_boxed *b, uint64_t address)
{
    const void *at = gt_boxed_at(b, address, sizeof(struct gt_rewaits));
    return (uintptr_t)at % _Alignof(struct gt_rewaits) == 0 ? at : NULL;
}

static void add_rewaits(const struct gt_boxed *b, uint32_t gen, struct gt_buf *const *bufs,
                        size_t n, struct gt_buf ***link)
{
    const struct gt_rewaits *all;
    uint64_t address = b->box->root[GT_BOX_REWAITS];
    struct gt_memo seen = {0};
    while ((all = rewaits_at(b, address)) && gt_need_new(&seen, address)) {
        struct stream stream = stream_of(bufs, n, all->m);
        if (all->n)
            add(link, rewaits_of(b, all, gen, stream));
        address = all->next;
    }
    gt_memo_free(&seen);
}

bool gt_boxed_generation(const struct gt_boxed *b, uint32_t gen, struct gt_boxed_generation *g,
                         struct gt_boxed_sum *sum)
{
    struct gt_buf **all = NULL, **packed = &g->packed, **plain = &g->plain;
    size_t n = 0;
    uint64_t before = sum->events;
    *g = (struct gt_boxed_generation){.packed = NULL};
    const struct gt_buf *buf;
    uint64_t at = b->box->buffers, end = b->box->buffers_end;
    for (; at < end && (buf = gt_boxed_at(b, b->box->at + at, GT_BUF_BYTES)); at += GT_BUF_BYTES) {
        if (buf->gen != gen)
            continue;
        *GT_ADD(all, n) = gt_boxed_copy(b, buf, sum);
    }
    if (n)
        qsort(all, n, sizeof *all, by_serial);
    for (size_t i = 0; i < n; i++)
        add(all[i]->m == GT_BUF_PACKED ? &packed : &plain, all[i]);
    bool has_events = sum->events > before;
    if (has_events)
        add_rewaits(b, gen, all, n, &plain);
    free(all);
    return has_events;
}
