/* See validity.h: the first fault of a file, in words. */
#include "validity.h"

#include <stdarg.h>
#include <stdio.h>

bool gt_fault_note(struct gt_fault *fault, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    if (!*fault->what)
        vsnprintf(fault->what, sizeof fault->what, format, ap);
    va_end(ap);
    return false;
}

const char *gt_fault_text(const struct gt_trace *trace, const struct gt_fault *fault,
                          char text[static GT_FAULT_TEXT])
{
    char *p = text, *end = text + GT_FAULT_TEXT;
    p += snprintf(p, (size_t)(end - p), "%s (", fault->what);
    if (fault->event)
        p += snprintf(p, (size_t)(end - p), "%s, ", fault->event);
    p += snprintf(p, (size_t)(end - p), "byte %llu", (unsigned long long)fault->offset);
    if (fault->generation)
        p += snprintf(p, (size_t)(end - p), ", generation %llu",
                      (unsigned long long)fault->generation);
    if (fault->stream != GT_NO_THREAD)
        p += snprintf(p, (size_t)(end - p), ", %s %llu", trace->format->v1 ? "P" : "thread",
                      (unsigned long long)fault->stream);
    snprintf(p, (size_t)(end - p), ")");
    return text;
}
