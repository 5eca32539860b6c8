/*
 * `gotrace attach PID`: the library's side, in a program that was started without the library.
 *
 * The command (scripts/tool/attach/) makes a thread in the program, named GT_CONTROL_THREAD. This
 * thread loads the library and calls gotrace_attached, the library's one entry for attaching. From
 * then on threads are followed, mute, and the drain thread takes all other commands (control.h).
 *
 * Then the program's calls are bound to the hooks: in the relocations of each module, and in libc's
 * symbol table, where the loader finds the functions that it binds later. A detach restores both.
 * Threads that are in a hook then leave it as usual, since the code stays loaded.
 */
#pragma once

/*
 * Binds the program's calls to the hooks again after a detach. path: the output pattern from here
 * on; NULL: as before. Called by the drain thread while nothing is recorded. Returns 0, or:
 * - -EOPNOTSUPP: the program was started with the library.
 * - -EALREADY: the program is attached.
 * - -EAGAIN: it is being attached just now.
 * - -EACCES: pages could not be written.
 */
int gt_attach_again(const char *path);

/* Detaches: binds the calls to libc again. 0, -EOPNOTSUPP, -EALREADY: it is detached, or -EAGAIN.
 */
int gt_attach_undo(void);
