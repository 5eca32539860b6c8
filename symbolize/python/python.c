/*
 * See python.h. An address consists of a function's number and a line. Any thread looks up and adds
 * functions: release when a function is linked, acquire in look-ups. If two threads add a function
 * at a time, the function has two numbers.
 */
#include "python.h"

#include "symbolize/symbolize.h"

#include "encoder/base/arena.h"
#include "encoder/base/hash.h"
#include "encoder/base/push.h"
#include "encoder/base/sparse.h"

enum { FUNCTIONS_MAX = 1 << 16, BUCKETS = 1 << 12, LINE_BITS = 21, CHARACTERS_MAX = 1000 };

struct function {
    struct function *next;
    uint32_t number;
    uint32_t file; /* offset of the file's name in `names` */
    char names[];
};

static struct {
    _Atomic(struct function *) bucket[BUCKETS];
    _Atomic(struct function *) by_number[FUNCTIONS_MAX];
    _Atomic uint32_t n;
    struct gt_arena arena;
} all GT_SPARSE;

/* Texts -------------------------------------------------------------------------------------- */

static uint32_t character(const struct gt_python_text *t, size_t i)
{
    switch (t->width) {
    case 1: return ((const uint8_t *)t->at)[i];
    case 2: return ((const uint16_t *)t->at)[i];
    default: return ((const uint32_t *)t->at)[i];
    }
}

/* Encodes a character as UTF-8. Returns the number of bytes. */
static unsigned encode(uint32_t c, char bytes[4])
{
    unsigned n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (unsigned i = n; i-- > 1; c >>= 6)
        bytes[i] = (char)(0x80 | (c & 0x3f));
    bytes[0] = (char)(lead[n] | c);
    return n;
}

static size_t length_of(const struct gt_python_text *t)
{
    return t->length < CHARACTERS_MAX ? t->length : CHARACTERS_MAX;
}

/* Writes a text as UTF-8. Returns its size with the final zero. to NULL: only counts. */
static uint32_t write_text(char *to, const struct gt_python_text *t)
{
    char bytes[4];
    uint32_t size = 0;
    for (size_t i = 0; i < length_of(t); i++) {
        unsigned n = encode(character(t, i), bytes);
        for (unsigned k = 0; to && k < n; k++)
            to[size + k] = bytes[k];
        size += n;
    }
    return size + 1;
}

void gt_python_write(const struct gt_python_text *text, char *to, size_t size)
{
    char bytes[4];
    size_t used = 0;
    for (size_t i = 0; i < text->length; i++) {
        unsigned n = encode(character(text, i), bytes);
        if (used + n >= size)
            break;
        for (unsigned k = 0; k < n; k++)
            to[used++] = bytes[k];
    }
    to[used] = 0;
}

static bool is_text(const char *utf8, const struct gt_python_text *t)
{
    char bytes[4];
    for (size_t i = 0; i < length_of(t); i++) {
        unsigned n = encode(character(t, i), bytes);
        for (unsigned k = 0; k < n; k++) {
            if (*utf8++ != bytes[k])
                return false;
        }
    }
    return !*utf8;
}

static uint64_t hash_text(uint64_t hash, const struct gt_python_text *t)
{
    for (size_t i = 0; i < length_of(t); i++)
        hash = gt_hash_mix(hash, character(t, i));
    return hash;
}

/* Functions ---------------------------------------------------------------------------------- */

static struct function *add(const struct gt_python_text *name, const struct gt_python_text *file)
{
    uint32_t in_name = write_text(NULL, name), in_file = write_text(NULL, file);
    struct function *f = NULL;
    if (atomic_load_explicit(&all.n, memory_order_relaxed) < FUNCTIONS_MAX)
        f = gt_arena_alloc(&all.arena, sizeof *f + in_name + in_file);
    uint32_t number = f ? atomic_fetch_add_explicit(&all.n, 1, memory_order_relaxed) : 0;
    if (!f || number >= FUNCTIONS_MAX)
        return NULL;
    f->number = number;
    f->file = in_name;
    write_text(f->names, name);
    write_text(f->names + in_name, file);
    atomic_store_explicit(&all.by_number[number], f, memory_order_release);
    return f;
}

