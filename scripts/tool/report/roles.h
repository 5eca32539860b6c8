/* What a call waits for, by the call's name. */
#pragma once

#include "encoder/read/threads.h"

enum gt_role {
    GT_ROLE_OTHER,     /* a lock, or a system call */
    GT_ROLE_CONDITION, /* a signal on a condition variable */
    GT_ROLE_SEMAPHORE,
    GT_ROLE_BARRIER,
    GT_ROLE_FUTEX, /* depends on the program */
    GT_ROLE_JOIN,  /* the end of a thread */
};

enum gt_role gt_role_of(const char *call);

/* Whether a wait at a condition variable begins with the span: it is no part of the one before. */
bool gt_begins_at_condition(const struct gt_span *span);

/* Whether the call waits for the end of a child process. */
bool gt_waits_for_child(const char *call);

/* Whether the call waits for a signal: also a poll without descriptors and timeout. */
bool gt_waits_for_signal(enum gt_kind kind, const char *call);

/* Whether the call waits for descriptors to be ready; or reads what a peer sends. */
bool gt_is_poll(const char *call);
bool gt_is_read(const char *call);

/* Whether the call accepts connections, or makes one. */
bool gt_is_accept(const char *call);
bool gt_is_connect(const char *call);

/*
 * Whether the call lets clients come: it accepts a connection, or binds a datagram socket to an
 * address that the program chose (a trace shows no other bind). That bind alone makes a program a
 * server, also if the program only receives: others send to it first. A client sends first, from an
 * address that the kernel chose.
 */
bool gt_is_for_clients(const char *call);

/* Whether the wait is for a semaphore that serves as a lock. Cheap: reports ask it of each span. */
bool gt_is_for_token(const struct gt_span *span);
