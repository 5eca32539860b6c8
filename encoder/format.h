/*
 * Numbers of Go's v2 trace format (internal/trace/tracev2/events.go in the Go sources), named as
 * upstream names them. Data only.
 */
#ifndef GT_FORMAT_H
#define GT_FORMAT_H

enum gt_event_type {
    GT_EV_EVENT_BATCH = 1,
    GT_EV_STACKS = 2,
    GT_EV_STACK = 3,
    GT_EV_STRINGS = 4,
    GT_EV_STRING = 5,
    GT_EV_FREQUENCY = 8,
    GT_EV_PROCS_CHANGE = 9,
    GT_EV_PROC_START = 10,
    GT_EV_PROC_STOP = 11,
    GT_EV_PROC_STATUS = 13,
    GT_EV_GO_CREATE = 14,
    GT_EV_GO_START = 16,
    GT_EV_GO_DESTROY = 17,
    GT_EV_GO_STOP = 19,
    GT_EV_GO_BLOCK = 20,
    GT_EV_GO_UNBLOCK = 21,
    GT_EV_GO_SYSCALL_BEGIN = 22,
    GT_EV_GO_SYSCALL_END = 23,
    GT_EV_GO_STATUS = 25,
    GT_EV_STW_BEGIN = 26,
    GT_EV_STW_END = 27,
    GT_EV_GC_BEGIN = 29,
    GT_EV_GC_END = 30,
    GT_EV_HEAP_ALLOC = 37,
    GT_EV_HEAP_GOAL = 38,
    GT_EV_GO_LABEL = 39,
    GT_EV_GO_STATUS_STACK = 48,
};

/* Wire values of GoStatus; GT_G_NONE never reaches the wire. */
enum gt_g_state { GT_G_NONE, GT_G_RUNNABLE, GT_G_RUNNING, GT_G_SYSCALL, GT_G_WAITING };

/* Wire values of ProcStatus. */
enum gt_p_state { GT_P_NONE, GT_P_RUNNING, GT_P_IDLE, GT_P_SYSCALL };

enum {
    GT_BATCH_MAX = 64 << 10, /* bytes of a batch's payload, a hard limit of the readers */
    GT_FRAMES_MAX = 128,
    GT_STRING_MAX = 1024,
};

/*
 * Why a goroutine does not run. The viewers match these texts (FORMAT-FACTS): the profiles of
 * `go tool trace` look for "sync" and "network", gotraceui knows a fixed list.
 */
enum gt_reason {
    GT_REASON_NONE,
    GT_REASON_SYNC,
    GT_REASON_COND,
    GT_REASON_SLEEP,
    GT_REASON_YIELD,
    GT_REASON_NETWORK,
    GT_REASON_GC, /* of a stopped world */
    GT_REASONS_END
};

#endif
