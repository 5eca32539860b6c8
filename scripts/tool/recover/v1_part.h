/* Reads the v1 file that a recovered trace continues. */
#pragma once

#include "encoder/read/bytes.h"

/*
 * Sets the encoder's state from the part, which is whole pages from the file's header on. path: of
 * the file; Go 1.5's line table is beside it. The process's stacks and strings must be known.
 * false: the file is damaged.
 */
bool gt_v1_part_go_on(struct gt_bytes part, const char *path);
