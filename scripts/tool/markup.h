/* Texts of other programs in XML and HTML. */
#pragma once

#include <stddef.h>
#include <stdio.h>

/*
 * Writes a text between tags, or of an attribute in double quotes. What is no UTF-8, or no
 * character of XML, such as a newline, becomes U+FFFD.
 */
void gt_markup_text(FILE *file, const char *text, size_t size);

/* Puts a file's contents, and a zero byte behind them, into the program as `const char symbol[]`.
 */
#define GT_EMBED(symbol, path)                   \
    extern const char symbol[];                  \
    __asm__(".pushsection .rodata\n"             \
            ".globl " #symbol "\n" #symbol ":\n" \
            ".incbin \"" path "\"\n"             \
            ".byte 0\n"                          \
            ".popsection\n")
