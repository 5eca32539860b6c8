/*
 * The hooks and other leaves of stacks: their numbers, which stand in stacks in place of addresses,
 * and their names.
 */
#pragma once

#include <stdint.h>
#include <sys/syscall.h>

enum gt_hook {
    GT_HOOK_NONE,
#define GT_HOOK(name, result, parameters, arguments, version) GT_HOOK_##name,
#include "preload/tables/hooks.def"
    GT_HOOKS_END,
/* Leaves that stand in a stack in place of the hook of syscall(2). */
#define GT_RAW(what, name) GT_RAW_##name,
#define GT_RAW_FUTEX(id, text) GT_RAW_FUTEX_##id,
#include "preload/tables/raw.def"
    /* Python's functions, in place of those of the condition variable: stacks/gil.h. */
    GT_LEAF_take_gil,
    GT_LEAF_drop_gil,
    GT_LEAF_fork, /* which has no hook: libc calls fork handlers of ours (life/fork.c) */
/* Functions of other libraries than libc: foreign.h. */
#define GT_OMP(how, result, name, parameters, arguments) GT_OMP_##name,
#define GT_OMP_ASKED(result, name, parameters)
#define GT_OMP_LEAF(id, text) GT_OMP_##id,
#include "preload/tables/openmp.def"
#define GT_URING(result, name, parameters, arguments) GT_ASYNC_##name,
#define GT_AIO(result, name, parameters, arguments) GT_ASYNC_##name,
#include "preload/tables/async.def"
#define GT_RESOLVER(result, name, parameters, arguments) GT_RESOLVER_##name,
#include "preload/tables/resolver.def"
    GT_LEAVES_END,
};

/* The name of a hook or another leaf. */
const char *gt_real_name(enum gt_hook hook);

/* A hash of the names and numbers of all leaves, to compare two builds. */
uint64_t gt_real_names(void);