static struct function *get(const struct gt_python_text *name, const struct gt_python_text *file)
{
    uint64_t hash = hash_text(hash_text(0, name), file);
    _Atomic(struct function *) *bucket = &all.bucket[hash * GT_HASH_ODD >> 52];
    struct function *f = atomic_load_explicit(bucket, memory_order_acquire);
    while (f && !(is_text(f->names, name) && is_text(f->names + f->file, file)))
        f = f->next;
    if (f || !(f = add(name, file)))
        return f;
    GT_PUSH(bucket, f, &f->next);
    return f;
}

uint64_t gt_python_pc(struct gt_python_text function, struct gt_python_text file, uint32_t line)
{
    const struct function *f = get(&function, &file);
    uint64_t known = line < 1u << LINE_BITS ? line : 0;
    return f ? (GT_PYTHON_PCS | (uint64_t)f->number << (LINE_BITS + 1) | known << 1) + 1 : 0;
}

bool gt_python_name(uint64_t pc, struct gt_sym_frame *frame)
{
    uint64_t number = (pc - GT_PYTHON_PCS) >> (LINE_BITS + 1);
    const struct function *f = NULL;
    if (pc >= GT_PYTHON_PCS && number < FUNCTIONS_MAX)
        f = atomic_load_explicit(&all.by_number[number], memory_order_acquire);
    if (f)
        *frame = (struct gt_sym_frame){.func = f->names,
                                       .file = f->names + f->file,
                                       .line = pc >> 1 & ((1u << LINE_BITS) - 1)};
    return f;
}

/* Lines -------------------------------------------------------------------------------------- */

/* A table of pairs: a step in bytes of code, then a step in lines. */
static uint32_t line_of_steps(const uint8_t *table, size_t size, uint32_t line, int64_t at)
{
    int64_t start = 0;
    for (size_t i = 0; i + 1 < size && (start += table[i]) <= at; i += 2)
        line += (uint32_t)(int8_t)table[i + 1];
    return line;
}

/* A table of pairs: bytes of code, and the step to their line, or a mark that they have none. */
static uint32_t line_of_pairs(const uint8_t *table, size_t size, uint32_t line, int64_t at)
{
    enum { NO_LINE = -128 };
    int64_t end = 0;
    for (size_t i = 0; i + 1 < size; i += 2) {
        int8_t on = (int8_t)table[i + 1];
        line += on == NO_LINE ? 0 : (uint32_t)on;
        end += table[i];
        if (at < end)
            return on == NO_LINE ? 0 : line;
    }
    return 0;
}

/* Reads a signed number: six bits a byte, the lowest first. A 1 above them means that another byte
 * follows. The lowest bit of all is the sign. */
static int64_t signed_number(const uint8_t *at, const uint8_t *end)
{
    enum { MORE = 0x40, SHIFT_MAX = 30 };
    uint64_t n = 0;
    for (unsigned shift = 0; at < end && shift <= SHIFT_MAX; shift += 6, at++) {
        n |= (uint64_t)(*at & (MORE - 1)) << shift;
        if (!(*at & MORE))
            break;
    }
    return n & 1 ? -(int64_t)(n >> 1) : (int64_t)(n >> 1);
}

/* A table of entries of variable length. The first byte of an entry is 1, 4 bits of kind and 3 of
 * length. */
static uint32_t line_of_locations(const uint8_t *table, size_t size, uint32_t line, int64_t at)
{
    enum { FIRST = 0x80, ONE_LINE = 10, NO_COLUMNS = 13, LONG = 14, NONE = 15, UNIT = 2 };
    const uint8_t *p = table, *end = table + size;
    int64_t covered = 0;
    while (p < end) {
        unsigned kind = *p >> 3 & 15;
        covered += UNIT * ((*p & 7) + 1);
        p++;
        if (kind == NO_COLUMNS || kind == LONG)
            line += (uint32_t)signed_number(p, end);
        else if (kind >= ONE_LINE && kind < NO_COLUMNS)
            line += kind - ONE_LINE;
        if (at < covered)
            return kind == NONE ? 0 : line;
        while (p < end && !(*p & FIRST))
            p++;
    }
    return 0;
}

uint32_t gt_python_line(enum gt_python_lines how, const uint8_t *table, size_t size, uint32_t first,
                        int64_t at)
{
    if (at < 0)
        return first;
    switch (how) {
    case GT_PYTHON_STEPS: return line_of_steps(table, size, first, at);
    case GT_PYTHON_PAIRS: return line_of_pairs(table, size, first, at);
    default: return line_of_locations(table, size, first, at);
    }
}
