/*
 * Names for places in shared memory, the same in all processes that share it. The name is built
 * from the mapped file; the kernel has such a file for anonymous shared memory, too. Drain side
 * only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes the name, see GT_SHARED. false: no shared mapping is known at the address. */
bool gt_mappings_name(uint64_t address, char *name, size_t size);

/* Forgets the known mappings, which may be gone. Called at the end of a generation. */
void gt_mappings_forget(void);
