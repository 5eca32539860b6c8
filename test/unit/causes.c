/*
 * Rule 6 of writer.h: however much the clocks of CPUs disagree, no effect is before its cause in
 * the eyes of a reader. Threads pass a turn around, each with a clock of its own; then the trace is
 * read by the rules of Go's reader: of all threads the event with the earliest time comes next, and
 * it must always be one that can be.
 */
#include "encoder/drain/child.h"
#include "encoder/drain/drain.h"
#include "encoder/drain/recording.h"
#include "encoder/thread/call.h"
#include "encoder/thread/events.h"
#include "encoder/thread/room.h"
#include "encoder/thread/states.h"
#include "encoder/thread/switch.h"

#include "check.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

enum { THREADS = 40, TURNS = 30000, FIRST_M = 100, SKEW = 3000 };

/* Writing ------------------------------------------------------------------------------------ */

static struct gt_writer writer[THREADS];
static uint64_t now_units = 1000, skew, skew_of[THREADS], seed = 1;

static int skewed_clock(clockid_t clock, struct timespec *ts)
{
    (void)clock;
    ts->tv_sec = (time_t)((now_units + skew) / 1000000000u);
    ts->tv_nsec = (long)((now_units + skew) % 1000000000u);
    return 0;
}

static int resolve(const struct gt_stack *s, uint32_t index, struct gt_frame *out, int max)
{
    (void)s, (void)index, (void)max;
    *out = (struct gt_frame){.func = "fn", .file = "f.c", .line = 7};
    return 1;
}

static uint64_t number(uint64_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % below;
}

static struct gt_writer *enter(unsigned i)
{
    now_units += 1 + number(20);
    skew = skew_of[i];
    CHECK(gt_writer_pin(&writer[i]), "recording");
    return &writer[i];
}

static void begin_all(struct gt_stack *stack)
{
    for (unsigned i = 0; i < THREADS; i++) {
        writer[i].g.id = i + 1;
        writer[i].m = FIRST_M + i;
        skew_of[i] = number(SKEW);
        gt_writer_register(&writer[i]);
        struct gt_writer *w = enter(i);
        if (i == 0) {
            gt_ev_thread_running(w);
        } else {
            gt_ev_thread_appear(w, stack);
            gt_ev_go_block(w, 0, GT_REASON_SYNC, stack);
        }
        gt_writer_unpin(w);
    }
}

/* What a thread does in its turn: things that need many events, and calls (after which sequence
 * numbers begin anew in some formats). */
static void have_turn(unsigned i, struct gt_stack *stack)
{
    struct gt_writer *w = enter(i);
    for (uint64_t n = i % 4 ? 0 : number(30); n--;)
        gt_ev_heap_alloc(w, 0, n);
    if (number(2)) {
        gt_call_write(w, 0, GT_REASON_NONE, stack);
        gt_ev_go_resume(w, stack);
    }
    gt_writer_unpin(w);
}

/* Some have spurious wake-ups first. */
static void pass(unsigned from, unsigned to, struct gt_stack *stack)
{
    struct gt_writer *w = enter(from);
    CHECK(gt_ev_go_unblock(w, &writer[to].g, stack), "pinned");
    for (uint64_t n = number(8) ? 0 : number(4); n--;) {
        now_units += number(1000);
        CHECK(gt_ev_go_unblock_again(w, &writer[to].g, stack), "pinned");
    }
    gt_ev_go_block(w, 0, GT_REASON_SYNC, stack);
    gt_writer_unpin(w);
    w = enter(to);
    gt_ev_go_resume(w, stack);
    gt_writer_unpin(w);
}

static void record(const char *format, const char *path)
{
    static const uint64_t pc = 0x1000;
    unsigned turn = 0;
    memset(writer, 0, sizeof writer);
    gt_clock_read = skewed_clock;
    gt_clock = (struct gt_clock){.hardware = false, .hz = 187654321, .rough_hz = 187654321};
    gt_drain_open(&(struct gt_drain_config){
        .file = {.path = path, .format = gt_format_find(format)}, .names = {resolve}});
    struct gt_stack *stack = gt_stacks_get(&pc, 1, 1);
    begin_all(stack);
    for (int i = 0; i < TURNS; i++) {
        unsigned next = (turn + 1 + (unsigned)number(THREADS - 1)) % THREADS;
        have_turn(turn, stack);
        pass(turn, next, stack);
        turn = next;
    }
    gt_drain_finish();
    CHECK_EQ(gt_recording_summary().error, 0);
    gt_encoder_after_fork(); /* as good as new */
}

/* Reading ------------------------------------------------------------------------------------ */

struct batch {
    const uint8_t *pos, *end;
    uint64_t time; /* in ns, as a reader has it */
};

