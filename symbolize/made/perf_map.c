/* See perf_map.h. */
#include "perf_map.h"

#include <string.h>

enum { LINE_BYTES = 8 << 10, NAME_BYTES = 1000 };

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 'a' ^ 'A';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads a number and the blank behind it. */
static const char *take_number(const char *p, const char *end, uint64_t *value)
{
    enum { DIGITS = 16 };
    if (end - p > 2 && p[0] == '0' && (p[1] | ('a' ^ 'A')) == 'x')
        p += 2;
    const char *start = p;
    for (*value = 0; p < end && digit(*p) >= 0; p++)
        *value = *value << 4 | (uint64_t)digit(*p);
    return p > start && p - start <= DIGITS && p < end && *p == ' ' ? p + 1 : NULL;
}

static bool is_text(const char *p, const char *end)
{
    for (; p < end; p++) {
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            return false;
    }
    return true;
}

/* Adds the function of a line. Ignores a line of another form. */
static void take_line(struct gt_made_functions *made, const char *p, const char *end,
                      const struct gt_made_code *when)
{
    struct gt_made_code code = *when;
    uint64_t size = 0;
    end -= end > p && end[-1] == '\r';
    p = take_number(p, end, &code.lo);
    p = p ? take_number(p, end, &size) : NULL;
    if (!p || p == end || size > UINT64_MAX - code.lo || !is_text(p, end))
        return;
    code.hi = code.lo + size;
    code.name = p;
    gt_made_add(made, &code, end - p < NAME_BYTES ? (size_t)(end - p) : NAME_BYTES);
}

/* Takes the next line. false: there is no complete one. */
static bool next_line(struct gt_perf_map *map, struct gt_made_functions *made,
                      const struct gt_made_code *when)
{
    size_t n;
    const char *p = gt_growing_peek(&map->file, LINE_BYTES, &n);
    const char *end = p ? memchr(p, '\n', n) : NULL;
    if (!end && n < LINE_BYTES)
        return false;
    if (end && !map->overlong)
        take_line(made, p, end, when);
    map->overlong = !end;
    map->file.at += end ? (size_t)(end - p) + 1 : n;
    return true;
}

bool gt_perf_map_read(struct gt_perf_map *map, const char *path, uid_t owner,
                      struct gt_made_functions *made, uint64_t now_ns)
{
    const struct gt_made_code when = {.since = 0, .known = now_ns};
    enum gt_growing_file found = gt_growing_open(&map->file, path, owner);
    if (found == GT_GROWING_NONE)
        return true;
    gt_made_begin(made);
    if (found == GT_GROWING_ANEW)
        gt_made_all_gone(made, now_ns);
    map->overlong &= found == GT_GROWING_LONGER;
    while (next_line(map, made, &when))
        ;
    gt_made_end(made);
    return gt_growing_close(&map->file);
}
