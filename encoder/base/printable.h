/* Makes text from elsewhere safe to print. Any thread; allocates no memory, uses no locale. */
#pragma once

#include <stddef.h>

struct gt_strbuf;

/*
 * Replaces by question marks: bytes that control a terminal, ends of lines, characters that change
 * the direction of text, and bytes that are not UTF-8. Text in a trace, a program or a file is not
 * ours and not trusted.
 */
void gt_make_printable(char *text, size_t size);

/*
 * Adds the text as one word of a command for bash, zsh or ksh, without characters that
 * gt_make_printable replaces: /tmp/t.out, '/tmp/a b', $'/tmp/\033[2J'.
 */
void gt_shell_word(struct gt_strbuf *to, const char *text);
