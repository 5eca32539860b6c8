/* See utf8.h. */
#include "utf8.h"

#include <stdint.h>

size_t gt_utf8_character(const char *text, size_t left)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *p = (const unsigned char *)text;
    size_t n = *p < 0x80 ? 1 : *p >> 5 == 6 ? 2 : *p >> 4 == 14 ? 3 : *p >> 3 == 30 ? 4 : 0;
    uint32_t value = n == 1 ? *p : *p & (0x7fu >> n);
    if (n > left)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if (p[i] >> 6 != 2)
            return 0;
        value = value << 6 | (p[i] & 0x3f);
    }
    return n && (value < least[n] || value > 0x10ffff || value >> 11 == 0x1b) ? 0 : n;
}
