/* See printable.h. */
#include "printable.h"

#include <ctype.h>
#include <string.h>

/* The bytes of the control character there, or 0. U+0080 to U+009F are two in UTF-8. */
static size_t control_size(const unsigned char *p, size_t left)
{
    if (left > 1 && p[0] == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0)
        return 2;
    return iscntrl(*p) ? 1 : 0;
}

void gt_make_printable(char *text, size_t size)
{
    for (size_t i = 0, n; i < size; i += n ? n : 1) {
        n = control_size((const unsigned char *)text + i, size - i);
        memset(text + i, '?', n);
    }
}
