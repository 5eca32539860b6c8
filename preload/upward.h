/*
 * The calls that go up. A file includes only files below it (test_layers.py); what a low file needs
 * of a file above it, it calls through this table. The table is constant, so it can be used at any
 * time, and stands in top/upward_table.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct gt_thread;

enum { GT_UPWARD_HIDE_MAX = 32 };

extern const struct gt_upward {
    /* real.c: the real functions are known. Now it can be decided what is counted. Puts the names
     * of our functions that are to be hidden into `hide`, and returns how many these are. */
    int (*resolved)(const char *hide[GT_UPWARD_HIDE_MAX]);
    /* real.c: the hook of free(3), in place of free_sized where libc has none. */
    void (*free)(void *p);
    /* thread.h: a thread that is not known calls a hook. Returns it inside the guard, or NULL. */
    struct gt_thread *(*appear)(void);
    /* thread.h: the caller runs on another stack than t was last seen on. See births.h. */
    struct gt_thread *(*elsewhere)(struct gt_thread *t);
    /* fork.c: the calling process is a forked child that is to be followed. */
    void (*inherit)(void);
    /* control.c: executes a command. See commands.h. */
    int (*execute)(uint32_t command, char *path, char *text, bool alone);
} gt_upward;
