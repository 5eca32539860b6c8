/* Reads and prints times and numbers as people write them: see tool.h. */
#include "tool.h"

#include "preload/shared/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Prints four digits, or whole nanoseconds. */
const char *gt_duration(uint64_t ns)
{
    static const struct {
        double ns;
        const char *name;
    } units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};
    static char text[8][32];
    static unsigned turn;
    char *s = text[turn++ % 8];
    size_t u = 0;
    while (u < 3 && (double)ns < units[u].ns)
        u++;
    double value = (double)ns / units[u].ns;
    int decimals = u == 3 ? 0 : value < 10 ? 3 : value < 100 ? 2 : 1;
    snprintf(s, sizeof *text, "%.*f%s", decimals, value, units[u].name);
    return s;
}

const char *gt_count(uint64_t n, const char *noun)
{
    static char text[8][64];
    static unsigned turn;
    char *s = text[turn++ % 8];
    snprintf(s, sizeof *text, "%" PRIu64 " %s%s", n, noun, n == 1 ? "" : "s");
    return s;
}

static const char *from_typed = "";

_Noreturn void gt_fail_reversed(uint64_t from, uint64_t to)
{
    gt_fail(GT_EXIT_USAGE, "--from=%s is not before --to=%s", gt_duration(from), gt_duration(to));
}

_Noreturn void gt_fail_late(const char *path, uint64_t from, uint64_t ns)
{
    gt_fail(GT_EXIT_FAILED, "%s: --from=%s is after its end: it lasts %s, and %s is %s", path,
            from_typed, gt_duration(ns), from_typed, gt_duration(from));
}

uint64_t gt_read_time(const char *option, const char *text, bool *from_end)
{
    uint64_t ns;
    bool minus = from_end && *text == '-';
    if (!gt_options_time(text + minus, &ns))
        gt_fail(GT_EXIT_USAGE, "%s=%s: a time is like 1.5s, 200ms or 30us", option, text);
    if (strcmp(option, "--from") == 0)
        from_typed = text;
    if (from_end)
        *from_end = minus;
    return ns;
}
