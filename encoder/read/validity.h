/*
 * Checks whether Go's reader accepts a file: applies the reader's rules for the structure of a
 * file, for its tables and for each event. The rules are those of internal/trace of Go 1.26, which
 * are at least as strict as those of earlier versions, and what the viewer's pages need besides.
 * For a format before 1.11 they are those of Go 1.22, the last one that reads it. For gotrace. The
 * check reads the file on its own, and keeps no names.
 */
#pragma once

#include "trace.h"

/* The first fault, and where it is. */
struct gt_fault {
    char what[192];
    bool cut;            /* the only fault: the file ends too early */
    const char *event;   /* the event's name in Go's sources; NULL: none */
    uint64_t offset;     /* of the event, batch or record in the file */
    uint64_t generation; /* v2: its number in the file; 0: none */
    uint64_t stream;     /* v2: the thread, v1: the P; GT_NO_THREAD: none */
};

enum { GT_FAULT_TEXT = 512 };

/*
 * Reads a whole open trace once more. false: Go refuses it, because of *fault. Takes about 0.03 µs
 * an event, and memory for each goroutine that ever existed.
 */
bool gt_validity_check(const struct gt_trace *trace, struct gt_fault *fault);

/* "goroutine 3 is created twice (GoCreate, byte 1234, generation 1, thread 4711)". */
const char *gt_fault_text(const struct gt_trace *trace, const struct gt_fault *fault,
                          char text[static GT_FAULT_TEXT]);

/* The checks of the two families, between which validity.c chooses. */
bool gt_validity_check_v1(const struct gt_trace *trace, struct gt_fault *fault);
bool gt_validity_check_v2(const struct gt_trace *trace, struct gt_fault *fault);

/* Notes the first fault's text; the checks set the rest of *fault. Returns false. */
bool gt_fault_note(struct gt_fault *fault, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
