/* Reads from a process's loaded files what an attach needs. */
#pragma once

#include "stub.h"

#include "scripts/tool/stacks/loaded.h"

/*
 * Sets the addresses of the libc functions that the stub calls. Ends the program with a message if
 * the process has no glibc of 2.34 or later, or is built with a sanitizer.
 */
void gt_attach_functions(const struct gt_still *still, const struct gt_loaded *loaded, size_t n,
                         struct gt_stub_constants *functions);

/* Whether the executable, loaded[0], exports a malloc, which libraries call, too. */
bool gt_attach_has_own_malloc(const struct gt_loaded *loaded);

/*
 * An address with `size` free bytes: the rest of the last page of code of a module that is never
 * unloaded. No thread executes or reads what is there. 0: there is no such room.
 */
uint64_t gt_attach_room(const struct gt_still *still, const struct gt_loaded *loaded, size_t n,
                        size_t size);
