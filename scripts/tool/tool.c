/* See tool.h: what every command needs, and what needs no command. */
#include "tool.h"

#include "encoder/base/printable.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

__attribute__((format(printf, 1, 0))) static void say(const char *format, va_list ap)
{
    char line[3 * PATH_MAX];
    vsnprintf(line, sizeof line, format, ap);
    gt_make_printable(line, strlen(line));
    fprintf(stderr, "gotrace: %s\n", line);
}

const char *gt_printable(const char *text)
{
    static char copies[4][PATH_MAX];
    static unsigned turn;
    char *copy = copies[turn++ % 4];
    snprintf(copy, sizeof *copies, "%s", text);
    gt_make_printable(copy, strlen(copy));
    return copy;
}

void gt_say(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    say(format, ap);
    va_end(ap);
}

void gt_fail(int status, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    say(format, ap);
    va_end(ap);
    exit(status);
}

const char *gt_own_directory(char self[PATH_MAX])
{
    const char *started = (const char *)(uintptr_t)getauxval(AT_EXECFN);
    if (!realpath("/proc/self/exe", self) && !realpath(started, self))
        gt_fail(GT_EXIT_OURS, "%s: %s", started, strerror(errno));
    return dirname(self);
}

const char *gt_shell_word(const char *word)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";
    static char texts[4][PATH_MAX];
    static unsigned calls;
    if (*word && !word[strspn(word, plain)])
        return word;
    char *text = texts[calls++ % 4], *end = text + PATH_MAX - 6, *p = text;
    for (*p++ = '\''; *word && p < end; word++)
        p = *word == '\'' ? stpcpy(p, "'\\''") : (*p = *word, p + 1);
    strcpy(p, "'");
    return text;
}
