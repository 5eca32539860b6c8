/* Builds short strings without stdio, which may call malloc. Text that does not fit is cut off. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct gt_strbuf {
    char *pos, *last; /* *last is kept for the terminating zero */
};

static inline struct gt_strbuf gt_strbuf_start(char *buf, size_t size)
{
    *buf = 0;
    return (struct gt_strbuf){buf, buf + size - 1};
}

static inline void gt_strbuf_add_n(struct gt_strbuf *t, const char *s, size_t n)
{
    size_t room = (size_t)(t->last - t->pos);
    n = n < room ? n : room;
    memcpy(t->pos, s, n);
    t->pos += n;
    *t->pos = 0;
}

static inline void gt_strbuf_add(struct gt_strbuf *t, const char *s)
{
    gt_strbuf_add_n(t, s, strlen(s));
}

/* Adds n bytes of s as an item of a list. Commas end items, so those in s become semicolons. */
static inline void gt_strbuf_add_item(struct gt_strbuf *t, const char *s, size_t n)
{
    char *from = t->pos;
    gt_strbuf_add_n(t, s, n);
    for (char *p = from; p < t->pos; p++)
        *p = *p == ',' ? ';' : *p;
}

static inline void gt_strbuf_hex(struct gt_strbuf *t, uint64_t value)
{
    char digits[16];
    size_t n = 0;
    do
        digits[15 - n++] = "0123456789abcdef"[value & 15];
    while (value >>= 4);
    gt_strbuf_add_n(t, digits + 16 - n, n);
}

static inline void gt_strbuf_decimal(struct gt_strbuf *t, uint64_t value)
{
    char digits[20];
    size_t n = 0;
    do
        digits[19 - n++] = (char)('0' + value % 10);
    while (value /= 10);
    gt_strbuf_add_n(t, digits + 20 - n, n);
}

static inline void gt_strbuf_hex_bytes(struct gt_strbuf *t, const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        gt_strbuf_hex(t, bytes[i] >> 4);
        gt_strbuf_hex(t, bytes[i] & 15);
    }
}
