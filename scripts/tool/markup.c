/* See markup.h. */
#include "markup.h"

#include "encoder/base/utf8.h"

#include <stdbool.h>
#include <string.h>

/* XML has neither most control characters nor U+FFFE and U+FFFF. */
static bool is_for_xml(const char *character, size_t n)
{
    return n == 1 ? (unsigned char)*character >= ' '
                  : n != 3 || (memcmp(character, "\xef\xbf\xbe", 3) != 0 &&
                               memcmp(character, "\xef\xbf\xbf", 3) != 0);
}

void gt_markup_text(FILE *file, const char *text, size_t size)
{
    static const struct {
        char c;
        const char *name;
    } names[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}};
    for (size_t n; size; text += n, size -= n) {
        const char *instead = NULL;
        n = gt_utf8_character(text, size);
        if (!n || !is_for_xml(text, n))
            instead = GT_UTF8_UNKNOWN;
        for (size_t i = 0; n == 1 && i < sizeof names / sizeof *names; i++)
            instead = *text == names[i].c ? names[i].name : instead;
        if (instead)
            fputs(instead, file);
        else
            fwrite(text, 1, n, file);
        n = n ? n : 1;
    }
}
