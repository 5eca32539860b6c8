/* See utf8.h. */
#include "utf8.h"

#include <stdint.h>
#include <string.h>

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

/* Goes over at most so many characters. Returns their bytes, and their number in *characters. */
static size_t go_over(const char *text, size_t *characters)
{
    size_t size = strlen(text), at = 0, count = 0;
    for (; at < size && count < *characters; count++) {
        size_t n = gt_utf8_character(text + at, size - at);
        at += n ? n : 1;
    }
    *characters = count;
    return at;
}

size_t gt_utf8_fit(const char *text, size_t characters)
{
    return go_over(text, &characters);
}

size_t gt_utf8_length(const char *text)
{
    size_t characters = SIZE_MAX;
    go_over(text, &characters);
    return characters;
}

size_t gt_utf8_whole(const char *text, size_t size)
{
    size_t last = size;
    while (last && (text[last - 1] & 0xc0) == 0x80)
        last--;
    last -= last > 0;
    return gt_utf8_character(text + last, size - last) ? size : last;
}
