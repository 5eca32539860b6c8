/*
 * The stub: code that a borrowed thread executes instead of the system call that it waits in. The
 * borrowed thread makes a new thread, and goes back to its call. The new thread loads the library.
 *
 * The borrowed thread needs no help to go back, so the attaching command may die at any moment. All
 * that the thread has to restore stands behind the code, and the thread makes its call anew, as the
 * kernel would. It writes nothing to its own stack, and changes no vector register. It sleeps in no
 * call that the kernel may have to restart, as an interrupted sleep has to go on where it was. One
 * thing differs: a signal in these microseconds does not end the call, as a signal just before a
 * call does not. So the command, as long as it lives, puts the thread back itself.
 *
 * The new thread waits some seconds for `go`, and else ends and leaves nothing behind. On Linux 5.9
 * and later it shares no descriptors with the program, which may close all descriptors it finds
 * while the library is being loaded.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

/* Data behind the code, which is only read: addresses, and the state that the thread returns to. */
struct gt_stub_constants {
    uint64_t errno_location, pthread_create, pthread_detach, dlopen, dlsym, dlerror;
    uint64_t mask; /* the thread's signal mask */
    struct user_regs_struct registers;
};

/* Pages that the borrowed thread maps, for both threads. They start as zeros. */
enum { GT_STUB_TEXT = 512, GT_STUB_SETTINGS = 16384 };
struct gt_stub_pages {
    uint64_t thread;
    int32_t not_made; /* what pthread_create returned */
    uint32_t go;      /* set by the command: path and settings are written */
    uint32_t done;    /* 1: `result` is set (GT_STUB_RESULT); 2: `text` is the loader's error */
    int32_t result;
    uint32_t seen; /* set by the command: the pages are not needed any more */
    char path[PATH_MAX], settings[GT_STUB_SETTINGS], text[GT_STUB_TEXT];
};
enum { GT_STUB_RESULT = 1, GT_STUB_NOT_LOADED };

/* Offset and size in these pages of the library's picture (preload/shared/picture.h). */
enum { GT_STUB_PICTURE = 0x20000, GT_STUB_PICTURE_BYTES = 0x200000 };

/* How many seconds the new thread waits for `go`, and as long for `seen`. */
enum { GT_STUB_PATIENCE_S = 3 };

/* The code; NULL: this architecture or processor has none. *size includes the constants. */
const void *gt_stub_code(size_t *size);

/* Offsets in the code of the constants, and of the instruction after its last system call. */
extern const size_t gt_stub_constants_at, gt_stub_last;

/* The address of the mapped pages, from the thread's registers then; 0: mapping failed. */
uint64_t gt_stub_pages_of(const struct user_regs_struct *r);

/* The registers to begin the code with, of a thread that is stopped in a call. */
struct user_regs_struct gt_stub_entry(const struct user_regs_struct *in_call, uint64_t code);

/* The registers with which the thread makes its interrupted call anew. */
struct user_regs_struct gt_stub_again(const struct user_regs_struct *in_call);
