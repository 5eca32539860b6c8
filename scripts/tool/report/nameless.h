/*
 * How much of a report is in functions without names, in which modules, and which packages have
 * their names. Such a function is shown by its offset: "pigz+0x11322".
 */
#pragma once

#include "encoder/read/trace.h"

struct gt_nameless {
    uint64_t all, without; /* the whole report, and its part without names */
    unsigned n;
    struct {
        const char *name, *file; /* as given to gt_nameless_add; file: "" if it was never a path */
        int length;              /* of the module's name in `name` */
        uint64_t weight;
    } module[16];
};

/*
 * Adds a function that the report shows, with its part of the report. file: of its source, or the
 * module's path where no source is known. Both texts must last.
 */
void gt_nameless_add(struct gt_nameless *these, const char *func, const char *file,
                     uint64_t weight);

/*
 * The lines about them, the first one a sentence, the others commands; in new memory. NULL: less
 * than a tenth of the report is nameless. of: what the report adds up, such as "time above is in".
 * trace: NULL: the report is about a process, which symbolize/ knows.
 */
char *gt_nameless_text(const struct gt_nameless *these, const char *of,
                       const struct gt_trace *trace);

/* Prints these lines behind an empty one; nothing where they are NULL. */
void gt_nameless_print(const struct gt_nameless *these, const char *of,
                       const struct gt_trace *trace);

/* Their members in JSON. */
void gt_nameless_json(const struct gt_nameless *these);
