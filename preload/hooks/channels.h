/*
 * What streams are called that descriptors lead to, the same at both ends and in all processes,
 * where every call is recorded (GOTRACE_SYSCALLS=all): each call that has moved bytes leaves a log
 * of that (encoder/channel.h), by which `gotrace merge` finds who ended whose wait.
 *
 * - pipes and FIFOs: by device and inode;
 * - TCP: by both addresses, the sender's first, and the kernel's number of the network namespace;
 * - UNIX: by the receiver's inode. Who the other end is, is known where socketpair(2) made both;
 * - eventfds have no name that can be asked for without a descriptor: they get one where they are
 *   made, which forked children and other descriptors of the same have, too. What counts as bytes
 *   there is their value.
 *
 * Looked up once for a descriptor (fds.h), by calls that need no other one. Any context.
 */
#ifndef GT_CHANNELS_H
#define GT_CHANNELS_H

#include "slice.h"

#include "preload/options.h"

#include <sys/stat.h>

/*
 * By the environment alone: descriptors are made before anything is recorded, and what is made of
 * them then is to have a name later.
 */
static inline bool gt_channels_wanted(void)
{
    return gt_options.channels;
}

/* Finds out what fd, below GT_FDS, of which that is known, is called. false: it has no name. */
bool gt_channel_find(int fd, const struct stat *is);

/* Which of all the names that this number has had is its name now; of one that is NAMED. */
uint32_t gt_channel_name(int fd);

/* New descriptors, or an error's, of that eventfd, and of two UNIX sockets if made is 0. They
 * return what they are given. */
int gt_channel_of_event(int fd);
int gt_channels_of_pair(int made, const int fds[2]);

/* `copy` is the same as fd. Returns that. */
int gt_channel_copy(int fd, int copy);

/* t's thread, inside, has just written this call, which has returned more than 0. */
void gt_channel_tell(struct gt_thread *t, const struct gt_slice *slice);

/* What is asked of sockets and pipes would end the process: a filter of the program's. */
void gt_channels_forbid(void);

#endif
