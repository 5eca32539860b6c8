/* The state of a process's threads, for the library attached to it: preload/shared/picture.h. */
#pragma once

#include "scripts/tool/stacks/still.h"

#include "preload/shared/picture.h"

/* A picture of the threads that fit into `room` bytes. The caller frees it. Needs the threads'
 * stacks and waits. */
struct gt_picture *gt_attach_picture(const struct gt_still *still, size_t room, size_t *size);
