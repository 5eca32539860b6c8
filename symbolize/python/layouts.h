/*
 * Where CPython of each version keeps the data that stacks are read from: offsets in its
 * structures.
 */
#pragma once

#include "python.h"

#include <stdbool.h>
#include <stdint.h>

enum gt_python_chain {
    GT_PYTHON_UNMARKED, /* 3.9: a frame for each call of the interpreter's function */
    GT_PYTHON_OBJECTS,  /* 3.10: as 3.9, and each call has a record on the C stack */
    GT_PYTHON_CFRAMES,  /* 3.11: a call has several frames; the last one is marked */
    GT_PYTHON_ENTRIES   /* 3.12 on: the last frame of each call is on the C stack itself */
};

/* Where an object of a class that is written in Python has its attributes. */
enum gt_python_dict {
    GT_PYTHON_DICT_OFFSET, /* to 3.10: in a dictionary, where the object's type says */
    GT_PYTHON_DICT_APART,  /* 3.11: there, or in a table of values */
    GT_PYTHON_DICT_TAGGED, /* 3.12: as 3.11, but the table stands in the dictionary's place */
    GT_PYTHON_DICT_INLINE  /* 3.13 on: in a dictionary, or in the object itself */
};

/* Where `__exit__` has its C method if it is bound to its lock; to 3.13. */
enum { GT_PYTHON_BOUND = 16 };

struct gt_python_layout {
    enum gt_python_chain chain;
    enum gt_python_lines lines;
    uint8_t unit; /* frame.at counts units of so many bytes; 0: it is an address */
    struct {
        uint16_t cframe, frame; /* cframe: the innermost record on the C stack */
    } thread;
    struct {
        uint16_t frame, previous;
    } cframe;
    struct {
        uint16_t code, previous, at, last; /* at: the instruction; last: marks the last of a call */
        uint16_t locals;                   /* the first local variable */
    } frame;
    struct {
        uint16_t file, name, lines, first, instructions;
    } code;
    struct gt_python_states {
        uint16_t interpreters;            /* in _PyRuntime: the first interpreter */
        uint16_t next_interpreter, first; /* in an interpreter; first: state of a thread */
        uint16_t next, thread;            /* in a thread's state; thread: its pthread_t */
    } states;
    uint16_t function_code;     /* in a function: its code */
    uint16_t ascii, characters; /* in str: where ASCII characters begin; where others do */
    enum gt_python_dict dict;
    uint16_t keys;       /* in a type: the keys of its objects' values */
    uint16_t values;     /* in a table of values: the first one */
    bool has_byte_locks; /* from 3.13 on: a lock may be one byte */
    uint8_t exit;        /* in a lock's `__exit__`: its C method; GT_PYTHON_BOUND: also the lock */
    uint8_t leaves;      /* the argument of CALL that leaves a `with` block; 0: not known */
};

/*
 * Finds the layout of a version, given as PY_VERSION_HEX. It is known here, or published in
 * Python's _PyRuntime: `words`, which can be read as far as this function looks. false: the layout
 * is neither known nor published, or is published in a form that we cannot use.
 */
bool gt_python_layout(uint32_t version, const uint64_t *words, struct gt_python_layout *found);
