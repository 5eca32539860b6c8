/* See printable.h. */
#include "printable.h"

#include "strbuf.h"
#include "utf8.h"

#include <stdbool.h>
#include <string.h>

/*
 * Whether a character changes the order in which a terminal shows the text after it, or ends a line
 * or paragraph without being a control character. (Unicode Standard Annex 9, 2; and 14, BK.)
 */
static bool is_arranging(const char *character, size_t n)
{
    static const char *const these[] = {"\u061c", "\u200e", "\u200f", "\u2028", "\u2029",
                                        "\u202a", "\u202b", "\u202c", "\u202d", "\u202e",
                                        "\u2066", "\u2067", "\u2068", "\u2069"};
    for (size_t i = 0; i < sizeof these / sizeof *these; i++) {
        if (strlen(these[i]) == n && memcmp(character, these[i], n) == 0)
            return true;
    }
    return false;
}

/* Control characters. Single bytes from 0x80 to 0x9f, too, control terminals that take no UTF-8. */
static bool is_control(const char *text, size_t n)
{
    const unsigned char *p = (const unsigned char *)text;
    return n == 0 || (n == 1 && (*p < ' ' || *p == 0x7f)) ||
           (n == 2 && p[0] == 0xc2 && p[1] < 0xa0) || (n > 1 && is_arranging(text, n));
}

void gt_make_printable(char *text, size_t size)
{
    for (size_t i = 0, n; i < size; i += n ? n : 1) {
        n = gt_utf8_character(text + i, size - i);
        if (is_control(text + i, n))
            memset(text + i, '?', n ? n : 1);
    }
}

/* Commands ------------------------------------------------------------------------------------ */

/* Whether a shell takes the character for itself. Any locale. */
static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c & 0x80) || (c && strchr("%+,-./:=@_", c));
}

/* A byte between the quotes of '...'; or, escaped, of $'...', which takes octal numbers. */
static void add_byte(struct gt_strbuf *to, char c, bool escaped)
{
    unsigned byte = (unsigned char)c;
    char octal[] = {'\\', (char)('0' + byte / 64), (char)('0' + byte / 8 % 8),
                    (char)('0' + byte % 8)};
    if (escaped && (byte < ' ' || byte >= 0x7f || c == '\'' || c == '\\'))
        gt_strbuf_add_n(to, octal, sizeof octal);
    else if (c == '\'')
        gt_strbuf_add(to, "'\\''");
    else
        gt_strbuf_add_n(to, &c, 1);
}

void gt_shell_word(struct gt_strbuf *to, const char *text)
{
    size_t length = strlen(text);
    bool quoted = !length, escaped = false;
    for (size_t i = 0, n; i < length; i += n ? n : 1) {
        n = gt_utf8_character(text + i, length - i);
        escaped |= is_control(text + i, n);
        quoted |= !is_plain(text[i]);
    }
    gt_strbuf_add(to, escaped ? "$'" : quoted ? "'" : "");
    for (size_t i = 0; i < length; i++)
        add_byte(to, text[i], escaped);
    gt_strbuf_add(to, escaped || quoted ? "'" : "");
}
