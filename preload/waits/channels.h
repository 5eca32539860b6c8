/*
 * Names of the streams that descriptors lead to, the same at both ends and in all processes.
 * Streams have names only where every call is recorded (GOTRACE_SYSCALLS=all). Each call that moved
 * bytes leaves a log with the name (encoder/format/channel.h). From these logs `gotrace merge`
 * finds which thread ended which wait.
 *
 * - Pipes and FIFOs: device and inode.
 * - TCP: both addresses, the sender's first, and the kernel's number of the network namespace.
 * - UNIX sockets: the receiver's inode. The other end is known only where socketpair(2) made both.
 * - Eventfds: the kernel tells no name except through another descriptor. So an eventfd gets a name
 *   when it is made; forked children and duplicates of the descriptor share that name. Its value
 *   counts as bytes.
 *
 * A name is looked up once for each descriptor (fds.h), by system calls that need no other
 * descriptor. Any context.
 */
#pragma once

#include "slice.h"

#include "preload/shared/options.h"

#include <sys/stat.h>

/*
 * Whether streams get names. Only the environment decides: a program makes descriptors before
 * recording starts, and they need their names later.
 */
static inline bool gt_channels_wanted(void)
{
    return gt_options.channels;
}

/* Finds the name of fd, which is below GT_FDS and has the status *is. false: fd has no name. */
bool gt_channel_find(int fd, const struct stat *is);

/*
 * The number of fd's current name: each new name of a descriptor gets a new number. For descriptors
 * of kind GT_FD_NAMED.
 */
uint32_t gt_channel_name(int fd);

/*
 * Name a new eventfd, and two new UNIX sockets if made is 0. Both functions return their first
 * argument, which may be the result of a failed call.
 */
int gt_channel_of_event(int fd);
int gt_channels_of_pair(int made, const int fds[2]);

/*
 * Whether fd is a socket for datagrams: others can send to its address without a connection. false,
 * too, if the kernel may not be asked. Keeps errno.
 */
bool gt_channel_gets_datagrams(int fd);

/* Gives `copy`, a duplicate of fd, the name of fd. Returns copy. */
int gt_channel_copy(int fd, int copy);

/*
 * Logs a call that t's thread, inside the guard, has just written. The call returned more than 0.
 */
void gt_channel_tell(struct gt_thread *t, const struct gt_slice *slice);

/*
 * From now on no socket or pipe is asked for its name or type: the program's seccomp filter would
 * end the process.
 */
void gt_channels_forbid(void);
