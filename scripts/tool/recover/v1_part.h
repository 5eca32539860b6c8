/* A v1 file that recovering goes on with. */
#ifndef GT_RECOVER_V1_PART_H
#define GT_RECOVER_V1_PART_H

#include "encoder/read/bytes.h"

/*
 * Tells the encoder what stands there, in whole pages from the file's header on; path: of the file,
 * beside which Go 1.5's line table is. Stacks and strings of the process are known. false: it is
 * damaged.
 */
bool gt_v1_part_go_on(struct gt_bytes part, const char *path);

#endif
