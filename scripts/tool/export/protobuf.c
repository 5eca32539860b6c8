/* See protobuf.h. */
#include "protobuf.h"

#include "encoder/base/utf8.h"

#include "encoder/base/varint.h"
#include "encoder/read/need.h"

#include <string.h>

enum wire { VARINT = 0, FIXED64 = 1, LENGTH = 2 };

static uint8_t *room_for(struct gt_message *m, size_t size)
{
    while (m->room < m->n + size) {
        m->room = m->room ? 2 * m->room : 256;
        m->data = gt_need(realloc(m->data, m->room));
    }
    return m->data + m->n;
}

void gt_message_packed(struct gt_message *m, uint64_t value)
{
    uint8_t *end = gt_varint_put(room_for(m, GT_VARINT_MAX), value);
    m->n = (size_t)(end - m->data);
}

static void put_key(struct gt_message *m, unsigned field, enum wire type)
{
    gt_message_packed(m, field << 3 | type);
}

void gt_message_number(struct gt_message *m, unsigned field, uint64_t value)
{
    put_key(m, field, VARINT);
    gt_message_packed(m, value);
}

void gt_message_fixed(struct gt_message *m, unsigned field, uint64_t value)
{
    put_key(m, field, FIXED64);
    uint8_t *at = room_for(m, sizeof value);
    for (size_t i = 0; i < sizeof value; i++)
        at[i] = (uint8_t)(value >> 8 * i);
    m->n += sizeof value;
}

static void put(struct gt_message *m, const void *bytes, size_t size)
{
    memcpy(room_for(m, size), bytes, size);
    m->n += size;
}

void gt_message_bytes(struct gt_message *m, unsigned field, const void *bytes, size_t size)
{
    put_key(m, field, LENGTH);
    gt_message_packed(m, size);
    put(m, bytes, size);
}

void gt_message_text(struct gt_message *m, unsigned field, const char *text)
{
    size_t begin = gt_message_begin(m, field);
    for (size_t left = strlen(text); left;) {
        size_t n = gt_utf8_character(text, left), taken = n ? n : 1;
        put(m, n ? text : GT_UTF8_UNKNOWN, n ? n : sizeof GT_UTF8_UNKNOWN - 1);
        text += taken;
        left -= taken;
    }
    gt_message_end(m, begin);
}

/* Leaves one byte for the length, which is enough for most messages. */
size_t gt_message_begin(struct gt_message *m, unsigned field)
{
    put_key(m, field, LENGTH);
    *room_for(m, 1) = 0;
    return ++m->n;
}

void gt_message_end(struct gt_message *m, size_t begin)
{
    size_t size = m->n - begin;
    uint8_t length[GT_VARINT_MAX];
    size_t n = (size_t)(gt_varint_put(length, size) - length);
    room_for(m, n);
    if (n > 1)
        memmove(m->data + begin - 1 + n, m->data + begin, size);
    memcpy(m->data + begin - 1, length, n);
    m->n += n - 1;
}
