/* See inflate.h. */
#include "inflate.h"

#include <string.h>

/*
 * Tables are looked up with the next bits of the input. An entry: how many of them are the code
 * (bits 0-3), what it stands for (4-7), how many extra bits follow (8-15), a value (16-31).
 */
enum kind { LITERAL, COPY, END, SUBTABLE, INVALID }; /* SUBTABLE: of `extra` bits, at `value` */
enum { CODE_MAX = 15, SYMBOLS_MAX = 288, LENGTH_CODES = 286, DISTANCE_CODES = 30 };
enum { HUNGRY_BELOW = 640 }; /* bytes: the head of a block has up to 17 + 19 * 3 + 316 * 14 bits */
enum { COPY_ROOM = 258 + 16 };

#define ENTRY(kind, extra, value) ((uint32_t)(value) << 16 | (uint32_t)(extra) << 8 | (kind) << 4)

static uint64_t load64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

/* At least 56 bits are at hand afterwards; those behind the end of the input mean nothing. */
static inline void refill(struct gt_bits *b)
{
    if (b->in < b->end + 8) /* else damage has run into the slack */
        b->bits |= load64(b->in) << b->n;
    b->in += (63 - b->n) >> 3;
    b->n |= 56;
}

static inline uint32_t take(struct gt_bits *b, unsigned n)
{
    uint32_t value = (uint32_t)(b->bits & ((1ull << n) - 1));
    b->bits >>= n;
    b->n -= n;
    return value;
}

/* More bits were used than there are. */
static bool overran(const struct gt_bits *b)
{
    return !b->more && b->in - b->n / 8 > b->end;
}

/* Tables ------------------------------------------------------------------------------------- */

