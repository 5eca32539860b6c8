/*
 * Files are mapped, and somebody may make one shorter while it is read: touching what is gone then,
 * or what the disk cannot give, is a SIGBUS. That ends the command as any other fault of a file
 * does: with a message that names it, nothing half written, and GT_EXIT_FAILED.
 */
#ifndef GT_SHRUNK_H
#define GT_SHRUNK_H

/* From now on; programs that we execute do not have it. */
void gt_shrunk_watch(void);

#endif
