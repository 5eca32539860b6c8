/*
 * Accounts of threads that begin and end before, in and after recordings: each reports its use in
 * that time, once. What the kernel would say is made up here; the files are read
 * with the command's own reader.
 */
#include "encoder/base/futex.h"
#include "encoder/drain/drain.h"
#include "encoder/drain/recording.h"
#include "encoder/read/trace.h"
#include "encoder/thread/events.h"
#include "encoder/thread/room.h"

#include "check.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MANY = 5000, THREADS = MANY + 100 };

static struct gt_usage world[THREADS]; /* by tid; known 0: there is no such thread */
static struct gt_writer writers[THREADS];
static uint32_t self, looks;

static bool read_usage(uint32_t tid, unsigned wanted, struct gt_usage *usage)
{
    uint32_t who = tid ? tid : self;
    looks += tid && (wanted & GT_KNOWN_QUEUE) != 0;
    CHECK(who < THREADS, "thread %u", who);
    *usage = world[who];
    usage->known &= wanted;
    return world[who].known != 0;
}

static void use(uint32_t tid, uint64_t n)
{
    world[tid].known = GT_KNOWN_ALL;
    for (int i = 0; i < GT_USED_NUMBERS; i++)
        world[tid].of[i] += n * (unsigned)(i + 1);
}

/* Threads ------------------------------------------------------------------------------------ */

/* Threads are their own goroutine; the number goes on where a writer serves another thread. */
static uint64_t last_g;

static struct gt_writer *begin_thread(uint32_t tid, uint32_t memory)
{
    struct gt_writer *w = &writers[memory];
    if (!w->next && !w->g.id)
        gt_writer_register(w);
    w->g.id = ++last_g;
    w->m = tid;
    w->last = gt_clock_now();
    self = tid;
    world[tid].known = GT_KNOWN_ALL;
    CHECK(gt_writer_pin(w));
    if (last_g == 1)
        gt_ev_thread_running(w);
    else
        gt_ev_go_create(w, &w->g, NULL, NULL), gt_ev_thread_start(w);
    gt_writer_unpin(w);
    return w;
}

static void end_thread(struct gt_writer *w)
{
    self = w->m;
    CHECK(gt_writer_pin(w));
    gt_ev_thread_end(w);
    gt_writer_unpin(w);
    world[w->m].known = 0;
}

/* The file ----------------------------------------------------------------------------------- */

static struct gt_usage told[THREADS * 2]; /* by goroutine */
static uint32_t rows, looked;

static bool possible(void *unused, const struct gt_happening *h)
{
    (void)unused;
    (void)h;
    return true;
}

static void tell(void *unused, const struct gt_happening *h, uint64_t ns)
{
    (void)unused;
    (void)h;
    (void)ns;
}

static void sample(void *unused, const struct gt_cpu_sample *s, uint64_t ns)
{
    (void)unused;
    (void)s;
    (void)ns;
}

static void account(void *unused, const struct gt_account_row *row, uint64_t ns, uint64_t length)
{
    (void)unused;
    CHECK(length <= ns + 1000, "%" PRIu64 " of %" PRIu64, length, ns);
    CHECK(row->g < THREADS * 2);
    rows++;
    looked += row->g == 0;
    for (int i = 0; i < GT_USED_NUMBERS && row->g; i++)
        told[row->g].of[i] += row->used.of[i];
}

static void read_file(const char *path)
{
    struct gt_trace trace;
    memset(told, 0, sizeof told);
    rows = looked = 0;
    CHECK(gt_trace_open(&trace, path) == NULL, "%s", path);
    const struct gt_audience all = {
        .possible = possible, .tell = tell, .sample = sample, .account = account};
    CHECK(gt_trace_read(&trace, &all), "%s: %s", path, trace.damage);
    CHECK(trace.whole, "%s", path);
}

static void check_told(uint64_t g, uint64_t n)
{
    for (int i = 0; i < GT_USED_NUMBERS; i++)
        CHECK(told[g].of[i] == n * (unsigned)(i + 1), "goroutine %" PRIu64 ", %d: %" PRIu64, g, i,
              told[g].of[i]);
}

