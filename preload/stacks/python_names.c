/*
 * See python_names.h. A thread that makes another one executes threading's Thread.start, whose
 * first local variable is the new Thread. It has the interpreter's lock, so nothing of that changes
 * meanwhile. The name is in the object's dictionary, which has many forms: a table of keys, and
 * values beside the keys, in a table of their own, or in the object.
 */
#include "python_names.h"

#include "python_memory.h"

#include <string.h>

/* In type objects, and in dictionaries. */
enum { BASIC_SIZE = 32, FLAGS = 168, DICT_OFFSET = 288 };
enum { INLINE_VALUES = 1 << 2, MANAGED_DICT = 1 << 4 }; /* of the flags */
enum { DICT_KEYS = 32, DICT_VALUES = 40 };

/* What stands before a managed object, in words. */
enum { DICT_BEFORE = 3, VALUES_BEFORE = 4 };

/* A table of keys: its entries, and where in each of them the key is, the value behind it. */
struct keys {
    uintptr_t entries;
    size_t n, entry, key;
};

static uint8_t byte(uintptr_t at)
{
    return *(const uint8_t *)at;
}

/* Before 3.11. */
static void read_old_keys(uintptr_t at, struct keys *k)
{
    enum { SLOTS = 8, N = 32, INDICES = 40, ENTRY = 24, KEY = 8 };
    uintptr_t slots = gt_python_word(at + SLOTS);
    unsigned width = slots <= 0xff ? 1 : slots <= 0xffff ? 2 : 4;
    *k = (struct keys){at + INDICES + slots * width, gt_python_word(at + N), ENTRY, KEY};
}

static void read_new_keys(uintptr_t at, struct keys *k)
{
    enum { LOG2_BYTES = 9, KIND = 10, N = 24, INDICES = 32, GENERAL = 0 };
    bool hashed = byte(at + KIND) == GENERAL;
    *k = (struct keys){at + INDICES + ((uintptr_t)1 << (byte(at + LOG2_BYTES) & 31)),
                       gt_python_word(at + N), hashed ? 24 : 16, hashed ? 8 : 0};
}

static bool read_keys(const struct gt_python_layout *l, uintptr_t at, struct keys *k)
{
    enum { HEAD = 40, ENTRIES_MAX = 1024 };
    if (at % sizeof at || !gt_python_can_read(at, HEAD))
        return false;
    if (l->dict == GT_PYTHON_DICT_OFFSET)
        read_old_keys(at, k);
    else
        read_new_keys(at, k);
    return k->n <= ENTRIES_MAX && gt_python_can_read(k->entries, k->n * k->entry);
}

static bool is_text(const struct gt_python_text *text, const char *ascii)
{
    return text->width == 1 && text->length == strlen(ascii) &&
           memcmp(text->at, ascii, text->length) == 0;
}

/* Which entry has that key; k->n: none. */
static size_t find_key(const struct keys *k, const char *name)
{
    struct gt_python_text text;
    size_t i = 0;
    for (; i < k->n; i++) {
        uintptr_t key = gt_python_word(k->entries + i * k->entry + k->key);
        if (key && gt_python_read_text(key, &text) && is_text(&text, name))
            break;
    }
    return i;
}

/* values: 0 for those behind their keys. */
static bool get(const struct gt_python_layout *l, uintptr_t table, uintptr_t values,
                const char *name, uintptr_t *value)
{
    struct keys k;
    if (!read_keys(l, table, &k))
        return false;
    size_t i = find_key(&k, name);
    if (i == k.n)
        return false;
    uintptr_t at = values ? values + i * sizeof at : k.entries + i * k.entry + k.key + sizeof at;
    return gt_python_read_word(at, value) && *value;
}

static bool get_of_dict(const struct gt_python_layout *l, uintptr_t dict, const char *name,
                        uintptr_t *value)
{
    if (dict % sizeof dict || !gt_python_can_read(dict, DICT_VALUES + sizeof dict))
        return false;
    uintptr_t values = gt_python_word(dict + DICT_VALUES);
    values += values ? l->values : 0;
    return get(l, gt_python_word(dict + DICT_KEYS), values, name, value);
}

/* An object that has a dictionary of its own, or values in its place. */
static bool get_attribute(const struct gt_python_layout *l, uintptr_t object, const char *name,
                          uintptr_t *value)
{
    uintptr_t type, dict = 0, values = 0;
    if (!gt_python_read_word(object + GT_PYTHON_TYPE, &type) ||
        !gt_python_can_read(type, l->keys + sizeof type))
        return false;
    uint64_t flags = gt_python_word(type + FLAGS);
    intptr_t offset = (intptr_t)gt_python_word(type + DICT_OFFSET);
    if (l->dict == GT_PYTHON_DICT_OFFSET)
        return offset > 0 && gt_python_read_word(object + (uintptr_t)offset, &dict) &&
               get_of_dict(l, dict, name, value);
    if (!(flags & MANAGED_DICT) || !gt_python_read_word(object - DICT_BEFORE * sizeof dict, &dict))
        return false;
    switch (l->dict) {
    case GT_PYTHON_DICT_APART:
        if (!dict && !gt_python_read_word(object - VALUES_BEFORE * sizeof dict, &values))
            return false;
        break;
    case GT_PYTHON_DICT_TAGGED:
        values = dict & 1 ? dict + 1 : 0;
        dict = values ? 0 : dict;
        break;
    default:
        values = flags & INLINE_VALUES ? object + gt_python_word(type + BASIC_SIZE) + l->values : 0;
    }
    return dict ? get_of_dict(l, dict, name, value)
                : values && get(l, gt_python_word(type + l->keys), values, name, value);
}

static bool ends_with(const struct gt_python_text *text, const char *end)
{
    size_t n = strlen(end);
    return text->width == 1 && text->length >= n &&
           memcmp((const char *)text->at + text->length - n, end, n) == 0;
}

bool gt_python_name_made(uintptr_t thread, char name[GT_PYTHON_NAME])
{
    struct gt_python_innermost in;
    struct gt_python_text text;
    uintptr_t value;
    if (!gt_python_find_innermost(thread, &in) || in.layout->dict == GT_PYTHON_DICT_NONE ||
        !(is_text(&in.function, "start") || is_text(&in.function, "Thread.start")) ||
        !ends_with(&in.file, "/threading.py") ||
        !get_attribute(in.layout, in.local, "_name", &value) || !gt_python_read_text(value, &text))
        return false;
    gt_python_write(&text, name, GT_PYTHON_NAME);
    return true;
}
