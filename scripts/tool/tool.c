/* See tool.h: what every command needs, and what needs no command. */
#include "tool.h"

#include "encoder/base/printable.h"
#include "encoder/base/strbuf.h"

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

const char *gt_to_type(const char *file)
{
    enum { LONGEST = 4 * PATH_MAX + 8 }; /* bytes as octal numbers in ./$'' */
    static char words[4][LONGEST];
    static unsigned turn;
    char *word = words[turn++ % 4];
    struct gt_strbuf to = gt_strbuf_start(word, LONGEST);
    gt_strbuf_add(&to, *file == '-' ? "./" : "");
    gt_shell_word(&to, file);
    return word;
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
