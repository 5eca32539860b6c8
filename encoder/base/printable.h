/* Makes text from elsewhere safe to print. Any thread; allocates no memory, uses no locale. */
#pragma once

#include <stddef.h>

/*
 * Replaces by question marks: bytes that control a terminal, ends of lines, characters that change
 * the direction of text, and bytes that are not UTF-8. Text in a trace, a program or a file is not
 * ours and not trusted.
 */
void gt_make_printable(char *text, size_t size);
