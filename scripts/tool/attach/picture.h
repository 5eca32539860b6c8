/* What the library is told of the threads that it comes to: preload/picture.h. */
#ifndef GT_ATTACH_PICTURE_H
#define GT_ATTACH_PICTURE_H

#include "scripts/tool/stacks/still.h"

#include "preload/picture.h"

/* Of so many threads as fit into so many bytes. To be freed. Needs their stacks and waits. */
struct gt_picture *gt_attach_picture(const struct gt_still *still, size_t room, size_t *size);

#endif
