/*
 * The hot locks that one thread holds, and since when. waits/hot.c fills this in. It stands in this
 * room, below thread.h, because struct gt_thread contains it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { GT_HOLDS_MAX = 8 };

/* The hot locks that a thread holds now. Zero-initialised, at least up to `hold`. */
struct gt_holds {
    /*
     * A hold like most, as long as it is the thread's only one. It is hardly ever logged, so it is
     * kept where that costs least.
     */
    struct gt_light_hold {
        const void *lock; /* NULL: no hold is here */
        uint64_t since;   /* 0: not timed */
        uintptr_t pc;
        uint32_t epoch;
    } light;
    uint32_t in_use; /* a bit for each element of `hold` */
    uint32_t next;   /* the element to overwrite when all are in use: one may be stale */
    uint32_t brief;  /* brief holds in a row, only timed ones; from 64 on all holds */
    struct gt_hold {
        const void *lock;
        uint64_t since; /* 0: not timed */
        bool longer;    /* the hold began before `since` */
        bool shared;    /* other processes may have the lock; set when the hold ends */
        uint32_t epoch; /* of the lock's struct gt_heat when the hold began */
        uintptr_t pc;   /* where the program called the lock function, or its taker in Python */
        /* Time that the thread has spent since then in waits and calls that are written. */
        uint64_t spent, longest;
        uint32_t longest_hook;
    } hold[GT_HOLDS_MAX];
};
