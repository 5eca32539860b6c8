/*
 * What a place in memory is called in all processes that share it: by the file that is mapped
 * there, which for memory without a name is one of the kernel's. Drain side only.
 */
#ifndef GT_MAPPINGS_H
#define GT_MAPPINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The name, see GT_SHARED; false: nothing is mapped there for others to see, or it is not known. */
bool gt_mappings_name(uint64_t address, char *name, size_t size);

/* From here on what was known may be over: a generation ends. */
void gt_mappings_forget(void);

#endif
