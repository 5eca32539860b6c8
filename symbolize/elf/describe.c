/* Modules as text: see gt_modules_describe. */
#include "modules.h"

#include "encoder/base/strbuf.h"

#include <string.h>

static const char head[] = "gotrace-module ";

bool gt_modules_describe(const struct gt_module *m, char *text, size_t size)
{
    struct gt_strbuf t = gt_strbuf_start(text, size);
    const uint64_t numbers[] = {m->shown, m->hi - m->lo, m->lo - m->bias};
    gt_strbuf_add(&t, head);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        gt_strbuf_hex(&t, numbers[i]);
        gt_strbuf_add(&t, " ");
    }
    gt_strbuf_hex_bytes(&t, m->build_id, m->build_id_len);
    gt_strbuf_add(&t, m->build_id_len ? " " : "- ");
    gt_strbuf_add(&t, m->path);
    if (m->is_program && t.pos + 1 + strlen(gt_module_name(m)) < t.last) {
        gt_strbuf_add(&t, "/");
        gt_strbuf_add(&t, gt_module_name(m));
    }
    return t.pos < t.last;
}

static int digit(char c)
{
    const char *found = c ? strchr("0123456789abcdef", c) : NULL;
    return found ? (int)(found - "0123456789abcdef") : -1;
}

/* Reads hexadecimal digits and the space behind them. */
static bool take_number(const char **s, uint64_t *value)
{
    const char *start = *s;
    for (*value = 0; digit(**s) >= 0; ++*s)
        *value = *value << 4 | (uint64_t)digit(**s);
    return *s > start && *(*s)++ == ' ';
}

static bool take_build_id(const char **s, struct gt_module *m)
{
    if (**s == '-')
        ++*s;
    for (; digit((*s)[0]) >= 0 && digit((*s)[1]) >= 0; *s += 2) {
        if (m->build_id_len == sizeof m->build_id)
            return false;
        m->build_id[m->build_id_len++] = (uint8_t)(digit((*s)[0]) << 4 | digit((*s)[1]));
    }
    return *(*s)++ == ' ';
}

const char *gt_modules_parse(const char *s, struct gt_module *m)
{
    uint64_t size, address;
    *m = (struct gt_module){.loaded = 0, .unloaded = UINT64_MAX};
    if (strncmp(s, head, sizeof head - 1) != 0)
        return NULL;
    s += sizeof head - 1;
    if (!take_number(&s, &m->lo) || !take_number(&s, &size) || !take_number(&s, &address) ||
        !take_build_id(&s, m))
        return NULL;
    m->shown = m->lo;
    m->hi = m->lo + size;
    m->bias = m->lo - address;
    m->is_program = *s == '/' && strstr(s, "//");
    return s;
}
