/* See rust_name.h. */
#include "rust_name.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { LENGTH_MAX = 4096, STEPS_MAX = 20000, DEPTH_MAX = 300, BOUND_MAX = 64 };

#define DIGITS "0123456789"
#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* A reader of a name. After an error it is at its end, so that all further reading fails. */
struct name {
    const char *text; /* after "_R" */
    size_t at, end;
    uint32_t steps, depth;
};

static char peek(const struct name *n)
{
    return n->at < n->end ? n->text[n->at] : 0;
}

static bool take(struct name *n, char c)
{
    if (!c || peek(n) != c)
        return false;
    n->at++;
    return true;
}

static char take_one_of(struct name *n, const char *set)
{
    char c = peek(n);
    if (!c || !strchr(set, c))
        return 0;
    n->at++;
    return c;
}

/* Reads a number: digits in base 62 up to "_", plus one; "_" alone is 0. */
static bool number(struct name *n, uint64_t *value)
{
    static const char digits[] = DIGITS LOWER UPPER;
    uint64_t v = 0;
    bool any = false;
    for (char c; (c = take_one_of(n, digits)); any = true) {
        if (v < UINT32_MAX) /* a larger value need not be exact */
            v = v * 62 + (uint64_t)(strchr(digits, c) - digits);
    }
    *value = v + any;
    return take(n, '_');
}

/* Reads a tag and a number, or nothing. */
static bool tagged(struct name *n, char tag, uint64_t *value)
{
    *value = 0;
    return !take(n, tag) || number(n, value);
}

static bool text(struct name *n)
{
    size_t length = 0;
    char c;
    take(n, 'u');
    if (!(c = take_one_of(n, DIGITS)))
        return false;
    for (; c; c = length ? take_one_of(n, DIGITS) : 0)
        length = length * 10 + (size_t)(c - '0');
    take(n, '_');
    if (length > n->end - n->at)
        return false;
    n->at += length;
    return true;
}

static bool identifier(struct name *n)
{
    uint64_t unused;
    return tagged(n, 's', &unused) && text(n);
}

static bool binder(struct name *n)
{
    uint64_t lifetimes;
    return tagged(n, 'G', &lifetimes) && lifetimes <= BOUND_MAX;
}

static bool lifetime(struct name *n)
{
    uint64_t unused;
    return take(n, 'L') && number(n, &unused);
}

static bool path(struct name *n);
static bool type(struct name *n);
static bool constant(struct name *n);

/* Reads the back reference after "B": calls `what` for the earlier part of the name. */
static bool back_to(struct name *n, bool (*what)(struct name *))
{
    uint64_t to;
    size_t here = n->at;
    if (!number(n, &to) || to >= here - 1)
        return false;
    size_t after = n->at;
    n->at = (size_t)to;
    bool good = what(n);
    n->at = after;
    return good;
}

static bool generic_argument(struct name *n)
{
    if (peek(n) == 'L')
        return lifetime(n);
    return take(n, 'K') ? constant(n) : type(n);
}

static bool list_of(struct name *n, bool (*what)(struct name *))
{
    while (!take(n, 'E')) {
        if (!what(n))
            return false;
    }
    return true;
}

static bool path_of(struct name *n)
{
    uint64_t unused;
    switch (take_one_of(n, "CMXYNIB")) {
    case 'C': return identifier(n);
    case 'M': return tagged(n, 's', &unused) && path(n) && type(n);
    case 'X': return tagged(n, 's', &unused) && path(n) && type(n) && path(n);
    case 'Y': return type(n) && path(n);
    case 'N': return take_one_of(n, LOWER UPPER) && path(n) && identifier(n);
    case 'I': return path(n) && list_of(n, generic_argument);
    case 'B': return back_to(n, path);
    }
    return false;
}

static bool function(struct name *n)
{
    if (!binder(n))
        return false;
    take(n, 'U');
    if (take(n, 'K') && !take(n, 'C') && !text(n))
        return false;
    return list_of(n, type) && type(n);
}

static bool bound_trait(struct name *n)
{
    bool good = path(n);
    while (good && take(n, 'p'))
        good = text(n) && type(n);
    return good;
}

static bool type_of(struct name *n)
{
    if (take_one_of(n, "abcdefhijlmnopstuvxyz"))
        return true;
    switch (take_one_of(n, "ASTBRQPOFD")) {
    case 'A': return type(n) && constant(n);
    case 'T': return list_of(n, type);
    case 'B': return back_to(n, type);
    case 'F': return function(n);
    case 'D': return binder(n) && list_of(n, bound_trait) && lifetime(n);
    case 'R':
    case 'Q': return (peek(n) != 'L' || lifetime(n)) && type(n);
    case 'S':
    case 'P':
    case 'O': return type(n);
    }
    return path(n);
}

static bool constant_of(struct name *n)
{
    if (take(n, 'p'))
        return true;
    if (take(n, 'B'))
        return back_to(n, constant);
    if (!take_one_of(n, "abchijlmnostxy"))
        return false;
    take(n, 'n');
    while (take_one_of(n, DIGITS "abcdef"))
        ;
    return take(n, '_');
}

static bool deeper(struct name *n, bool (*what)(struct name *))
{
    if (++n->steps > STEPS_MAX || n->depth == DEPTH_MAX)
        return false;
    n->depth++;
    bool good = what(n);
    n->depth--;
    return good;
}

static bool path(struct name *n)
{
    return deeper(n, path_of);
}

static bool type(struct name *n)
{
    return deeper(n, type_of);
}

static bool constant(struct name *n)
{
    return deeper(n, constant_of);
}

bool gt_rust_name_is_small(const char *symbol)
{
    struct name n = {.text = symbol + 2, .end = strcspn(symbol + 2, ".")};
    /* The crate that instantiated the function may follow. */
    return n.end <= LENGTH_MAX && path(&n) && (n.at == n.end || path(&n)) && n.at == n.end;
}
