/* See tables.h. */
#include "tables.h"

#include "elf.h"
#include "pages.h"

#include "encoder/base/arch/arch.h"
#include "encoder/base/clock.h"
#include "encoder/base/libc.h"
#include "encoder/base/log.h"
#include "encoder/thread/account.h"
#include "encoder/base/varint.h"
#include "encoder/file/frames.h"
#include "encoder/base/memo.h"
#include "encoder/thread/held.h"
#include "encoder/format/origin.h"
#include "encoder/format/setup.h"
#include "encoder/file/output.h"
#include "encoder/thread/stacks.h"
#include "encoder/thread/strings.h"
#include "encoder/thread/texts.h"

#include <string.h>

static struct {
    uint32_t trace; /* counts traces: entries in this trace's file are marked with it */
    uint64_t hz;    /* the frequency written last */
} tables;

void gt_v1_tables_open(void)
{
    tables.trace++;
    tables.hz = 0;
    if (gt_v1_global_order(gt_format))
        gt_v1_elf_open();
}

static void string_stands(void *ids, struct gt_string *s)
{
    s->written = gt_memo_find(ids, s->id) ? tables.trace : 0;
}

static void stack_stands(void *ids, struct gt_stack *s)
{
    s->written = gt_memo_find(ids, s->id) ? tables.trace : 0;
}

void gt_v1_tables_go_on(struct gt_memo *strings, struct gt_memo *stacks)
{
    gt_strings_each_written(0, string_stands, strings);
    gt_stacks_each_kept(stack_stands, stacks);
}

/* Strings ------------------------------------------------------------------------------------ */

static void put_text(uint64_t id, const char *text, uint32_t len)
{
    uint8_t record[1 + 2 * GT_VARINT_MAX + GT_STRING_MAX], *q = record;
    *q++ = GT_V1_STRING;
    q = gt_varint_put(gt_varint_put(q, id), len);
    memcpy(q, text, len);
    gt_v1_pages_record(record, (size_t)(q - record) + len);
}

static struct gt_memo of_locks; /* strings of locks in the generation, by id: logs have them all */

static uint32_t string_id(struct gt_string *s)
{
    uint64_t *slot = s->of_lock ? gt_memo_at(&of_locks, s->id) : NULL;
    if (slot)
        *slot = (uintptr_t)s;
    if (!s->id || s->of_lock)
        return 0;
    if (s->written != tables.trace) {
        s->written = tables.trace;
        put_text(s->id, s->text, s->len);
    }
    return s->id;
}

static void put_string(void *unused, struct gt_string *s)
{
    (void)unused;
    string_id(s);
}

uint32_t gt_v1_tables_value(uint64_t id, const char **text)
{
    const struct gt_text_found *found = gt_texts_find(id);
    const struct gt_string *s = (void *)(uintptr_t)gt_memo_find(&of_locks, id);
    if (s)
        return gt_held_text(s, text);
    *text = found ? found->text : "";
    return found ? found->len : 0;
}

uint64_t gt_v1_tables_text(uint64_t id)
{
    if (id < GT_REASONS_END) /* all reasons are in the file */
        return id;
    struct gt_string *s = (void *)(uintptr_t)gt_memo_find(&of_locks, id);
    const char *words;
    if (s && s->written != tables.trace) {
        uint32_t len = gt_held_text(s, &words);
        put_text(id, words, len);
        s->written = tables.trace;
    }
    if (s)
        return id;
    struct gt_text_found *found = gt_texts_find(id);
    if (found && !found->written)
        put_text(id, found->text, found->len);
    if (found)
        found->written = true;
    return found ? id : 0;
}

/* Stacks ------------------------------------------------------------------------------------- */

static uint8_t *put_frame(uint8_t *q, struct gt_named_frame *frame)
{
    if (gt_v1_global_order(gt_format)) /* readers look up the PC minus 1 */
        return gt_varint_put(q, gt_v1_elf_pc(frame) + 1);
    if (frame->module)
        string_id(frame->module);
    q = gt_varint_put(q, frame->pc);
    q = gt_varint_put(q, string_id(frame->func));
    q = gt_varint_put(q, string_id(frame->file));
    return gt_varint_put(q, frame->line);
}

/* Writes a stack. One that is too long for a record loses its outermost frames. */
static void put_frames(uint64_t id, struct gt_named_frame **frames, uint32_t all)
{
    enum { FRAME_MAX = 4 * GT_VARINT_MAX, START = 2 + 3 * GT_VARINT_MAX };
    uint8_t body[GT_V1_RECORD_MAX], start[2 * GT_VARINT_MAX], record[GT_V1_RECORD_MAX], *q = body;
    uint32_t n = 0;
    while (n < all && q + FRAME_MAX + START < body + sizeof body)
        q = put_frame(q, frames[n++]);
    size_t body_size = (size_t)(q - body);
    size_t start_size = (size_t)(gt_varint_put(gt_varint_put(start, id), n) - start);
    uint8_t *p = record;
    *p++ = GT_V1_STACK | 3u << 6;
    p = gt_varint_put(p, start_size + body_size);
    memcpy(p, start, start_size);
    memcpy(p + start_size, body, body_size);
    gt_v1_pages_record(record, (size_t)(p - record) + start_size + body_size);
}

static void put_stack(void *unused, struct gt_stack *s)
{
    (void)unused;
    struct gt_named_frame *frames[GT_FRAMES_MAX];
    if (s->written == tables.trace)
        return;
    s->written = tables.trace;
    uint32_t n = gt_frames_of(s, frames);
    put_frames(s->id, frames, n);
    if (n && gt_v1_global_order(gt_format))
        gt_v1_elf_set_leaf(s->id, frames[0]);
}

