/* Finds new names for the frames of a trace, and writes the trace with them. */
#pragma once

#include "encoder/read/bytes.h"
#include "encoder/read/trace.h"
#include "encoder/read/v1_records.h"
#include "symbolize/elf/modules.h"
#include "symbolize/made/made.h"

#include <stdio.h>

struct gt_named_module {
    struct gt_named_module *next;
    const struct gt_module *module;
    uint64_t without_line; /* addresses looked up for which no line was found */
    uint64_t nameless;     /* those of them without a name */
};

struct gt_naming {
    struct gt_symbolizer *symbolizer;
    struct gt_contents contents;
    struct gt_memo answers; /* by address: struct answer of naming.c */
    struct gt_memo known;   /* descriptions of modules, by their interned text */
    struct gt_memo texts;   /* id → interned text, of the file (v1) or of a generation (v2) */
    struct gt_memo ids;     /* interned text → id */
    uint64_t last_id;
    struct gt_named_module *modules;
    struct gt_made_functions made; /* code made at run time, outside of modules */
    uint64_t named;                /* how many addresses got new names */
    uint64_t next_pc;              /* for frames that need an address of their own */
    bool was_later; /* the trace says that its names are not looked up yet (GT_LATER) */
    bool last;      /* no later look-up follows: unknown addresses get the best text known */
};

/* Takes a string of a trace, which may describe a module. All strings come before any address. */
void gt_naming_string(struct gt_naming *naming, uint64_t id, const struct gt_bytes *text);

/* Reads a frame of a stack: its PC, the ids of its function and file, its line. false: damaged. */
bool gt_naming_frame(struct gt_naming *naming, struct gt_bytes *bytes, struct gt_where *frame);

/* Takes a PC of the trace, so that new ones differ. All PCs come before the first gt_naming_put. */
void gt_naming_pc(struct gt_naming *naming, uint64_t pc);

/*
 * Adds the frames to write for a frame to the n in `out`: at most GT_FRAMES_MAX in all, so a stack
 * that is too long loses its outermost frames. Returns how many there are then.
 */
uint32_t gt_naming_put(struct gt_naming *naming, const struct gt_where *frame, uint32_t n,
                       struct gt_where out[GT_FRAMES_MAX]);

/* A text with names in place of its phrases (symbolize/phrases.h). NULL: the text stays. */
const char *gt_naming_text(struct gt_naming *naming, const struct gt_bytes *text);

/*
 * Whether the new trace still says that its names are not looked up, as files of some modules are
 * not here. All modules and PCs must be known.
 */
bool gt_naming_stays_later(struct gt_naming *naming);

/* Whether that record or text says that the trace's names are not looked up yet. */
bool gt_naming_v1_says_later(const struct gt_v1_record *record);
bool gt_naming_v2_says_later(const struct gt_bytes *text);

/* Write the trace with new tables of stacks and strings. */
void gt_rename_v2(struct gt_naming *naming, const struct gt_trace *trace, FILE *out);
void gt_rename_v1(struct gt_naming *naming, const struct gt_trace *trace, FILE *out);
