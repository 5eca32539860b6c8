/*
 * What a trace says of the pipe, socket or eventfd that a call was about, with GOTRACE_SYSCALLS=all
 * (preload/hooks/channels.h): a log without a task, when the call is over, on the row of its
 * thread, which says what the stream is called at both its ends, and how many bytes the call moved:
 * "[channel pipe 0:14:4711] read 512", and of who writes, where that is known, how many it has room
 * for: "wrote 512 of 65536". And of a poll for which one thing was ready:
 * "[channels] 1 ready".
 */
#ifndef GT_CHANNEL_H
#define GT_CHANNEL_H

#define GT_CHANNEL "channel "
#define GT_CHANNEL_READ "read "
#define GT_CHANNEL_WROTE "wrote "
#define GT_CHANNEL_OF " of " /* so many bytes fit into that pipe */

#define GT_CHANNELS "channels"
#define GT_CHANNELS_ONE_READY "1 ready"

/* The beginning of the name of one that has a value instead. */
#define GT_CHANNEL_EVENT "eventfd "

#endif
