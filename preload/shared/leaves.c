/*
 * See leaves.h.
 *
 * Offsets take the place of pointers: the loader would have to write each pointer in each process.
 */
#include "leaves.h"

#include "encoder/base/hash.h"

#include <stddef.h>

static const struct texts {
    char unnamed[sizeof "?"];
#define GT_LEAF(id, text) char id[sizeof text];
#include "leaves.def"
} texts = {
    .unnamed = "?",
#define GT_LEAF(id, text) .id = text,
#include "leaves.def"
};
_Static_assert(sizeof texts <= UINT16_MAX, "an offset has 16 bits");

static const uint16_t offsets[GT_LEAVES_END] = {
#define GT_LEAF(id, text) [id] = offsetof(struct texts, id),
#include "leaves.def"
};

const char *gt_real_name(enum gt_hook hook)
{
    return (const char *)&texts + (hook < GT_LEAVES_END ? offsets[hook] : 0);
}

uint64_t gt_real_names(void)
{
    uint64_t hash = GT_LEAVES_END;
    for (int i = 0; i < GT_LEAVES_END; i++) {
        for (const char *c = offsets[i] ? gt_real_name(i) : ""; *c; c++)
            hash = gt_hash_mix(hash, (uint8_t)*c);
    }
    return hash;
}
