/* See memo.h: open addressing, at most half full. */
#include "memo.h"

#include "arena.h"

static bool grow(struct gt_memo *memo)
{
    size_t capacity = memo->capacity ? memo->capacity * 2 : 256;
    struct gt_pair *slots = gt_pages_alloc(capacity * sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < memo->capacity; i++) {
        if (memo->slots[i].value)
            *gt_memo_probe(slots, capacity, memo->slots[i].key) = memo->slots[i];
    }
    gt_pages_free(memo->slots, memo->capacity * sizeof *slots);
    memo->slots = slots;
    memo->capacity = capacity;
    return true;
}

/* Counts again, and grows if need be: slots that were handed out and never written are free. */
static bool make_room(struct gt_memo *memo)
{
    memo->used = 0;
    for (size_t i = 0; i < memo->capacity; i++)
        memo->used += memo->slots[i].value != 0;
    return memo->used * 4 < memo->capacity || grow(memo);
}

uint64_t *gt_memo_add(struct gt_memo *memo, uint64_t key)
{
    if (memo->used * 2 >= memo->capacity && !make_room(memo))
        return NULL;
    struct gt_pair *slot = gt_memo_probe(memo->slots, memo->capacity, key);
    slot->key = key;
    memo->used++;
    return &slot->value;
}

void gt_memo_free(struct gt_memo *memo)
{
    gt_pages_free(memo->slots, memo->capacity * sizeof *memo->slots);
    *memo = (struct gt_memo){0};
}
