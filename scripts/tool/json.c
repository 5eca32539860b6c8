/* See json.h. */
#include "json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Bytes of the UTF-8 character there, of which so many are left; 0: it is none. */
static size_t character(const unsigned char *p, size_t left)
{
    size_t n = *p < 0x80 ? 1 : *p >> 5 == 6 ? 2 : *p >> 4 == 14 ? 3 : *p >> 3 == 30 ? 4 : 0;
    uint32_t value = n == 1 ? *p : *p & (0x7fu >> n);
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (n > left)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if (p[i] >> 6 != 2)
            return 0;
        value = value << 6 | (p[i] & 0x3f);
    }
    return n && (value < least[n] || value > 0x10ffff || value >> 11 == 0x1b) ? 0 : n;
}

void gt_json_bytes(const char *text, size_t size)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + size;
    putchar('"');
    while (p < end) {
        size_t n = character(p, (size_t)(end - p));
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

void gt_json_string(const char *text)
{
    gt_json_bytes(text, strlen(text));
}

void gt_json_real(double number)
{
    if (isfinite(number))
        printf("%.17g", number);
    else
        fputs("null", stdout);
}

void gt_json_text(const char *name, const char *text)
{
    printf(",\"%s\":", name);
    gt_json_string(text);
}

void gt_json_address(const char *name, uint64_t address)
{
    printf(",\"%s\":\"0x%llx\"", name, (unsigned long long)address);
}
