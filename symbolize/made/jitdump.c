/*
 * See jitdump.h and linux/tools/perf/Documentation/jitdump-specification.txt. The lines of a
 * function stand in the record before the function's own record.
 */
#include "jitdump.h"

#include "symbolize/elf/maps.h"

#include "encoder/base/clock.h"
#include "encoder/base/strbuf.h"

#include <errno.h>
#include <string.h>

enum { MAGIC = 0x4a695444, ARCH_TIMESTAMP = 1 };

struct header {
    uint32_t magic, version, size, machine, pad, pid;
    uint64_t time, flags;
};

enum record_type { LOAD, MOVE, DEBUG_INFO };

struct record {
    uint32_t type, size; /* size of the whole record */
    uint64_t time;
};

struct load {
    struct record head;
    uint32_t pid, tid;
    uint64_t vma, at, size, index;
};

struct move {
    struct record head;
    uint32_t pid, tid;
    uint64_t vma, from, to, size, index;
};

struct debug_info {
    struct record head;
    uint64_t at, n;
};

struct debug_line {
    uint64_t at;
    uint32_t line, discriminator;
};

enum { NAME_BYTES = 1000, LINES_MOST = 1 << 16 };

/* The state of reading. `lines` belong to the next function, if that begins at `lines_at`. */
struct reading {
    struct gt_jitdump *dump;
    struct gt_made_functions *made;
    uint64_t now_ns, lines_at;
    const struct gt_made_lines *lines;
};

/* `size` bytes of the file from `at` on; NULL: there are fewer. */
static const char *bytes_at(struct gt_growing *file, uint64_t at, size_t size)
{
    uint64_t record = file->at;
    size_t n;
    file->at = at;
    const char *p = gt_growing_peek(file, size, &n);
    file->at = record;
    return n == size ? p : NULL;
}

/* Reads a text at `at`, cut to NAME_BYTES. Returns its length; -1: it does not end before `end`. */
static long text_at(struct gt_growing *file, uint64_t at, uint64_t end, const char **text)
{
    uint64_t record = file->at;
    size_t n, most = end - at < NAME_BYTES ? (size_t)(end - at) : NAME_BYTES;
    if (at >= end)
        return -1;
    file->at = at;
    *text = gt_growing_peek(file, most, &n);
    file->at = record;
    const char *zero = *text ? memchr(*text, 0, n) : NULL;
    return zero ? zero - *text : *text && n == NAME_BYTES ? NAME_BYTES : -1;
}

/* written: by CLOCK_MONOTONIC of the program's time namespace. */
static struct gt_made_code came(const struct reading *r, uint64_t written)
{
    uint64_t time = written - (uint64_t)gt_clock.namespace_ns;
    bool known = !r->dump->other_clock && written && time <= r->now_ns;
    return (struct gt_made_code){.since = known ? time : 0, .known = known ? time : r->now_ns};
}

/* Lines -------------------------------------------------------------------------------------- */

/* The name of a line's file. "\xff" and an equal name stand for the file of the line before. NULL:
 * no name, or no memory. */
static const char *file_of(struct reading *r, const char *text, long length, const char *before)
{
    bool same = length == 1 && (unsigned char)*text == 0xff;
    if (same ||
        (before && strlen(before) == (size_t)length && !memcmp(before, text, (size_t)length)))
        return before;
    char *copy = gt_arena_alloc(&r->made->arena, (size_t)length + 1);
    return copy ? memcpy(copy, text, (size_t)length) : NULL;
}

/* Reads the lines, as long as they are complete and in order. */
static void read_lines(struct reading *r, const struct debug_info *info,
                       struct gt_made_lines *lines)
{
    struct gt_growing *file = &r->dump->file;
    uint64_t at = file->at + sizeof *info, end = file->at + info->head.size;
    const char *before = NULL, *text;
    for (uint64_t i = 0; i < info->n && lines->n < LINES_MOST; i++) {
        struct debug_line line;
        const char *p = end - at >= sizeof line ? bytes_at(file, at, sizeof line) : NULL;
        if (!p)
            return;
        memcpy(&line, p, sizeof line);
        at += sizeof line;
        long length = text_at(file, at, end, &text);
        if (length < 0 || line.at < info->at || line.at - info->at > UINT32_MAX)
            return;
        uint32_t offset = (uint32_t)(line.at - info->at);
        before = file_of(r, text, length, before);
        if (!before || (lines->n && offset < lines->line[lines->n - 1].at))
            return;
        lines->line[lines->n++] = (struct gt_made_line){offset, line.line, before};
        at += (uint64_t)length + 1;
    }
}

static void take_lines(struct reading *r, const struct debug_info *info)
{
    uint64_t fit = (info->head.size - sizeof *info) / (sizeof(struct debug_line) + 1);
    uint64_t n = info->n < fit ? info->n : fit;
    n = n < LINES_MOST ? n : LINES_MOST;
    struct gt_made_lines *lines =
        n ? gt_arena_alloc(&r->made->arena, sizeof *lines + n * sizeof *lines->line) : NULL;
    r->lines = NULL;
    if (!lines)
        return;
    read_lines(r, info, lines);
    r->lines = lines;
    r->lines_at = info->at;
}

/* Records ------------------------------------------------------------------------------------ */

