/*
 * Writes a file anew, which gets its name only when it is complete. One file at a time. If this
 * process ends early, by `exit` or a signal, no part of the file stays.
 */
#pragma once

#include <stdio.h>

/* The usual name of what is made of a trace: "t.out" and ".svg" give "t.svg". Valid for one call.
 */
const char *gt_replacement_name(const char *trace, const char *extension);

/* Why the file may not be written, as the end of a sentence; NULL: it may. */
const char *gt_replacement_refusal(const char *path);

/*
 * Begins a new file, or the replacement of a regular file. Never replaces a device, nor the target
 * of a symbolic link, as another user may have put that link there. A failure ends the program with
 * a message.
 */
FILE *gt_replacement_begin(const char *path);

/* The file's name until it is finished. This process removes an unfinished file when it ends. */
const char *gt_replacement_temporary(void);

/* The caller makes a second file, named as the temporary one plus suffix; it is renamed with it. */
void gt_replacement_beside(const char *suffix);

/* Gives the file its name, and the permissions of the file `like`. */
void gt_replacement_finish(const char *like);

/* Removes the unfinished file. May be called in a signal handler. */
void gt_replacement_discard(void);
