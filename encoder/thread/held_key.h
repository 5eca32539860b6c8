/*
 * The key of a text about a lock, such as "G7 committer, cache_lock". The table of strings has the
 * key in place of the text (held.h). Each writer caches its thread's last keys, so that the thread
 * need not search the table.
 */
#pragma once

#include <stdint.h>

struct gt_string;

/* The last locks of a thread, each found again without a look into the table of strings. */
enum { GT_HELD_RECENT = 8 };
struct gt_held_recent {
    struct gt_held_key {
        uint64_t lock, g; /* g 0: the holder is no thread of ours */
        uint64_t routine; /* address of the start routine; SELF: where it took the lock */
        uint64_t name[2]; /* that the holder gave itself, filled up with zeros */
        uint32_t holder, epoch;
        uint64_t shared; /* 1: see gt_lock_in_use */
    } key;
    struct gt_string *string;
    uint32_t era; /* the string's era; 0: none */
};
