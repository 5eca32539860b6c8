/* UTF-8 in texts from elsewhere, which may be something else. */
#pragma once

#include <stddef.h>

#define GT_UTF8_UNKNOWN "\xef\xbf\xbd" /* U+FFFD */

/* Bytes of the character at `text`, with `left` bytes left in the text. 0: it is not UTF-8. */
size_t gt_utf8_character(const char *text, size_t left);