static struct gt_named_frame unknown_routines[] = {
    {.pc = GT_ARCH_USER_END - 2}, /* no code can be there */
    {.pc = GT_ARCH_USER_END - 1},
};

void gt_v1_tables_unknown(void)
{
    static const char *const names[] = {"main", "(unknown)"};
    for (uint32_t i = 0; i < 2; i++) {
        struct gt_named_frame *frame = &unknown_routines[i];
        frame->func = gt_strings_intern(names[i]);
        frame->file = gt_strings_intern("");
        if (frame->func && frame->file)
            put_frames(GT_V1_STACK_MAIN + i, &frame, 1);
    }
}

uint64_t gt_v1_tables_routine(uint64_t id)
{
    if (!gt_v1_global_order(gt_format))
        return id;
    /* The number may come from a damaged box. */
    bool is_main = id == GT_V1_STACK_MAIN;
    uint64_t pc = id < GT_V1_STACK_MAIN ? gt_v1_elf_leaf((uint32_t)id)
                                        : gt_v1_elf_pc(&unknown_routines[is_main ? 0 : 1]);
    struct gt_named_frame *frame = gt_v1_elf_frame(pc);
    if (frame && frame->routine != tables.trace) {
        frame->routine = tables.trace;
        put_frames(pc, &frame, 1);
    }
    return pc;
}

/* All of it ---------------------------------------------------------------------------------- */

void gt_v1_tables_frequency(void)
{
    uint8_t record[1 + 2 * GT_VARINT_MAX], *q = record;
    if (gt_clock_hz() == tables.hz)
        return;
    tables.hz = gt_clock_hz();
    *q++ = GT_V1_FREQUENCY;
    q = gt_varint_put(q, tables.hz);
    if (gt_v1_global_order(gt_format))
        *q++ = 0; /* unused, but readers expect it */
    gt_v1_pages_record(record, (size_t)(q - record));
}

/*
 * Writes numbers in the form of a stack with the id 0, which readers skip. Each number is a frame;
 * from Go 1.7 on, where a frame has four numbers, a quarter of one.
 */
static void put_numbers(uint64_t first, const uint8_t *rest, size_t bytes)
{
    enum { FRAME = 4 };
    uint8_t head[3 * GT_VARINT_MAX], record[GT_V1_RECORD_MAX] = {GT_V1_STACK | 3u << 6};
    uint64_t n = 1, per_frame = gt_v1_global_order(gt_format) ? 1 : FRAME;
    for (size_t i = 0; i < bytes; i++)
        n += rest[i] < 0x80;
    size_t padding = (size_t)(-n & (per_frame - 1));
    uint8_t *p = gt_varint_put(gt_varint_put(head, 0), (n + padding) / per_frame);
    size_t head_size = (size_t)(gt_varint_put(p, first) - head);
    p = gt_varint_put(record + 1, head_size + bytes + padding);
    p = (uint8_t *)memcpy(p, head, head_size) + head_size;
    if (bytes)
        memcpy(p, rest, bytes);
    memset(p + bytes, 0, padding);
    gt_v1_pages_record(record, (size_t)(p - record) + bytes + padding);
}

void gt_v1_tables_whole(void)
{
    if (!gt_v1_global_order(gt_format))
        gt_held_tell_end(put_text);
    put_numbers(GT_V1_WHOLE, NULL, 0);
}

void gt_v1_tables_of_go(void)
{
    put_numbers(GT_V1_OF_GO, NULL, 0);
}

void gt_v1_tables_origin(void)
{
    enum { HEAD = sizeof GT_ORIGIN - 1 };
    uint8_t text[GT_ORIGIN_MAX];
    char setup[GT_SETUP_MAX];
    uint32_t len = gt_origin_text(text), length = gt_setup_text(setup);
    put_numbers(GT_V1_ORIGIN, text + HEAD, len - HEAD);
    if (length) /* ASCII: each byte is a LEB128 number */
        put_numbers(GT_V1_SETUP, (const uint8_t *)setup, length);
    if (gt_frames_named_later())
        put_numbers(GT_V1_LATER, NULL, 0);
}

static void put_account(void *unused, uint64_t id, const char *text, uint32_t len)
{
    enum { HEAD = sizeof GT_ACCOUNT - 1 };
    (void)unused;
    (void)id;
    bool is_whole = len > HEAD && memcmp(text, GT_ACCOUNT, HEAD) == 0 && (int8_t)text[len - 1] >= 0;
    if (is_whole) /* a damaged box may have any text here */
        put_numbers(GT_V1_ACCOUNT, (const uint8_t *)text + HEAD, len - HEAD);
}

void gt_v1_tables_account(const struct gt_buf *plain)
{
    gt_account_each(plain, put_account);
}

void gt_v1_tables_write(uint32_t gen, const struct gt_kept *kept)
{
    gt_memo_free(&of_locks);
    for (uint32_t i = 0; kept && i < kept->n_stacks; i++)
        put_stack(NULL, kept->stacks[i]);
    if (!kept)
        gt_stacks_each(gen, put_stack, NULL);
    if (!gt_v1_global_order(gt_format)) {
        for (uint32_t i = 0; kept && i < kept->n_strings; i++)
            string_id(kept->strings[i]);
        if (!kept)
            gt_strings_each(gen, put_string, NULL);
        return;
    }
    int error = gt_v1_elf_write();
    if (error)
        gt_log("cannot write %s" GT_V1_ELF_SUFFIX ": %s; stacks will have no names",
               gt_output_path(), gt_libc_error(-error));
}
