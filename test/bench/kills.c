/*
 * What a kill of test/prog/killed.c has left, for kills.py: compares its journal with the logs of
 * a trace, or of the files of one, or with the yields in formats that have no logs; and says where
 * its black box was. Usage: kills JOURNAL begin|any BOX|- TRACE...; "any": the flight recorder may
 * have forgotten what was first. Reads the files' structure only, in no order of time.
 */
#include "encoder/drain/live.h"
#include "encoder/read/batches.h"
#include "encoder/read/need.h"
#include "encoder/read/trace.h"
#include "encoder/read/v1_records.h"
#include "encoder/drain/ring.h"
#include "encoder/thread/writer.h"

#include "encoder/base/memo.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { THREADS = 8, LATEST = 1 << 24 };

/* As killed.c has it. */
static struct {
    _Alignas(64) uint64_t written;
    uint64_t yields;
} journal[THREADS];

static struct {
    uint8_t *has; /* by number */
    uint64_t n, first, last;
} found[THREADS];

static uint64_t yields;
static bool has_logs;

static void fail(const char *why, const char *what)
{
    printf("%s: %s\n", why, what);
    exit(EXIT_FAILURE);
}

/* The box ------------------------------------------------------------------------------------ */

static const void *at(const struct gt_box *box, uint64_t address)
{
    uint64_t offset = address - box->at;
    return address && offset < box->size ? (const char *)box + offset : NULL;
}

static const struct gt_live *live_of(const struct gt_box *box)
{
    return (const void *)((const char *)box + GT_BOX_PAGE);
}

/* NULL: it was not yet made. */
static const struct gt_box *map_box(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0)
        fail(path, "is not there");
    const struct gt_box *box =
        st.st_size ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0) : NULL;
    close(fd);
    return box && box->magic == GT_BOX_MAGIC ? box : NULL;
}

static void say_generations(const struct gt_box *box)
{
    const struct gt_live *live = live_of(box);
    uint32_t a = live->whole[0].gen, b = live->whole[1].gen, whole = a > b ? a : b;
    uint32_t kept = 0, later = 0;
    const struct gt_kept *k = at(box, box->root[GT_BOX_KEPT]);
    if (k && k->gen > 1)
        printf(" ring-turned");
    for (; k; k = at(box, (uintptr_t)k->next))
        kept = k->gen;
    whole = kept > whole ? kept : whole;
    for (int i = 0; i < 2; i++)
        later += live->begun[i].gen > whole;
    printf(" %s%s", whole ? "" : "first-generation ", later == 2 ? "between-generations" : "");
}

static void say_where(const struct gt_box *box)
{
    enum { TABLES_FIRST = 256 << 10 }; /* box.c */
    if (box->tables_end > GT_BOX_PAGE + GT_BOX_LIVE + TABLES_FIRST)
        printf(" tables-grown");
    say_generations(box);
    const struct gt_rewaits *r = at(box, box->root[GT_BOX_REWAITS]);
    while (r && !r->n)
        r = at(box, r->next);
    printf("%s", r ? " vain-wake-ups" : "");
}

/* Logs --------------------------------------------------------------------------------------- */

/* "3:217", the number of thread 3's log; no other text begins with a digit. */
static void find_log(struct gt_bytes text)
{
    char copy[32] = "";
    unsigned thread;
    uint64_t number;
    memcpy(copy, text.p, gt_bytes_left(&text) < sizeof copy ? gt_bytes_left(&text) : 0);
    if (sscanf(copy, "%u:%" SCNu64, &thread, &number) != 2)
        return;
    if (thread >= THREADS || !number || number >= LATEST || found[thread].has[number])
        fail("nobody's log, or twice", copy);
    found[thread].has[number] = 1;
    found[thread].n++;
    if (number > found[thread].last)
        found[thread].last = number;
    if (!found[thread].first || number < found[thread].first)
        found[thread].first = number;
}

/* v2 ----------------------------------------------------------------------------------------- */

/* Of a generation: where the text of each string is. */
static void find_strings(struct gt_bytes generation, struct gt_memo *strings, struct gt_bytes **all)
{
    size_t n = 0;
    uint64_t id;
    struct gt_batch batch;
    struct gt_bytes text;
    while (gt_batch_next(&generation, &batch)) {
        if (batch.kind != GT_EV_STRINGS)
            continue;
        gt_get_byte(&batch.data);
        while (gt_batch_next_string(&batch.data, &id, &text)) {
            *GT_ADD(*all, n) = text;
            *(uint64_t *)gt_need(gt_memo_at(strings, id)) = n;
        }
    }
}

