/*
 * The real functions behind our hooks: those that the program would call without us. This header
 * also includes the headers that declare them.
 *
 * gt_real.<name> may be called at any time, also before our constructor: until it is resolved, it
 * points to a resolver. In a stack, a hook appears as its number (enum gt_hook): see capture.h.
 */
#pragma once

#include "elf_bind.h"
#include "undeclared.h"

#include "encoder/base/arch/arch.h"
#include "preload/shared/leaves.h"

#include <aio.h>
#include <dirent.h>
#include <dlfcn.h>
#include <err.h>
#include <errno.h>
#include <fts.h>
#include <grp.h>
#include <mqueue.h>
#include <netdb.h>
#include <malloc.h>
#include <pwd.h>
#include <sched.h>
#include <shadow.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <syslog.h>
#include <termios.h>
#include <threads.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <wordexp.h>

/* Programs call deprecated functions, too, such as readdir_r. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

struct gt_real {
#define GT_HOOK(name, result, parameters, arguments, version) __typeof__(&name) name;
#include "preload/tables/hooks.def"
};
extern struct gt_real gt_real;

/*
 * libc's own functions, for what the library does for itself: the real ones may be another
 * preload's. May be called at any time, as gt_real.
 */
#define GT_LIBCS                \
    GT_LIBC(pthread_create)     \
    GT_LIBC(pthread_key_create) \
    GT_LIBC(pthread_sigmask)    \
    GT_LIBC(sigaction)          \
    GT_LIBC(sigaltstack)
extern struct gt_libc {
#define GT_LIBC(name) __typeof__(&name) name;
    GT_LIBCS
#undef GT_LIBC
} gt_libc;

#ifdef GT_ARCH_COND_OLD_VERSION
/* Condition variables in the ABI before glibc 2.3.2; NULL before gt_real_resolve. */
extern struct gt_real_old {
    __typeof__(&pthread_cond_wait) pthread_cond_wait;
    __typeof__(&pthread_cond_timedwait) pthread_cond_timedwait;
    __typeof__(&pthread_cond_signal) pthread_cond_signal, pthread_cond_broadcast;
} gt_real_old;
#endif

/*
 * Resolves the functions of gt_real, since glibc 2.34 only those that cannot be looked up when they
 * are first called. Called by the constructor, and by any hook that runs earlier.
 */
void gt_real_resolve(void);
bool gt_real_is_resolved(void);

/*
 * The next definition after ours, as dlsym(RTLD_NEXT) would find it; NULL: none. Unlike dlsym, it
 * allocates nothing if there is none: the caller may be the allocator while it initializes.
 */
void *gt_real_next(const char *name);

/*
 * Clears dlerror after look-ups of ours that may have failed, so that the program does not see
 * their errors. We must not call dlerror for that: it translates its text under a lock of libc's
 * locale, which the program may hold if it called us through malloc.
 */
void gt_real_clear_dlerror(void);

/*
 * Lists for each hook the function of libc that it must replace, if the library was loaded late.
 * heap: includes the malloc family. Returns their number. Called before any of them is bound.
 * GT_BINDINGS_MAX also leaves room for gt_foreign_bindings.
 */
enum { GT_BINDINGS_MAX = 768 };
int gt_real_bindings(struct gt_elf_binding out[GT_BINDINGS_MAX], bool heap);

/* gt_real_around: the hook whose real function in libc contains pc; GT_HOOK_NONE: none. Needs
 * gt_real_find_code, which the constructor calls. */
void gt_real_find_code(void);
enum gt_hook gt_real_around(uintptr_t pc);

/* GT_KEEP_ERRNO restores errno at the end of the block. */
static inline void gt_errno_restore(const int *saved)
{
    errno = *saved;
}
#define GT_KEEP_ERRNO __attribute__((cleanup(gt_errno_restore))) const int gt_saved = errno

/* Marks a function as interposed: visible to the program. */
#define GT_EXPORT __attribute__((visibility("default")))
