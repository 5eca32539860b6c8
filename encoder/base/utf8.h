/* UTF-8 in texts from elsewhere, which may be something else. */
#pragma once

#include <stddef.h>

#define GT_UTF8_UNKNOWN "\xef\xbf\xbd" /* U+FFFD */

/* Bytes of the character at `text`, with `left` bytes left in the text. 0: it is not UTF-8. */
size_t gt_utf8_character(const char *text, size_t left);

/* Bytes of a text that was cut at that size, without the part of a last character. */
size_t gt_utf8_whole(const char *text, size_t size);

/* Characters of the text. A byte that is not UTF-8 counts as one, as terminals show it. */
size_t gt_utf8_length(const char *text);

/* Bytes of the first characters of the text, or of all of it if it has no more. */
size_t gt_utf8_fit(const char *text, size_t characters);
