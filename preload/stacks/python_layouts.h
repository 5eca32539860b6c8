/* Where CPython of a version keeps what stacks are read from: offsets in its structures. */
#ifndef GT_PYTHON_LAYOUTS_H
#define GT_PYTHON_LAYOUTS_H

#include "symbolize/python.h"

#include <stdbool.h>
#include <stdint.h>

enum gt_python_chain {
    GT_PYTHON_UNMARKED, /* 3.9: a frame for each call of the interpreter's function */
    GT_PYTHON_OBJECTS,  /* 3.10: and a record on the C stack */
    GT_PYTHON_CFRAMES,  /* 3.11: there are more frames; the last one of a call says so */
    GT_PYTHON_ENTRIES   /* then: the last frame of each call is on the C stack itself */
};

/* Where an object of a class that is written in Python has its attributes. */
enum gt_python_dict {
    GT_PYTHON_DICT_NONE,   /* nobody needs to know */
    GT_PYTHON_DICT_OFFSET, /* to 3.10: in a dictionary, where its type says */
    GT_PYTHON_DICT_APART,  /* 3.11: or in a table of values */
    GT_PYTHON_DICT_TAGGED, /* 3.12: that stands in the dictionary's place */
    GT_PYTHON_DICT_INLINE  /* 3.13: or in the object itself */
};

struct gt_python_layout {
    enum gt_python_chain chain;
    enum gt_python_lines lines;
    uint8_t unit; /* `at` counts in so many bytes; 0: it is an address */
    struct {
        uint16_t cframe, frame; /* cframe: the innermost record on the C stack */
    } thread;
    struct {
        uint16_t frame, previous;
    } cframe;
    struct {
        uint16_t code, previous, at, last; /* at: the instruction; last: what says so */
        uint16_t locals;                   /* the variables, the first one there */
    } frame;
    struct {
        uint16_t file, name, lines, first, instructions;
    } code;
    uint16_t ascii, characters; /* in str: where ASCII characters begin; where others do */
    enum gt_python_dict dict;
    uint16_t keys;   /* in a type: those of its objects' values */
    uint16_t values; /* in a table of values: the first one */
};

/*
 * Of a version, as PY_VERSION_HEX: known, or published in its _PyRuntime, `words`, of which as much
 * can be read as is looked at. false: it is neither, or published what cannot be.
 */
bool gt_python_layout(uint32_t version, const uint64_t *words, struct gt_python_layout *found);

#endif
