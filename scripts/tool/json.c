/* See json.h. */
#include "json.h"

#include "encoder/base/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static FILE *output;        /* NULL: standard output */
static bool follows = true; /* the object or array has a member already: a comma is due */

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

/* Begins a member; an item of an array has no name, and a line of its own. */
static void put_name(const char *name)
{
    if (follows)
        putc(',', out());
    if (name)
        fprintf(out(), "\"%s\":", name);
    else
        putc('\n', out());
    follows = true;
}

void gt_json_begin(void)
{
    putc('{', out());
    follows = false;
}

void gt_json_end(void)
{
    fputs("}\n", out());
    follows = true;
}

void gt_json_open(const char *name, char bracket)
{
    put_name(name);
    putc(bracket, out());
    follows = false;
}

void gt_json_close(char bracket)
{
    putc(bracket, out());
    follows = true;
}

void gt_json_text(const char *name, const char *text)
{
    put_name(name);
    gt_json_string(text);
}

void gt_json_text_or_null(const char *name, const char *text)
{
    if (text && *text)
        gt_json_text(name, text);
    else
        gt_json_null(name);
}

void gt_json_number(const char *name, uint64_t number)
{
    put_name(name);
    fprintf(out(), "%" PRIu64, number);
}

void gt_json_truth(const char *name, bool truth)
{
    put_name(name);
    fputs(truth ? "true" : "false", out());
}

void gt_json_null(const char *name)
{
    put_name(name);
    fputs("null", out());
}

void gt_json_address(const char *name, uint64_t address)
{
    put_name(name);
    fprintf(out(), "\"0x%" PRIx64 "\"", address);
}
