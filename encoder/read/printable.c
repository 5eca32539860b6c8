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

/*
 * Ends of lines and what turns the direction of text (U+061C, U+200E, U+200F, U+2028 to U+202E,
 * U+2066 to U+2069): what follows would stand where it does not belong.
 */
static bool is_turn(const unsigned char *p, size_t n)
{
    if (n == 3 && p[0] == 0xe2 && p[1] == 0x80)
        return p[2] == 0x8e || p[2] == 0x8f || (p[2] >= 0xa8 && p[2] <= 0xae);
    return (n == 3 && p[0] == 0xe2 && p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9) ||
           (n == 2 && p[0] == 0xd8 && p[1] == 0x9c);
}

void gt_make_printable(char *text, size_t size)
{
    for (size_t i = 0, n; i < size; i += n ? n : 1) {
        n = gt_utf8_character(text + i, size - i);
        const unsigned char *p = (const unsigned char *)text + i;
        if (is_control(p, n) || is_turn(p, n))
            memset(text + i, '?', n ? n : 1);
    }
}
