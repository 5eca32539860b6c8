/*
 * Commands map the files they read. If another process truncates a file meanwhile, or the disk
 * fails, touching a lost page is a SIGBUS. The signal then ends the command as other faults of a
 * file do: with a message that names the file, nothing half written, and GT_EXIT_FAILED.
 */
#pragma once

/* Catches SIGBUS from now on; programs that we execute do not inherit that. */
void gt_shrunk_watch(void);