static uint32_t length_entry(unsigned symbol)
{
    static const uint16_t base[] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                    31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const uint8_t extra[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                    2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    if (symbol < 256)
        return ENTRY(LITERAL, 0, symbol);
    if (symbol == 256)
        return ENTRY(END, 0, 0);
    return symbol < LENGTH_CODES ? ENTRY(COPY, extra[symbol - 257], base[symbol - 257])
                                 : ENTRY(INVALID, 0, 0);
}

static uint32_t distance_entry(unsigned symbol)
{
    unsigned extra = symbol < 4 ? 0 : symbol / 2 - 1;
    unsigned base = symbol < 4 ? symbol + 1 : ((2 + symbol % 2) << extra) + 1;
    return symbol < DISTANCE_CODES ? ENTRY(COPY, extra, base) : ENTRY(INVALID, 0, 0);
}

static uint32_t plain_entry(unsigned symbol)
{
    return ENTRY(LITERAL, 0, symbol);
}

static unsigned reversed(unsigned code, unsigned bits)
{
    unsigned r = 0;
    for (; bits; bits--, code >>= 1)
        r = r << 1 | (code & 1);
    return r;
}

/* Of the subtable for codes of `bits` and more that share their first ones; count: of those left.
 */
static unsigned subtable_bits(const uint16_t *count, unsigned bits, unsigned root)
{
    unsigned sub = bits - root;
    for (int left = 1 << sub; sub + root < CODE_MAX; left *= 2, sub++) {
        left -= count[sub + root];
        if (left <= 0)
            break;
    }
    return sub;
}

/* From the lengths of the codes of n symbols. False: there are no such codes. */
static bool build(uint32_t *table, size_t room, unsigned root, const uint8_t *lengths, unsigned n,
                  uint32_t (*entry)(unsigned symbol))
{
    uint16_t count[CODE_MAX + 1] = {0}, next[CODE_MAX + 2] = {0}, sorted[SYMBOLS_MAX + 32];
    size_t used = (size_t)1 << root;
    unsigned code = 0, prefix = ~0u, at = 0, sub = 0;
    int left = 1;
    for (unsigned i = 0; i < n; i++)
        count[lengths[i]]++;
    for (unsigned bits = 1; bits <= CODE_MAX; bits++) {
        next[bits + 1] = (uint16_t)(next[bits] + count[bits]);
        left = 2 * left - count[bits];
        if (left < 0)
            return false;
    }
    if (left && n - count[0] > 1) /* incomplete: only a single code may be */
        return false;
    for (unsigned i = 0; i < n; i++)
        if (lengths[i])
            sorted[next[lengths[i]]++] = (uint16_t)i;
    for (size_t i = 0; i < used; i++)
        table[i] = ENTRY(INVALID, 0, 0);
    for (unsigned i = 0, bits = 1; i < n - count[0]; i++, code++, count[bits]--) {
        for (; lengths[sorted[i]] > bits; bits++)
            code <<= 1;
        unsigned back = reversed(code, bits), shift = bits;
        uint32_t *to = table;
        size_t size = (size_t)1 << root;
        if (bits > root) {
            if ((back & (size - 1)) != prefix) {
                prefix = back & (unsigned)(size - 1);
                sub = subtable_bits(count, bits, root);
                at = (unsigned)used;
                used += (size_t)1 << sub;
                if (used > room)
                    return false;
                table[prefix] = ENTRY(SUBTABLE, sub, at) | root;
                for (size_t k = at; k < used; k++)
                    table[k] = ENTRY(INVALID, 0, 0);
            }
            to = table + at;
            size = (size_t)1 << sub;
            back >>= root;
            shift = bits - root;
        }
        for (size_t k = back; k < size; k += (size_t)1 << shift)
            to[k] = entry(sorted[i]) | shift;
    }
    return true;
}

static bool build_both(struct gt_inflate *s, const uint8_t *lengths, unsigned n_length,
                       unsigned n_distance)
{
    return build(s->length, GT_INFLATE_LENGTH_ENTRIES, GT_INFLATE_LENGTH_BITS, lengths, n_length,
                 length_entry) &&
           build(s->distance, GT_INFLATE_DISTANCE_ENTRIES, GT_INFLATE_DISTANCE_BITS,
                 lengths + n_length, n_distance, distance_entry);
}

/* Heads of blocks ---------------------------------------------------------------------------- */

static bool fixed_codes(struct gt_inflate *s)
{
    uint8_t lengths[SYMBOLS_MAX + 32];
    for (unsigned i = 0; i < SYMBOLS_MAX; i++)
        lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    memset(lengths + SYMBOLS_MAX, 5, 32);
    return build_both(s, lengths, SYMBOLS_MAX, 32);
}

/* The lengths of the block's codes, themselves coded. */
static bool read_codes(struct gt_inflate *s)
{
    static const uint8_t order[] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                    11, 4,  12, 3, 13, 2, 14, 1, 15};
    uint8_t lengths[SYMBOLS_MAX + 32] = {0}, of_lengths[sizeof order] = {0};
    uint32_t table[128];
    struct gt_bits *b = &s->input;
    unsigned n_length = take(b, 5) + 257, n_distance = take(b, 5) + 1, n_order = take(b, 4) + 4;
    for (unsigned i = 0; i < n_order; i++) {
        refill(b);
        of_lengths[order[i]] = (uint8_t)take(b, 3);
    }
    if (n_length > LENGTH_CODES || n_distance > DISTANCE_CODES ||
        !build(table, 128, 7, of_lengths, sizeof order, plain_entry))
        return false;
    for (unsigned i = 0; i < n_length + n_distance;) {
        refill(b);
        uint32_t e = table[b->bits & 127];
        unsigned symbol = e >> 16;
        if ((e >> 4 & 15) == INVALID)
            return false;
        take(b, e & 15);
        if (symbol < 16) {
            lengths[i++] = (uint8_t)symbol;
            continue;
        }
        unsigned times = symbol == 16   ? 3 + take(b, 2)
                         : symbol == 17 ? 3 + take(b, 3)
                                        : 11 + take(b, 7);
        if (times > n_length + n_distance - i || (symbol == 16 && i == 0))
            return false;
        memset(lengths + i, symbol == 16 ? lengths[i - 1] : 0, times);
        i += times;
    }
    return build_both(s, lengths, n_length, n_distance);
}

static bool begin_stored(struct gt_inflate *s)
{
    struct gt_bits *b = &s->input;
    take(b, b->n % 8);
    refill(b);
    uint32_t size = take(b, 16), check = take(b, 16);
    s->stored = size;
    return (size ^ check) == 0xffff;
}

static bool begin_block(struct gt_inflate *s)
{
    refill(&s->input);
    s->last = take(&s->input, 1);
    switch (take(&s->input, 2)) {
    case 0: s->state = GT_INFLATE_STORED; return begin_stored(s);
    case 1: s->state = GT_INFLATE_CODED; return fixed_codes(s);
    case 2: s->state = GT_INFLATE_CODED; return read_codes(s);
    default: return false;
    }
}

