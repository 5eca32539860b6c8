/* See printable.h. */
#include "printable.h"

#include "utf8.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* Alone, too, bytes from 0x80 to 0x9f control terminals that take no UTF-8. */
static bool is_control(const unsigned char *p, size_t n)
{
    return n == 0 || (n == 1 && iscntrl(*p)) || (n == 2 && p[0] == 0xc2 && p[1] < 0xa0);
}

void gt_make_printable(char *text, size_t size)
{
    for (size_t i = 0, n; i < size; i += n ? n : 1) {
        n = gt_utf8_character(text + i, size - i);
        if (is_control((const unsigned char *)text + i, n))
            memset(text + i, '?', n ? n : 1);
    }
}
