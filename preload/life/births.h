/*
 * When a thread gets its struct gt_thread, how it begins and ends in the trace, and how the library
 * notices its end.
 */
#pragma once

#include "preload/thread/thread.h"

/*
 * A struct for a thread that is about to be made, which counts as alive. NULL: no memory.
 * gt_thread_drop gives the struct back when the thread could not be made.
 */
struct gt_thread *gt_thread_new(void);
void gt_thread_drop(struct gt_thread *t);

/* Called first by a new thread, whose maker has made t. */
void gt_thread_begin(struct gt_thread *t);

/* Names t's goroutine. Called by t's thread, inside the guard. */
void gt_thread_label(struct gt_thread *t, const char *name);

/*
 * Makes the calling thread appear in the trace, whose creation was not seen. Returns it inside the
 * guard; NULL: no memory. gt_self is gt_nobody before.
 */
struct gt_thread *gt_thread_appear(void);

/*
 * Makes a thread of the program appear in the trace, as running, before it has called a hook. For
 * met.c. label: the thread's own name, or NULL. From then on the caller writes for that thread.
 * NULL: no memory.
 */
struct gt_string;
struct gt_thread *gt_thread_meet(uint32_t tid, pthread_t self, struct gt_stack *routine,
                                 struct gt_string *label);

/*
 * gt_thread_become makes the calling thread t, inside the guard. Afterwards either gt_thread_became
 * lets the thread write for itself, or gt_thread_forget_self makes it unknown again.
 */
void gt_thread_become(struct gt_thread *t);
void gt_thread_became(struct gt_thread *t);
void gt_thread_forget_self(void);

/* Writes the end of t's thread, which ended without our seeing it. */
void gt_thread_gone(struct gt_thread *t);

/*
 * The struct gt_thread of the calling thread, when it runs on another stack than t was last seen
 * on. The stack may be a signal stack or a coroutine's. Or the caller is not t's thread at all:
 * clone(2) without CLONE_SETTLS makes a thread that has its parent's thread-local variables. NULL
 * when the thread cannot be traced.
 */
struct gt_thread *gt_thread_elsewhere(struct gt_thread *t);

/* Makes the calling thread the main one: in the constructor, and in a forked child before it
 * records. */
void gt_thread_main(void);

/* Writes the beginning of the main thread, once recording has started. */
void gt_thread_main_begin(void);

/*
 * Ends the role of the main thread for a caller that is no thread of the program and only stood in
 * for it. The count of live threads stays one too high from here on: it never reaches zero.
 */
void gt_thread_main_leave(void);

/* Whether there are other threads already, made by constructors of other libraries. */
bool gt_thread_others(void);

/* Ends the calling thread in the trace, before it ends by the bare system call, which libc does not
 * see. */
void gt_thread_exit(void);

/* Called in a forked child, by its only thread. */
void gt_thread_after_fork(void);

/* Creates the key whose destructor notices the end of a thread. Called once. */
void gt_thread_init(void);

/* Set by keys.c: the program has made a key with a destructor, so its code may run when a thread
 * ends. */
extern _Atomic bool gt_keys_have_destructors;

/*
 * Frees our key for the program, which found no other key left; false: there is nothing to free.
 * From here on the end of a new thread is seen before the destructors of the program's keys run;
 * the end of threads that had our key is not seen.
 */
bool gt_thread_give_key(void);
