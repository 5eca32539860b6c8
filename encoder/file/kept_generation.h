/* A generation that the flight recorder keeps (drain/ring.h), as v2.h and v1/v1.h write it. */
#pragma once

#include "encoder/thread/buffers.h"
#include "encoder/cpu/samples.h"
#include "encoder/thread/stacks.h"
#include "encoder/thread/strings.h"

#include "encoder/base/clock.h"

struct gt_kept {
    struct gt_kept *next;
    size_t bytes; /* of the mapping, with this struct */
    uint32_t gen;
    uint32_t era;                      /* the oldest era of its stacks and strings */
    struct gt_clock_snapshot snapshot; /* taken when it began */
    uint64_t from;                     /* no event is earlier (trace time) */
    uint64_t begin_ns, end_ns;
    uint64_t events;
    struct gt_buf *early, *plain; /* as writers queued them */
    struct gt_stack **stacks;
    struct gt_string **strings;
    struct gt_taken_sample *samples;
    uint32_t n_stacks, n_strings, n_samples;
};
