/*
 * Names of variables, functions and places within texts. If the reader of the trace looks up names
 * later, the text has a word with the address in place of the name.
 */
#pragma once

#include "encoder/base/strbuf.h"

#include <stdbool.h>
#include <stdint.h>

struct gt_symbolizer;

enum gt_phrase {
    GT_PHRASE_VARIABLE, /* "not_empty"; "table+40": inside it; "lock (a.c)": one of several */
    GT_PHRASE_FUNCTION, /* without parameters, and with no comma */
    GT_PHRASE_PLACE,    /* the function with its line: "put (queue.c:12)", "put ()" */
    GT_PHRASES,
};

/* Appends the phrase for the address. false: no variable is known there, nothing is appended. */
bool gt_phrase_add(struct gt_strbuf *t, struct gt_symbolizer *s, enum gt_phrase which,
                   uint64_t epoch, uint64_t address);

/* Appends the word that stands for the phrase. shown: the address as it appears in a trace. */
void gt_phrase_put_off(struct gt_strbuf *t, enum gt_phrase which, uint64_t shown);

/* Finds the first such word in text, and where it ends. NULL: there is none. */
const char *gt_phrase_find(const char *text, enum gt_phrase *which, uint64_t *shown,
                           const char **end);