static void find_logs(struct gt_bytes events, const struct gt_memo *strings,
                      const struct gt_bytes *texts)
{
    enum { TEXT = 2 };
    while (gt_bytes_left(&events)) {
        uint64_t arg[GT_EVENT_ARGS_MAX];
        uint8_t type = gt_get_byte(&events);
        if (type >= GT_EVENTS_END || gt_event_args[type] < 0)
            fail("no event", "its type");
        gt_get_varint(&events);
        for (int i = 0; i < gt_event_args[type]; i++)
            arg[i] = gt_get_varint(&events);
        if (type != GT_EV_USER_LOG)
            continue;
        uint64_t text = gt_memo_find(strings, arg[TEXT]);
        if (!text)
            fail("a log", "without its text");
        find_log(texts[text - 1]);
    }
    if (events.bad)
        fail("an event", "is not whole");
}

static void read_generation(struct gt_bytes generation)
{
    struct gt_memo strings = {0};
    struct gt_bytes *texts = NULL;
    struct gt_batch batch;
    find_strings(generation, &strings, &texts);
    while (gt_batch_next(&generation, &batch)) {
        if (batch.kind == GT_EV_EVENT_BATCH)
            find_logs(batch.data, &strings, texts);
    }
    gt_memo_free(&strings);
    free(texts);
}

static void read_v2(struct gt_bytes file, const struct gt_format *format)
{
    while (gt_bytes_left(&file)) {
        const uint8_t *end = gt_generation_end(file, format);
        if (!end)
            fail("a generation", "is not whole");
        read_generation((struct gt_bytes){file.p, end, false});
        file.p = end;
    }
}

/* v1 ----------------------------------------------------------------------------------------- */

static void read_v1(struct gt_bytes file, const struct gt_format *format)
{
    struct gt_v1_record record;
    while (gt_bytes_left(&file)) {
        if (!gt_v1_record_next(&file, format, &record))
            fail("a record", "is not whole");
        yields += record.type == GT_V1_GO_SCHED;
        if (record.type == GT_V1_USER_LOG)
            find_log(record.value);
    }
}

/* The file that the box goes on with, or that it begins. There is a copy of it with all that
 * follows. */
static bool is_of(const struct gt_box *box, const char *path)
{
    const struct gt_live_whole *whole = box ? live_of(box)->whole : NULL;
    whole += whole && whole[1].gen > whole[0].gen;
    return whole && strcmp(basename(path), basename(whole->path)) == 0;
}

static void read_trace(const struct gt_box *box, const char *path)
{
    struct gt_bytes file = {.p = NULL};
    if (is_of(box, path))
        return;
    const char *why = gt_trace_map(&file, path, GT_HEADER_BYTES);
    const struct gt_format *format = why || !file.p ? NULL : gt_format_of_header(file.p);
    if (!format)
        fail(path, why ? why : "no trace");
    has_logs = !format->v1 || gt_v1_has(format, GT_V1_USER_LOG);
    file.p += GT_HEADER_BYTES;
    (format->v1 ? read_v1 : read_v2)(file, format);
}

/* The journal -------------------------------------------------------------------------------- */

/* A thread has written its log before its journal. */
static void compare_logs(bool from_begin)
{
    for (int i = 0; i < THREADS; i++) {
        char what[128];
        uint64_t its = journal[i].written, last = found[i].last, first = found[i].first;
        snprintf(what, sizeof what,
                 "journal %" PRIu64 ", found %" PRIu64 ": %" PRIu64 " to %" PRIu64, its, found[i].n,
                 first, last);
        if (!found[i].n && !from_begin)
            continue; /* it has written nothing for longer than that remembers */
        if (last < its || last > its + 1)
            fail("the last ones", what);
        if (found[i].n && (found[i].n != last - first + 1 || (from_begin && first != 1)))
            fail("not all of them", what);
    }
}

static void compare_yields(bool from_begin)
{
    char what[128];
    uint64_t made = 0;
    for (int i = 0; i < THREADS; i++)
        made += journal[i].yields;
    snprintf(what, sizeof what, "journal %" PRIu64 ", found %" PRIu64, made, yields);
    if ((from_begin && yields < made) || yields > made + THREADS)
        fail("yields", what);
}

static uint64_t read_journal(const char *path)
{
    uint64_t logs = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, journal, sizeof journal) < 0)
        fail(path, "is not there");
    for (int i = 0; i < THREADS; i++) {
        found[i].has = gt_need(calloc(LATEST, 1));
        logs += journal[i].written;
    }
    close(fd);
    return logs;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        fail("kills", "JOURNAL begin|any BOX|- TRACE...");
    bool from_begin = strcmp(argv[2], "begin") == 0;
    const struct gt_box *box = strcmp(argv[3], "-") == 0 ? NULL : map_box(argv[3]);
    uint64_t logs = read_journal(argv[1]);
    for (int i = 4; i < argc; i++)
        read_trace(box, argv[i]);
    if (argc > 4 ? has_logs : logs > 0)
        compare_logs(from_begin);
    else if (argc > 4)
        compare_yields(from_begin);
    printf("%" PRIu64, logs);
    if (box)
        say_where(box);
    puts("");
}
