/* See json.h. */
#include "json.h"

#include <stdint.h>
#include <stdio.h>

/* Bytes of the UTF-8 character there; 0: it is none. */
static size_t character(const unsigned char *p)
{
    size_t n = *p < 0x80 ? 1 : *p >> 5 == 6 ? 2 : *p >> 4 == 14 ? 3 : *p >> 3 == 30 ? 4 : 0;
    uint32_t value = n == 1 ? *p : *p & (0x7fu >> n);
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    for (size_t i = 1; i < n; i++) {
        if (p[i] >> 6 != 2)
            return 0;
        value = value << 6 | (p[i] & 0x3f);
    }
    return n && (value < least[n] || value > 0x10ffff || value >> 11 == 0x1b) ? 0 : n;
}

void gt_json_string(const char *text)
{
    putchar('"');
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        size_t n = character(p);
        if (!n)
            fputs("\\ufffd", stdout);
        else if (*p == '"' || *p == '\\')
            printf("\\%c", *p);
        else if (*p < 0x20 || *p == 0x7f)
            printf("\\u%04x", *p);
        else
            fwrite(p, 1, n, stdout);
        p += n ? n : 1;
    }
    putchar('"');
}

void gt_json_text(const char *name, const char *text)
{
    printf(",\"%s\":", name);
    gt_json_string(text);
}
