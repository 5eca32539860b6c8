/*
 * Whether Go's reader takes a file: the rules that it applies to the structure of a file, to its
 * tables and to each event, applied here. They are those of internal/trace of Go 1.26, which are at
 * least as strict as those of earlier versions; and of a format before 1.11, those of Go 1.22, the
 * last one that reads it. For gotrace; a reading of its own, which keeps no names.
 */
#ifndef GT_VALIDITY_H
#define GT_VALIDITY_H

#include "trace.h"

/* The first thing that is wrong, and where. */
struct gt_fault {
    char what[192];
    bool cut;            /* that is all: the file ends too early */
    const char *event;   /* the event, as Go's sources call it; NULL: none */
    uint64_t offset;     /* of that, or of the batch or record, in the file */
    uint64_t generation; /* v2: the number that it has there; 0: none */
    uint64_t stream;     /* v2: the thread, v1: the P; GT_NO_THREAD: none */
};

enum { GT_FAULT_TEXT = 512 };

/*
 * Reads all of an open trace once more. false: Go refuses it, at *fault. Takes 0.03 µs an event or
 * so, and memory for each goroutine that ever was.
 */
bool gt_validity_check(const struct gt_trace *trace, struct gt_fault *fault);

/* "goroutine 3 is created twice (GoCreate, byte 1234, generation 1, thread 4711)". */
const char *gt_fault_text(const struct gt_trace *trace, const struct gt_fault *fault,
                          char text[static GT_FAULT_TEXT]);

/* The two families; validity.c chooses. */
bool gt_validity_check_v1(const struct gt_trace *trace, struct gt_fault *fault);
bool gt_validity_check_v2(const struct gt_trace *trace, struct gt_fault *fault);

/* For them: notes what is wrong, once; the rest of *fault is theirs. Always false. */
bool gt_fault_note(struct gt_fault *fault, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
