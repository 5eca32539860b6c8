/* What the sampler (sampler.h) keeps in the struct of each thread. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

struct gt_sample_ring;

struct gt_sampler {
    /* Samples of the threads that use this struct one after the other; NULL: none yet. */
    _Atomic(struct gt_sample_ring *) ring;
    _Atomic uint64_t state; /* 0: no traced thread uses this struct; else see sampler.c */
};
