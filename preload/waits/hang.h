/*
 * GOTRACE_HANG: reports a deadlock on stderr, once. A deadlock is a cycle of threads that have
 * waited for each other for that long, or a wait for a lock whose holder has ended. With a flight
 * recorder, the report comes with a snapshot.
 */
#pragma once

/* Looks for deadlocks and reports them. Drain side, about once a second. */
void gt_hang_look(void);
