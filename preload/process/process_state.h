/*
 * The state of this process: whether it is followed, whether it has a drain thread, whether it is
 * ending. Any file may read it.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum gt_drain_started { GT_DRAIN_WITH_THREAD = 1, GT_DRAIN_WITHOUT_THREAD };

/*
 * How long other threads are held once the file is complete: see gt_process_hold. The process is
 * normally gone within a millisecond. While the thread that ends it waits for a CPU, the hold
 * lasts on, until that thread has used so much CPU time, but at most GT_PROCESS_LATEST_NS.
 */
#define GT_PROCESS_LEAVES_NS 50000000
#define GT_PROCESS_LATEST_NS 1000000000

/* Only the files process_*.c of control/ and life/ change it, and drain_thread.c. */
extern struct gt_process {
    pid_t pid;       /* of the traced process; 0: not followed. The PID of a vfork child differs */
    bool started;    /* the constructor, or gt_process_start_early, has run */
    bool root;       /* the user started this process */
    bool descendant; /* descends from the root, or is a later image (exec) of it */
    _Atomic bool abandons_children; /* children are not followed, whatever the options say */
    bool exiting;                   /* exit(3) is under way, as far as we know */
    _Atomic uint32_t drain_started; /* enum gt_drain_started; 0: needed none so far */
    _Atomic uint32_t drain_tid;     /* the kernel clears it at the thread's end (set_tid_address) */
    _Atomic uint32_t ended;
    _Atomic uint32_t serving;     /* see serve_unfollowed */
    _Atomic uint32_t execs;       /* TID of the thread that is about to exec */
    _Atomic bool dying;           /* a signal is ending the process */
    _Atomic uint64_t holds_until; /* see gt_process_hold; CLOCK_MONOTONIC_RAW; 0: never began */
    _Atomic uint32_t leaver; /* TID of the thread that ends the process, from the file's completion
                                to the end of the hold; else 0 */
    uint64_t leaves_cpu;     /* the leaver's CPU time at which the hold ends */
    uint64_t leaves_latest;  /* when the hold ends at the latest; CLOCK_MONOTONIC_RAW */
} gt_process;

/* Whether this process is the traced one, and not a vfork child that runs in the traced process's
 * memory. Any context. */
bool gt_process_is_ours(void);

/* Whether the process ever had, or was about to have, a second thread. */
bool gt_process_had_threads(void);

/* Whether this process, or the one that it was forked from, is followed. Any context. */
bool gt_process_is_followed(void);

/* Whether it is decided that this process is not followed: hooks only forward. */
bool gt_process_is_left_alone(void);

/* Whether nothing more is recorded of this process, or it is not the traced one. */
bool gt_process_has_ended(void);
