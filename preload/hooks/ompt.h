/*
 * The parts of OpenMP's interface for tools that we use (OMPT, OpenMP 5.2, chapter 19). Numbers and
 * signatures are those of the standard.
 */
#pragma once

#include <stdint.h>

typedef union ompt_data_t {
    uint64_t value;
    void *ptr;
} ompt_data_t;

typedef int (*ompt_set_callback_t)(int event, void (*callback)(void));

typedef struct ompt_start_tool_result_t {
    int (*initialize)(void (*(*lookup)(const char *name))(void), int device, ompt_data_t *data);
    void (*finalize)(ompt_data_t *data);
    ompt_data_t tool_data;
} ompt_start_tool_result_t;

enum {
    ompt_callback_thread_end = 2,
    ompt_callback_parallel_begin = 3,
    ompt_callback_parallel_end = 4,
    ompt_callback_task_create = 5,
    ompt_callback_task_schedule = 6,
    ompt_callback_implicit_task = 7,
    ompt_callback_sync_region_wait = 16,
    ompt_callback_mutex_released = 17,
    ompt_callback_mutex_acquire = 26,
    ompt_callback_mutex_acquired = 27,
    ompt_callback_nest_lock = 28,
};

enum { ompt_scope_begin = 1, ompt_scope_end = 2 };
enum { ompt_task_initial = 1, ompt_task_explicit = 4 };

/* Why a thread leaves a task, in ompt_callback_task_schedule. */
enum { ompt_task_complete = 1, ompt_task_cancel = 3, ompt_task_detach = 4 };

enum {
    ompt_sync_region_barrier = 1,
    ompt_sync_region_barrier_implicit = 2,
    ompt_sync_region_barrier_explicit = 3,
    ompt_sync_region_barrier_implementation = 4,
    ompt_sync_region_taskwait = 5,
    ompt_sync_region_taskgroup = 6,
    ompt_sync_region_reduction = 7,
    ompt_sync_region_barrier_implicit_workshare = 8,
    ompt_sync_region_barrier_implicit_parallel = 9,
    ompt_sync_region_barrier_teams = 10,
};

enum {
    ompt_mutex_lock = 1,
    ompt_mutex_test_lock = 2,
    ompt_mutex_nest_lock = 3,
    ompt_mutex_test_nest_lock = 4,
    ompt_mutex_critical = 5,
    ompt_mutex_atomic = 6,
    ompt_mutex_ordered = 7,
};

/* Exported: what an OpenMP library asks for when it starts. */
ompt_start_tool_result_t *ompt_start_tool(unsigned version, const char *library);