static void take_load(struct reading *r, const struct load *load)
{
    struct gt_growing *file = &r->dump->file;
    struct gt_made_code code = came(r, load->head.time);
    uint64_t name = file->at + sizeof *load;
    long length = text_at(file, name, file->at + load->head.size, &code.name);
    code.lo = load->at;
    code.hi = load->at + load->size;
    if (r->lines && r->lines_at == load->at)
        code.lines = r->lines;
    code.name = length > 0 ? code.name : NULL;
    if (load->size <= UINT64_MAX - load->at)
        gt_made_add(r->made, &code, length > 0 ? (size_t)length : 0);
    r->lines = NULL;
}

static void take_move(struct reading *r, const struct move *move)
{
    const struct gt_made_code *old = gt_made_at(r->made, move->from);
    struct gt_made_code code = came(r, move->head.time), gone = code;
    if (!old || move->size > UINT64_MAX - move->to)
        return;
    gone.lo = old->lo;
    gone.hi = old->hi;
    code.name = old->name;
    code.lines = old->lines;
    code.lo = move->to;
    code.hi = move->to + move->size;
    gt_made_add(r->made, &gone, 0);
    gt_made_add(r->made, &code, strlen(code.name));
}

/* The size of a record's fixed part. */
static size_t head_size(uint32_t type)
{
    static const size_t sizes[] = {
        [LOAD] = sizeof(struct load),
        [MOVE] = sizeof(struct move),
        [DEBUG_INFO] = sizeof(struct debug_info),
    };
    return type < sizeof sizes / sizeof *sizes ? sizes[type] : sizeof(struct record);
}

/* Whether there is a complete record at `at`. Leaves a record close to the limit for the next time.
 */
static bool is_whole(struct reading *r, uint64_t at, struct record *record)
{
    enum { ROOM = 4 << 10 };
    struct gt_growing *file = &r->dump->file;
    bool later = at + ROOM > file->limit && file->size > file->limit;
    const char *p = later ? NULL : bytes_at(file, at, sizeof *record);
    if (!p)
        return false;
    memcpy(record, p, sizeof *record);
    r->dump->damaged |= record->size < head_size(record->type);
    return !r->dump->damaged && record->size <= file->size - at;
}

/* Takes the next record. false: there is no complete one, or only lines without their function. */
static bool next_record(struct reading *r)
{
    union {
        struct record head;
        struct load load;
        struct move move;
        struct debug_info debug_info;
    } its;
    struct record following;
    struct gt_growing *file = &r->dump->file;
    if (!is_whole(r, file->at, &its.head))
        return false;
    size_t head = head_size(its.head.type);
    if (its.head.type == DEBUG_INFO && !is_whole(r, file->at + its.head.size, &following))
        return false;
    const char *p = bytes_at(file, file->at, head);
    if (!p)
        return false;
    memcpy(&its, p, head);
    switch (its.head.type) {
    case LOAD: take_load(r, &its.load); break;
    case MOVE: take_move(r, &its.move); break;
    case DEBUG_INFO: take_lines(r, &its.debug_info); break;
    }
    file->at += its.head.size;
    return true;
}

/* Reads the file's header. false: it is no jitdump, or belongs to another process. */
static bool read_header(struct gt_jitdump *dump, uint32_t pid)
{
    struct header header;
    const char *p = bytes_at(&dump->file, 0, sizeof header);
    if (!p)
        return false;
    memcpy(&header, p, sizeof header);
    if (header.magic != MAGIC || header.version != 1 || header.pid != pid ||
        header.size < sizeof header)
        return false;
    dump->other_clock = header.flags & ARCH_TIMESTAMP;
    dump->damaged = false;
    dump->file.at = header.size;
    return true;
}

bool gt_jitdump_read(struct gt_jitdump *dump, const char *path, uid_t owner, uint32_t pid,
                     struct gt_made_functions *made, uint64_t now_ns)
{
    struct reading r = {.dump = dump, .made = made, .now_ns = now_ns};
    enum gt_growing_file found = gt_growing_open(&dump->file, path, owner);
    if (found == GT_GROWING_NONE)
        return true;
    gt_made_begin(made);
    if (found == GT_GROWING_ANEW)
        gt_made_all_gone(made, now_ns);
    if (dump->file.at || read_header(dump, pid)) {
        while (!dump->damaged && next_record(&r))
            ;
    }
    gt_made_end(made);
    return gt_growing_close(&dump->file) && !dump->damaged;
}

/* Finding it --------------------------------------------------------------------------------- */

struct finding {
    char name[32]; /* "/jit-PID.dump" */
    char *path;
    size_t size;
};

/* Takes the path from a line of maps, if it is an executable mapping of a jitdump. */
static bool take_path(void *arg, const char *line, const char *end)
{
    const struct finding *f = arg;
    enum { EXECUTABLE = 3 }; /* "rwxp" */
    size_t length = strlen(f->name), left = (size_t)(end - line);
    const char *blank = memchr(line, ' ', left), *slash = memchr(line, '/', left);
    if (!blank || !slash || slash < blank || blank[EXECUTABLE] != 'x' ||
        (size_t)(end - slash) < length || (size_t)(end - slash) >= f->size ||
        memcmp(end - length, f->name, length) != 0)
        return false;
    memcpy(f->path, slash, (size_t)(end - slash));
    f->path[end - slash] = 0;
    return true;
}

bool gt_jitdump_find(const char *maps, uint32_t pid, char *path, size_t size)
{
    struct finding f = {.path = path, .size = size};
    struct gt_strbuf t = gt_strbuf_start(f.name, sizeof f.name);
    gt_strbuf_add(&t, "/jit-");
    gt_strbuf_decimal(&t, pid);
    gt_strbuf_add(&t, ".dump");
    return gt_maps_look(maps, take_path, &f);
}
