/* See json.h. */
#include "json.h"

#include "utf8.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static FILE *output; /* NULL: standard output */

static FILE *out(void)
{
    return output ? output : stdout;
}

void gt_json_to(FILE *file)
{
    output = file;
}

void gt_json_bytes(const char *text, size_t size)
{
    FILE *to = out();
    const char *p = text, *end = p + size;
    putc('"', to);
    while (p < end) {
        size_t n = gt_utf8_character(p, (size_t)(end - p));
        if (!n)
            fputs("\\ufffd", to);
        else if (*p == '"' || *p == '\\')
            fprintf(to, "\\%c", *p);
        else if (n == 1 && (*p < 0x20 || *p == 0x7f))
            fprintf(to, "\\u%04x", *p);
        else
            fwrite(p, 1, n, to);
        p += n ? n : 1;
    }
    putc('"', to);
}

void gt_json_string(const char *text)
{
    gt_json_bytes(text, strlen(text));
}

void gt_json_real(double number)
{
    if (isfinite(number))
        fprintf(out(), "%.17g", number);
    else
        fputs("null", out());
}

void gt_json_text(const char *name, const char *text)
{
    fprintf(out(), ",\"%s\":", name);
    gt_json_string(text);
}

void gt_json_address(const char *name, uint64_t address)
{
    fprintf(out(), ",\"%s\":\"0x%llx\"", name, (unsigned long long)address);
}
