/* Texts of others in lines for people. Any thread; no memory of its own, no locale. */
#ifndef GT_PRINTABLE_H
#define GT_PRINTABLE_H

#include <stddef.h>

/*
 * Bytes that would control a terminal, ends of lines, what turns the direction of the text around
 * and what is no UTF-8 become question marks: what comes out of a trace, a program or a file was
 * written by others.
 */
void gt_make_printable(char *text, size_t size);

#endif
