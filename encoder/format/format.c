/* The tables of format.h. For the next Go version, add a row here and what is new in it. */
#include "format.h"

#include <string.h>

/* clang-format off */
static const struct gt_format formats[] = {
    /* name, header, minor, v1, after_call, snapshot, end_marker, v1_marking */
    {"go1.5",  "go 1.5 trace",   5,  true,  GT_AFTER_CALL_NOTHING,    false, false, 0},
    {"go1.7",  "go 1.7 trace",   7,  true,  GT_AFTER_CALL_NOTHING,    false, false, 0},
    {"go1.8",  "go 1.8 trace",   8,  true,  GT_AFTER_CALL_NOTHING,    false, false, 0},
    {"go1.9",  "go 1.9 trace",   9,  true,  GT_AFTER_CALL_NOTHING,    false, false, 0},
    {"go1.10", "go 1.10 trace",  10, true,  GT_AFTER_CALL_NOTHING,    false, false, 0},
    {"go1.11", "go 1.11 trace",  11, true,  GT_AFTER_CALL_STOP_START, false, false, 0},
    {"go1.19", "go 1.19 trace",  19, true,  GT_AFTER_CALL_STOP_START, false, false, 0},
    {"go1.21", "go 1.21 trace",  21, true,  GT_AFTER_CALL_STOP_START, false, false, 1},
    {"go1.22", "go 1.22 trace",  22, false, GT_AFTER_CALL_STOP_START, false, false, 0},
    {"go1.23", "go 1.23 trace",  23, false, GT_AFTER_CALL_STATUS,     false, false, 0},
    {"go1.25", "go 1.25 trace",  25, false, GT_AFTER_CALL_STATUS,     true,  false, 0},
    {"go1.26", "go 1.26 trace",  26, false, GT_AFTER_CALL_NOTHING,    true,  true, 0},
};
/* clang-format on */

enum { FORMATS = sizeof formats / sizeof *formats };

/* Has no event that only some versions have. */
static const struct gt_format none = {.name = "none", .header = "", .v1 = true};

const struct gt_format *gt_format = &none;

const struct gt_format *gt_format_find(const char *name)
{
    for (size_t i = 0; i < FORMATS; i++) {
        if (strcmp(formats[i].name, name) == 0)
            return &formats[i];
    }
    return NULL;
}

const struct gt_format *gt_format_of_header(const void *header)
{
    for (size_t i = 0; i < FORMATS; i++) {
        char expected[GT_HEADER_BYTES] = {0};
        memcpy(expected, formats[i].header, strlen(formats[i].header));
        if (memcmp(header, expected, sizeof expected) == 0)
            return &formats[i];
    }
    return NULL;
}

const char *gt_format_names(void)
{
    static char text[256];
    char *p = text;
    *p = 0;
    for (size_t i = 0; i < FORMATS; i++) {
        p = stpcpy(p, formats[i].name);
        if (i + 1 < FORMATS)
            p = stpcpy(p, i + 2 < FORMATS ? ", " : " or ");
    }
    return text;
}

const int8_t gt_event_args[GT_EVENTS_END] = {
    -1,
#define GT_EVENT(number, id, name, args) args,
#include "format_v2.def"
#undef GT_EVENT
};

const struct gt_v1_event gt_v1_events[GT_V1_EVENTS_END] = {
#define GT_EVENT(number, id, name, since, ...) [number] = {since, {__VA_ARGS__}},
#include "format_v1.def"
#undef GT_EVENT
};

const char *const gt_v1_stw_kinds[GT_V1_STW_KINDS] = {
    "",
    [GT_V1_STW_MARKING] = "GC mark termination",
    [GT_V1_STW_SWEEPING] = "GC sweep termination",
    "write heap dump",
    "goroutine profile",
    "goroutine profile cleanup",
    "all goroutine stack trace",
    "read mem stats",
    "AllThreadsSyscall",
    "GOMAXPROCS",
    "start trace",
    "stop trace",
    "CountPagesInUse (test)",
    "ReadMetricsSlow (test)",
    "ReadMemStatsSlow (test)",
    "PageCachePagesLeaked (test)",
    "ResetDebugLog (test)",
};
