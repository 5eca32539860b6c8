/* Names for the stacks of a process that is gone, from the files that it had loaded. */
#pragma once

#include "encoder/file/frames.h"
#include "symbolize/elf/modules.h"

void gt_recovered_module(const struct gt_boxed_module *module);

/* Callbacks for the encoder: see gt_frame_names and held.h. */
int gt_recovered_resolve(const struct gt_stack *s, uint32_t index, struct gt_frame *out, int max);
const char *gt_recovered_lock(uint64_t address, uint32_t epoch, bool shared);
const char *gt_recovered_function(uint64_t address, uint32_t epoch);
