/*
 * Mixes one number after the other into a hash. GT_HASH_ODD alone spreads values that differ in few
 * bits.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define GT_HASH_ODD 0x9e3779b97f4a7c15u /* 2^64 / golden ratio */

static inline uint64_t gt_hash_mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * GT_HASH_ODD;
    return hash ^ hash >> 32;
}

/* FNV-1a */
static inline uint64_t gt_hash_bytes(const void *bytes, size_t n)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Mixes two numbers, neither of which is likely to be 0: both halves of their product. */
static inline uint64_t gt_hash_pair(uint64_t one, uint64_t other)
{
    __extension__ unsigned __int128 product = (unsigned __int128)one * other;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}
