/* UTF-8 in texts that others wrote, which need not be any. */
#ifndef GT_UTF8_H
#define GT_UTF8_H

#include <stddef.h>

#define GT_UTF8_UNKNOWN "\xef\xbf\xbd" /* U+FFFD */

/* Bytes of the character there, of which so many are left; 0: it is none. */
size_t gt_utf8_character(const char *text, size_t left);

#endif
