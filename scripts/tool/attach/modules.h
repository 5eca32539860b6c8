/* What an attach needs of the files that a process has loaded. */
#ifndef GT_ATTACH_MODULES_H
#define GT_ATTACH_MODULES_H

#include "stub.h"

#include "scripts/tool/stacks/loaded.h"

/* The functions of its libc that the stub calls. Ends with a message when the process has none. */
void gt_attach_functions(const struct gt_still *still, const struct gt_loaded *loaded, size_t n,
                         struct gt_stub_constants *functions);

/* Whether the executable, loaded[0], has a malloc that the others call, too. */
bool gt_attach_has_own_malloc(const struct gt_loaded *loaded);

/*
 * An address behind the code of a module that is never unloaded, up to the end of a page: nobody
 * executes or reads what is there. 0: there is not so much room.
 */
uint64_t gt_attach_room(const struct gt_still *still, const struct gt_loaded *loaded, size_t n,
                        size_t size);

/* The last part of a module's path. */
const char *gt_attach_base(const char *path);

#endif
