/*
 * `gotrace attach PID`: the library in a program that was started without it.
 *
 * The command (scripts/tool/attach/) has a thread of its own made there, named GT_CONTROL_THREAD,
 * which loads the library and calls gotrace_attached, the library's one entry for that. Threads are
 * followed from then on, mute; our own thread is there, and takes all other commands (control.h).
 *
 * Then the program's calls are bound to the hooks: in each module's relocations, and in libc's
 * symbol table, where the loader finds what it binds later. Both are put back by a detach; what is
 * in a hook then comes out of it by itself, for the code stays.
 */
#ifndef GT_ATTACH_H
#define GT_ATTACH_H

#include <stdbool.h>

/* Whether the caller is the thread that loads us for that. In the constructor. */
bool gt_attach_is_under_way(void);

/*
 * After a detach, the calls again; path: the output's pattern from here on, NULL: as before. 0 or
 * -EOPNOTSUPP: the program was started with the library; -EALREADY: it is attached; -EACCES: pages
 * could not be written. Our thread, which is not recording.
 */
int gt_attach_again(const char *path);

/* The reverse; 0, -EOPNOTSUPP, or -EALREADY: that was done before. */
int gt_attach_undo(void);

/* Whether no call comes to us for now. */
bool gt_attach_is_undone(void);

/*
 * A child that was forked then: it has the library, which knows nothing of it, and can be attached
 * to like any program.
 */
bool gt_attach_is_free(void);
void gt_attach_after_fork(void);

#endif