/* Contents of blocks ------------------------------------------------------------------------- */

static size_t at_most(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void copy_stored(struct gt_inflate *s)
{
    struct gt_bits *b = &s->input;
    for (; b->n && s->stored && s->out < s->end; s->stored--)
        *s->out++ = (uint8_t)take(b, 8); /* in whole bytes; they may not be at b->in any more */
    if (!b->n)
        b->bits = 0; /* a look ahead, at what is now copied */
    size_t n = at_most(s->stored, b->in < b->end ? (size_t)(b->end - b->in) : 0);
    n = at_most(n, (size_t)(s->end - s->out));
    memcpy(s->out, b->in, n);
    s->out += n;
    b->in += n;
    s->stored -= (uint32_t)n;
}

static inline uint32_t look_up(struct gt_bits *b, const uint32_t *table, unsigned root)
{
    uint32_t e = table[b->bits & ((1u << root) - 1)];
    if (__builtin_expect((e >> 4 & 15) == SUBTABLE, 0)) {
        take(b, root);
        e = table[(e >> 16) + (b->bits & ((1u << (e >> 8 & 255)) - 1))];
    }
    take(b, e & 15);
    return e;
}

static inline uint32_t value_of(struct gt_bits *b, uint32_t entry)
{
    return (entry >> 16) + take(b, entry >> 8 & 255);
}

static inline void copy(uint8_t *to, size_t distance, size_t length, size_t room)
{
    const uint8_t *from = to - distance, *end = to + length;
    if (distance >= 8 && room >= COPY_ROOM) {
        do {
            memcpy(to, from, 8);
            to += 8, from += 8;
        } while (to < end);
        return;
    }
    while (to < end)
        *to++ = *from++;
}

/* Until the block ends, out has reached upto, or input is needed. False: damaged. */
static bool decode(struct gt_inflate *s, const uint8_t *upto)
{
    /* In registers: what is written, bytes, could be anything as far as the compiler knows. */
    struct gt_bits b = s->input;
    uint8_t *out = s->out, *end = s->end;
    const uint8_t *enough = b.more ? b.end - GT_INFLATE_SLACK : (const uint8_t *)UINTPTR_MAX;
    bool good = true;
    while (out < upto && b.in < enough) {
        refill(&b);
        uint32_t e = look_up(&b, s->length, GT_INFLATE_LENGTH_BITS);
        enum kind kind = e >> 4 & 15;
        if (kind == LITERAL) {
            *out++ = (uint8_t)(e >> 16);
            continue;
        }
        if (kind == END) {
            s->state = GT_INFLATE_HEAD;
            break;
        }
        size_t length = value_of(&b, e); /* 15 + 5 bits, and then 15 + 13: 56 are enough */
        uint32_t d = look_up(&b, s->distance, GT_INFLATE_DISTANCE_BITS);
        size_t distance = value_of(&b, d), room = (size_t)(end - out);
        good = kind == COPY && (d >> 4 & 15) == COPY && distance <= (size_t)(out - s->start) &&
               length <= room;
        if (!good)
            break;
        copy(out, distance, length, room);
        out += length;
    }
    s->input = b;
    s->out = out;
    return good && !overran(&b);
}

enum gt_inflated gt_inflate(struct gt_inflate *s, const uint8_t *upto)
{
    struct gt_bits *b = &s->input;
    while (s->out < upto && s->state != GT_INFLATE_DONE) {
        if (b->more && b->end - b->in < HUNGRY_BELOW)
            return GT_INFLATE_HUNGRY;
        switch (s->state) {
        case GT_INFLATE_HEAD:
            if (s->last)
                s->state = GT_INFLATE_DONE;
            else if (!begin_block(s) || overran(b))
                return GT_INFLATE_DAMAGED;
            break;
        case GT_INFLATE_STORED:
            copy_stored(s);
            if (!s->stored)
                s->state = GT_INFLATE_HEAD;
            else if (!b->more || s->out == s->end)
                return GT_INFLATE_DAMAGED;
            break;
        default:
            if (!decode(s, upto))
                return GT_INFLATE_DAMAGED;
        }
    }
    return GT_INFLATED;
}
