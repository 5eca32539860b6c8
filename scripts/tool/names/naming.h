/* New names for the frames of a trace: what frames are at an address, and a file with them. */
#ifndef GT_NAMING_H
#define GT_NAMING_H

#include "encoder/read/bytes.h"
#include "encoder/read/trace.h"
#include "encoder/read/v1_records.h"
#include "symbolize/made.h"
#include "symbolize/modules.h"
#include "symbolize/symbolize.h"

#include <stdio.h>

struct gt_named_module {
    struct gt_named_module *next;
    const struct gt_module *module;
    uint64_t with_line, without_line; /* addresses asked for, as they are now */
    uint64_t nameless;                /* of those that have no line: with no name either */
};

struct gt_naming {
    struct gt_symbolizer *symbolizer;
    struct gt_contents contents;
    struct gt_memo answers; /* by address: struct gt_answer */
    struct gt_memo known;   /* descriptions of modules, by their interned text */
    struct gt_memo texts;   /* of the file, v2: of a generation: id → interned text */
    struct gt_memo ids;     /* and back */
    uint64_t last_id;
    struct gt_named_module *modules;
    struct gt_made made; /* code outside of them */
    uint64_t named;      /* addresses */
    uint64_t next_pc;    /* for frames that need one of their own */
    bool was_later;      /* the trace says that names are to come (GT_LATER) */
    bool last;           /* nobody comes after us: what is not found gets what can be said of it */
};

/* The frames that take the place of one; those before the last are inlined. */
struct gt_answer {
    uint32_t n; /* 0: it stays as it is */
    struct gt_where frame[];
};

/* A string of a trace: it may describe a module. All of them come before the first address. */
void gt_naming_string(struct gt_naming *naming, uint64_t id, const struct gt_bytes *text);

/* Reads a frame of a stack: its PC, the ids of its function and file, its line. false: damaged. */
bool gt_naming_frame(struct gt_naming *naming, struct gt_bytes *bytes, struct gt_where *frame);

/* A PC of the trace, so that new ones differ. Likewise. */
void gt_naming_pc(struct gt_naming *naming, uint64_t pc);

/* What is to stand for a frame. func and file are as the trace has them. */
const struct gt_answer *gt_naming_ask(struct gt_naming *naming, const struct gt_where *frame);

/* A text of the trace with the names that it was to get (symbolize/phrases.h). NULL: as it is. */
const char *gt_naming_text(struct gt_naming *naming, const struct gt_bytes *text);

/*
 * Whether the trace goes on to say that names are to come: all modules and PCs are known, and files
 * of some modules are not here.
 */
bool gt_naming_stays_later(struct gt_naming *naming);

/* Whether that says of a trace that its names are to come. */
bool gt_naming_v1_says_later(const struct gt_v1_record *record);
bool gt_naming_v2_says_later(const struct gt_bytes *text);

/* Write the trace with new tables. */
void gt_rename_v2(struct gt_naming *naming, const struct gt_trace *trace, FILE *out);
void gt_rename_v1(struct gt_naming *naming, const struct gt_trace *trace, FILE *out);

#endif
