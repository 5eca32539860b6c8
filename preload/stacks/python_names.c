/*
 * See python_names.h. A thread that makes another thread executes threading's Thread.start, whose
 * first local variable is the new Thread. The new thread will execute that object's method `run`,
 * which executes its `_target` unless a class overrides it. The calling thread has the
 * interpreter's lock, so the data do not change meanwhile. The name is in the object's dictionary,
 * which has many forms. There is a table of keys. The values are beside the keys, in a table of
 * their own, or in the object.
 */
#include "python_names.h"

#include "python_memory.h"

#include <string.h>

/* Offsets in type objects, flags of a type, offsets in dictionaries. */
enum { BASIC_SIZE = 32, FLAGS = 168, BASE = 256, DICT = 264, DICT_OFFSET = 288 };
enum { INLINE_VALUES = 1 << 2, MANAGED_DICT = 1 << 4 }; /* of the flags */
enum { DICT_KEYS = 32, DICT_VALUES = 40 };

/* Words before a managed object. */
enum { DICT_BEFORE = 3, VALUES_BEFORE = 4 };

/* A table of keys: its entries, and where the key is in an entry. The value follows the key. */
struct keys {
    uintptr_t entries;
    size_t n, entry, key;
};

static uint8_t byte(uintptr_t at)
{
    return *(const uint8_t *)at;
}

/* The format before 3.11. */
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

/* The index of the entry with that key; k->n: there is none. */
static size_t find_key(const struct keys *k, const char *name)
{
    struct gt_python_text text;
    size_t i = 0;
    for (; i < k->n; i++) {
        uintptr_t key = gt_python_word(k->entries + i * k->entry + k->key);
        if (key && gt_python_read_text(key, &text) && gt_python_is_text(&text, name))
            break;
    }
    return i;
}

/* values: the table of values, or 0 if each value follows its key. */
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

/* An attribute of an object that has a dictionary of its own, or values in its place. */
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

/* An attribute of the object's class, or of the next class before it that has one. */
static bool get_of_class(const struct gt_python_layout *l, uintptr_t object, const char *name,
                         uintptr_t *value)
{
    enum { CLASSES_MAX = 16 };
    uintptr_t type, dict, at = object + GT_PYTHON_TYPE;
    for (int i = 0; i < CLASSES_MAX && gt_python_read_word(at, &type) && type; i++) {
        if (!gt_python_read_word(type + DICT, &dict))
            return false;
        if (dict && get_of_dict(l, dict, name, value))
            return true;
        at = type + BASE;
    }
    return false;
}

/* The address of the function that a new thread executes for the Thread; 0: it is not known. */
static uint64_t routine_of(const struct gt_python_layout *l, uintptr_t object)
{
    uintptr_t run, target;
    struct gt_python_text file;
    uint64_t pc = get_of_class(l, object, "run", &run) ? gt_python_function(run, &file) : 0;
    if (!pc || !gt_python_is_of_threading(&file))
        return pc;
    return get_attribute(l, object, "_target", &target) ? gt_python_function(target, &file) : 0;
}

bool gt_python_name_made(uintptr_t thread, char name[GT_PYTHON_NAME], uint64_t *routine)
{
    struct gt_python_innermost in;
    struct gt_python_text text;
    uintptr_t value;
    if (!gt_python_find_innermost(thread, &in) ||
        !(gt_python_is_text(&in.function, "start") ||
          gt_python_is_text(&in.function, "Thread.start")) ||
        !gt_python_is_of_threading(&in.file) ||
        !get_attribute(in.layout, in.local, "_name", &value) || !gt_python_read_text(value, &text))
        return false;
    gt_python_write(&text, name, GT_PYTHON_NAME);
    *routine = routine_of(in.layout, in.local);
    return true;
}
