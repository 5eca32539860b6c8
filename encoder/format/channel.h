/*
 * What a trace says of a call on a pipe, socket or eventfd, with GOTRACE_SYSCALLS=all
 * (preload/waits/channels.h). The calling thread writes a log without a task when the call is over.
 * The log has the stream's name, which is the same at both ends, and the bytes that the call moved:
 * "[channel pipe 0:14:4711] read 512". A writer adds how many bytes the stream has room for, if
 * that is known: "wrote 512 of 65536".
 *
 * A poll that found one thing ready leaves the log "[channels] 1 ready".
 */
#pragma once

#include <stdbool.h>
#include <string.h>

#define GT_CHANNEL "channel "
#define GT_CHANNEL_READ "read "
#define GT_CHANNEL_WROTE "wrote "
#define GT_CHANNEL_OF " of " /* the capacity of that pipe */

#define GT_CHANNELS "channels"
#define GT_CHANNELS_ONE_READY "1 ready"

/* Begins the name of an eventfd, which moves a value instead of bytes. */
#define GT_CHANNEL_EVENT "eventfd "

static inline bool gt_channel_is_key(const char *key)
{
    return strncmp(key, GT_CHANNEL, sizeof GT_CHANNEL - 1) == 0 || strcmp(key, GT_CHANNELS) == 0;
}
