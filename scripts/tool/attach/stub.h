/*
 * What a borrowed thread executes, in place of the system call that it waits in: it has a thread
 * made, and goes back by itself. And what that one executes: it loads the library.
 *
 * The borrowed thread needs nobody for that: all that it has to find again stands behind the code,
 * and the call that it was in is made anew by the thread, as the kernel would. It writes nothing to
 * its stack, sleeps in no call that the kernel may have to make again (a sleep has to go on where
 * it was), and changes none of its vector registers. So whoever had it do this may die at any
 * moment. Only a signal that comes in these microseconds would not end the call, as one that comes
 * just before it; which is why the command puts the thread back itself as long as it lives.
 *
 * The new thread waits for GT_STUB_GO for some seconds, or goes away without a trace. Where the
 * kernel has that (5.9), it has no descriptors in common with the program, which may close all it
 * finds while the library is being loaded.
 */
#ifndef GT_STUB_H
#define GT_STUB_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

/* Where the code will be read from, not written to: addresses, and what the thread goes back to. */
struct gt_stub_constants {
    uint64_t errno_location, pthread_create, pthread_detach, dlopen, dlsym, dlerror;
    uint64_t mask; /* of signals */
    struct user_regs_struct registers;
};

/* Pages that the borrowed thread maps, for both threads. Zeros at first. */
enum { GT_STUB_TEXT = 512, GT_STUB_SETTINGS = 16384 };
struct gt_stub_pages {
    uint64_t thread;
    int32_t not_made; /* what pthread_create returned */
    uint32_t go;      /* path and settings stand here */
    uint32_t done;    /* what follows stands here: 1 as a result, 2 as a text of the loader's */
    int32_t result;
    uint32_t seen; /* it is not needed any more */
    char path[PATH_MAX], settings[GT_STUB_SETTINGS], text[GT_STUB_TEXT];
};
enum { GT_STUB_RESULT = 1, GT_STUB_NOT_LOADED };

/* Where in them, far behind that, the library finds its picture (preload/picture.h). */
enum { GT_STUB_PICTURE = 0x20000, GT_STUB_PICTURE_BYTES = 0x200000 };

/* How many seconds the new thread waits for `go`, and as long for `seen`. */
enum { GT_STUB_PATIENCE_S = 3 };

/* NULL: there is none for this architecture, or this processor. *size: with the constants. */
const void *gt_stub_code(size_t *size);

/* Where in the code they stand, and what its last system call is followed by. */
extern const size_t gt_stub_constants_at, gt_stub_last;

/* Where the pages are that the thread has mapped, by its registers then; 0: it could not. */
uint64_t gt_stub_pages_of(const struct user_regs_struct *r);

/* The registers with which the thread, stopped in that call, would begin to execute there. */
struct user_regs_struct gt_stub_entry(const struct user_regs_struct *in_call, uint64_t code);

/* Those with which it would make the call that it is in anew by itself. */
struct user_regs_struct gt_stub_again(const struct user_regs_struct *in_call);

#endif
