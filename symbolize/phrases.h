/*
 * Names within texts: of variables, functions, places. Where they are looked up later, by who reads
 * the trace, the text has a word that says of what address.
 */
#ifndef GT_PHRASES_H
#define GT_PHRASES_H

#include "symbolize.h"

#include "encoder/base/strbuf.h"

enum gt_phrase {
    GT_PHRASE_VARIABLE, /* "not_empty", "table+40" inside of it; "lock (a.c)": not the only one */
    GT_PHRASE_FUNCTION, /* without parameters, and with no comma */
    GT_PHRASE_PLACE,    /* the function with its line: "put (queue.c:12)", "put ()" */
    GT_PHRASES,
};

/* Appends what that is at the address. false: no variable is known there, nothing is appended. */
bool gt_phrase_add(struct gt_strbuf *t, struct gt_symbolizer *s, enum gt_phrase which,
                   uint64_t epoch, uint64_t address);

/* Appends the word that stands for it; shown: the address as a trace has it. */
void gt_phrase_put_off(struct gt_strbuf *t, enum gt_phrase which, uint64_t shown);

/* Finds the first such word in text, and where it ends. NULL: there is none. */
const char *gt_phrase_find(const char *text, enum gt_phrase *which, uint64_t *shown,
                           const char **end);

#endif
