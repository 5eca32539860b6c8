/* See fold.h. */
#include "fold.h"

#include "encoder/base/utf8.h"
#include "encoder/read/need.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/types.h>
#include <unistd.h>

static struct {
    FILE *to; /* NULL: standard output is not folded */
    size_t columns;
    char *line; /* the output since the last newline */
    size_t n;
} fold;

/* Bytes of the first character, which takes one column. */
static size_t character(const char *text, size_t left)
{
    size_t n = gt_utf8_character(text, left);
    return n ? n : 1;
}

/*
 * Bytes of the text that fit into the columns, up to the last blank there. All of it, if it fits or
 * has no blank to break at.
 */
static size_t fitting(const char *text, size_t n, size_t columns)
{
    size_t at = 0, blank = 0;
    for (size_t column = 0; at < n && column < columns; column++) {
        if (text[at] == ' ')
            blank = at;
        at += character(text + at, n - at);
    }
    if (at == n || text[at] == ' ')
        return at;
    const char *next = memchr(text + at, ' ', n - at);
    return blank ? blank : next ? (size_t)(next - text) : n;
}

/* Where the rest of the line begins: below the last cell, which two blanks precede. */
static size_t indent_of(const char *text, size_t n)
{
    enum { MORE = 4 };
    size_t lead = strspn(text, " "), column = 0, cell = 0;
    for (size_t at = 0; at < n; at += character(text + at, n - at), column++) {
        bool begins =
            at > lead + 1 && text[at] != ' ' && text[at - 1] == ' ' && text[at - 2] == ' ';
        if (begins && column <= fold.columns * 2 / 3)
            cell = column;
    }
    return cell ? cell : lead + MORE < fold.columns / 2 ? lead + MORE : 0;
}

/* The indent of a line that begins with this text: less, if its first word needs the room. */
static size_t indent_before(const char *text, size_t indent)
{
    size_t word = 0;
    for (size_t at = 0, n = strcspn(text, " "); at < n; at += character(text + at, n - at))
        word++;
    size_t most = word < fold.columns ? fold.columns - word : 0;
    return indent < most ? indent : most;
}

static void put_line(const char *text, size_t n)
{
    size_t usual = indent_of(text, n), shown = 0, lead = strspn(text, " ");
    while (shown < n) {
        size_t begin = shown ? 0 : lead, indent = shown ? indent_before(text + shown, usual) : 0;
        size_t room = fold.columns - indent - begin;
        size_t fits = begin + fitting(text + shown + begin, n - shown - begin, room);
        fprintf(fold.to, "%*s%.*s\n", (int)indent, "", (int)fits, text + shown);
        shown += fits;
        shown += strspn(text + shown, " ");
    }
    if (!n)
        putc('\n', fold.to);
}

static ssize_t write_folded(void *cookie, const char *data, size_t size)
{
    (void)cookie;
    for (size_t i = 0; i < size; i++) {
        fold.line = gt_need_more(fold.line, fold.n, 1);
        fold.line[fold.n] = data[i];
        if (data[i] != '\n') {
            fold.n++;
            continue;
        }
        fold.line[fold.n] = 0;
        put_line(fold.line, fold.n);
        fold.n = 0;
    }
    return fflush(fold.to) == 0 ? (ssize_t)size : 0;
}

void gt_fold_output(void)
{
    enum { LEAST = 20 };
    struct winsize size;
    if (!isatty(1) || ioctl(1, TIOCGWINSZ, &size) != 0 || size.ws_col < LEAST)
        return;
    FILE *folded = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_folded});
    if (!folded)
        return;
    setvbuf(folded, NULL, _IOLBF, BUFSIZ);
    fold.columns = size.ws_col;
    fold.to = stdout;
    stdout = folded;
}

bool gt_fold_is_below(int columns)
{
    return fold.to && fold.columns < (size_t)columns;
}

void gt_fold_end(void)
{
    if (!fold.n)
        return;
    fwrite(fold.line, 1, fold.n, fold.to);
    fflush(fold.to);
    fold.n = 0;
}
