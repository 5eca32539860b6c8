/*
 * The tables that all threads of a profile for the Firefox Profiler share: stacks as a tree of
 * frames, frames of functions, functions of files; and texts. Rows are referred to by their index.
 */
#pragma once

#include "export_modules.h"

#include "encoder/read/shares.h"

#include <stdio.h>

#define GT_FIREFOX_NONE UINT32_MAX

struct gt_firefox_tables {
    struct gt_trace *trace;
    struct gt_export_modules modules;
    struct gt_memo text_ids, file_ids, function_ids, frame_ids, node_ids, stack_ids, resource_ids;
    struct gt_memo waits; /* stack → kind of its wait, plus 1 */
    const char **text;
    struct gt_firefox_function {
        uint32_t name, file, resource; /* file, resource: or NONE */
    } * function;
    struct gt_firefox_frame {
        uint32_t function, line; /* line 0: not known */
        enum gt_kind kind;       /* its category */
    } * frame;
    struct gt_firefox_node {
        uint32_t frame, caller; /* caller: or NONE */
    } * node;
    uint32_t *file, *resource; /* texts */
    size_t texts, functions, frames, nodes, files, resources;
};

/* The index of the text, which is added if it is new. NULL or "": NONE. */
uint32_t gt_firefox_text(struct gt_firefox_tables *t, const char *text);

/* The index of the stack of a thread in a state of that kind; stack may be NULL. */
uint32_t gt_firefox_stack(struct gt_firefox_tables *t, const struct gt_callers *stack,
                          enum gt_kind kind);

/* Writes all tables, to `file`, which JSON goes to. */
void gt_firefox_put_tables(const struct gt_firefox_tables *t, FILE *file);