static struct stream {
    struct batch batch[1000];
    unsigned batches, at;
    uint8_t type;
    uint64_t time, arg[GT_EVENT_ARGS_MAX];
    bool more;
} stream[THREADS];

static struct {
    uint64_t seq;
    uint8_t state;
} g[THREADS + 1];

static double ns_per_unit;

static uint64_t get(const uint8_t **p)
{
    uint64_t v = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = *(*p)++;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return v;
    }
}

/* As batchCursor.nextEvent does it. */
static void advance(struct stream *s)
{
    while (s->at < s->batches && s->batch[s->at].pos == s->batch[s->at].end)
        s->at++;
    s->more = s->at < s->batches;
    if (!s->more)
        return;
    struct batch *b = &s->batch[s->at];
    s->type = *b->pos++;
    b->time += (uint64_t)((double)get(&b->pos) * ns_per_unit);
    s->time = b->time;
    for (int i = 0; i < gt_event_args[s->type]; i++)
        s->arg[i] = get(&b->pos);
}

static void read_batches(const uint8_t *p, const uint8_t *end)
{
    memset(stream, 0, sizeof stream);
    memset(g, 0, sizeof g);
    while (p < end) {
        if (*p++ == GT_EV_END_OF_GENERATION)
            continue;
        get(&p); /* generation */
        uint64_t m = get(&p), time = get(&p), size = get(&p);
        if (m >= FIRST_M) {
            struct stream *s = &stream[m - FIRST_M];
            CHECK(s->batches < 1000, "%u", s->batches);
            s->batch[s->batches++] =
                (struct batch){p, p + size, (uint64_t)((double)time * ns_per_unit)};
        }
        p += size;
    }
}

/* Whether s's next event can be the next one of all; it then is. */
static bool take(struct stream *s)
{
    uint64_t id = s->arg[0], own = (uint64_t)(s - stream) + 1;
    switch (s->type) {
    case GT_EV_GO_STATUS:
    case GT_EV_GO_STATUS_STACK:
        g[id].state = (uint8_t)s->arg[2];
        g[id].seq = 0;
        return true;
    case GT_EV_GO_CREATE:
        g[id].state = GT_G_RUNNABLE;
        g[id].seq = 0;
        return true;
    case GT_EV_GO_START:
    case GT_EV_GO_UNBLOCK:
        if (g[id].state != (s->type == GT_EV_GO_START ? GT_G_RUNNABLE : GT_G_WAITING) ||
            g[id].seq + 1 != s->arg[1])
            return false;
        g[id].state = s->type == GT_EV_GO_START ? GT_G_RUNNING : GT_G_RUNNABLE;
        g[id].seq++;
        return true;
    case GT_EV_GO_BLOCK: g[own].state = GT_G_WAITING; return true;
    case GT_EV_GO_STOP: g[own].state = GT_G_RUNNABLE; return true;
    default: return true;
    }
}

static struct stream *earliest(void)
{
    struct stream *first = NULL;
    for (struct stream *s = stream; s < stream + THREADS; s++) {
        if (s->more && (!first || s->time < first->time))
            first = s;
    }
    return first;
}

static void check_order(const char *format, const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY);
    CHECK(fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 100000, "%s", path);
    const uint8_t *file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    CHECK(file != MAP_FAILED, "%s", path);
    read_batches(file + GT_HEADER_BYTES, file + st.st_size);
    for (struct stream *s = stream; s < stream + THREADS; s++)
        advance(s);
    uint64_t n = 0;
    for (struct stream *s; (s = earliest()); n++) {
        for (struct stream *same = stream; same < stream + THREADS; same++) {
            if (same->more && same->time == s->time && same != s) /* any of them may be tried */
                CHECK(same->type != GT_EV_GO_START || g[same->arg[0]].state == GT_G_RUNNABLE,
                      "%s, event %" PRIu64, format, n);
        }
        CHECK(take(s), "%s, event %" PRIu64 ": type %u at %" PRIu64, format, n, s->type, s->time);
        advance(s);
    }
    CHECK(n > 4 * TURNS, "%" PRIu64, n);
    munmap((void *)file, (size_t)st.st_size);
    close(fd);
}

int main(void)
{
    static const char *const formats[] = {"go1.22", "go1.23", "go1.25", "go1.26"};
    ns_per_unit = 1e9 / 187654321;
    for (unsigned i = 0; i < sizeof formats / sizeof *formats; i++) {
        char path[] = "/tmp/gt-causes-XXXXXX";
        close(mkstemp(path));
        record(formats[i], path);
        check_order(formats[i], path);
        unlink(path);
    }
    return 0;
}