/* What the clock and counts tell, which a thread that ends can still say, but for the queue. */
static void check_told_at_end(uint64_t g, uint64_t n, uint64_t queue)
{
    CHECK_EQ(told[g].of[GT_USED_CPU], n * (GT_USED_CPU + 1));
    CHECK_EQ(told[g].of[GT_USED_FAULTS], n * (GT_USED_FAULTS + 1));
    CHECK_EQ(told[g].of[GT_USED_QUEUE], queue * (GT_USED_QUEUE + 1));
}

/* Scenes ------------------------------------------------------------------------------------- */

static char path[] = "/tmp/gt-account-XXXXXX";

static const char *next_path(void)
{
    return path;
}

static void open_drain(const char *format, bool manual)
{
    gt_clock_init();
    gt_drain_open(&(struct gt_drain_config){.file = {path, gt_format_find(format)},
                                            .times = {.manual = manual},
                                            .host = {.next_path = next_path},
                                            .cpus = {.usage = read_usage}});
}

static void command(enum gt_drain_command what)
{
    CHECK_EQ(gt_drain_command(what, NULL), 0);
}

static void from_the_start(const char *format)
{
    use(1, 5);
    open_drain(format, false);
    begin_thread(1, 1);
    struct gt_writer *brief = begin_thread(2, 2), *unseen = begin_thread(3, 3);
    begin_thread(4, 4);
    use(1, 10);
    use(2, 20);
    use(3, 30);
    command(GT_DRAIN_SNAPSHOT);
    use(2, 7);
    end_thread(brief);
    world[unseen->m].known = 0; /* it ends by the bare system call */
    struct gt_writer *next = begin_thread(5, 2);
    use(5, 1);
    end_thread(next);
    use(1, 1);
    gt_drain_finish();
    read_file(path);
    check_told(1, 11);
    check_told_at_end(2, 27, 20);
    check_told(3, 30);
    check_told(4, 0);
    check_told_at_end(5, 1, 0);
    CHECK(looked >= 1, "everybody was looked at");
}

/* Threads of a time in which nothing is recorded leave nothing, nor do they take memory. */
static void from_later_on(const char *format)
{
    open_drain(format, true);
    begin_thread(1, 1);
    use(1, 3);
    for (int i = 0; i < MANY; i++) {
        struct gt_writer *w = begin_thread(2, 2);
        use(2, 1000);
        end_thread(w);
    }
    uint64_t there = last_g + 1;
    begin_thread(3, 3);
    use(3, 100);
    command(GT_DRAIN_START);
    use(3, 5);
    use(1, 1);
    command(GT_DRAIN_STOP);
    read_file(path);
    check_told(1, 1);
    check_told(there, 5);
    CHECK_EQ(rows - looked, 2);
    use(3, 50);
    command(GT_DRAIN_START);
    use(3, 2);
    command(GT_DRAIN_STOP);
    read_file(path);
    check_told(there, 2);
    gt_drain_finish();
}

/* Few are looked at in a generation, all of them at the end; then everything is written. */
static void many(const char *format)
{
    open_drain(format, false);
    for (uint32_t i = 1; i <= MANY; i++)
        begin_thread(i, i);
    command(GT_DRAIN_SNAPSHOT); /* two generations */
    for (int round = 0; round < 10; round++) {
        for (uint32_t i = 1; i <= MANY; i++)
            use(i, i);
        looks = 0;
        command(GT_DRAIN_SNAPSHOT);
        CHECK(looks <= 250, "%u in two generations", looks);
    }
    gt_drain_finish();
    read_file(path);
    for (uint32_t i = 1; i <= MANY; i++) /* some of them nothing else, even at the two ends */
        CHECK_EQ(told[i].of[GT_USED_CPU], 10 * i);
}

int main(void)
{
    static void (*const scenes[])(const char *) = {from_the_start, from_later_on, many};
    static const char *const formats[] = {"go1.5", "go1.21", "go1.22", "go1.26"};
    close(mkstemp(path));
    for (unsigned i = 0; i < 3; i++) {
        for (unsigned f = 0; f < 4; f++) {
            int status;
            pid_t pid = fork();
            if (pid == 0) {
                scenes[i](formats[f]);
                exit(0);
            }
            CHECK(waitpid(pid, &status, 0) == pid && status == 0, "scene %u, %s", i, formats[f]);
        }
    }
    unlink(path);
    return 0;
}
