/* Mixing one number after the other into a hash; GT_HASH_ODD alone spreads what is in few bits. */
#ifndef GT_HASH_H
#define GT_HASH_H

#include <stdint.h>

#define GT_HASH_ODD 0x9e3779b97f4a7c15u /* 2^64 / golden ratio */

static inline uint64_t gt_hash_mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * GT_HASH_ODD;
    return hash ^ hash >> 32;
}

#endif
