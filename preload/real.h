/*
 * The functions we interpose, as the program would have got them without us.
 *
 * gt_real.<name> may be called at any time, also before our constructor: until resolved, it points
 * at a resolver. In a stack, a hook appears as its number (enum gt_hook): see capture.h. The
 * headers that declare them come along.
 */
#ifndef GT_REAL_H
#define GT_REAL_H

#include "elf_bind.h"
#include "undeclared.h"

#include "encoder/base/arch/arch.h"

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

/* Programs call what is out of date as well: readdir_r. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

enum gt_hook {
    GT_HOOK_NONE,
#define GT_HOOK(name, result, parameters, arguments, version) GT_HOOK_##name,
#include "preload/hooks/hooks.def"
    GT_HOOKS_END,
/* What stands in a stack in place of the hook of syscall(2). */
#define GT_RAW(what, name) GT_RAW_##name,
#define GT_RAW_FUTEX(id, text) GT_RAW_FUTEX_##id,
#include "preload/hooks/raw.def"
/* Functions of other libraries than libc: foreign.h. */
#define GT_OMP(how, result, name, parameters, arguments) GT_OMP_##name,
#define GT_OMP_ASKED(result, name, parameters)
#define GT_OMP_LEAF(id, text) GT_OMP_##id,
#include "preload/hooks/openmp.def"
#define GT_URING(result, name, parameters, arguments) GT_ASYNC_##name,
#define GT_AIO(result, name, parameters, arguments) GT_ASYNC_##name,
#include "preload/hooks/async.def"
#define GT_RESOLVER(result, name, parameters, arguments) GT_RESOLVER_##name,
#include "preload/hooks/resolver.def"
    GT_LEAVES_END,
};

struct gt_real {
#define GT_HOOK(name, result, parameters, arguments, version) __typeof__(&name) name;
#include "preload/hooks/hooks.def"
};
extern struct gt_real gt_real;

#ifdef GT_ARCH_COND_OLD_VERSION
/* Condition variables in the ABI before glibc 2.3.2; NULL before gt_real_resolve. */
extern struct gt_real_old {
    __typeof__(&pthread_cond_wait) pthread_cond_wait;
    __typeof__(&pthread_cond_timedwait) pthread_cond_timedwait;
    __typeof__(&pthread_cond_signal) pthread_cond_signal, pthread_cond_broadcast;
} gt_real_old;
#endif

/* Looks all of them up; the constructor calls it, and so does any hook that comes earlier. */
void gt_real_resolve(void);
bool gt_real_is_resolved(void);

/*
 * What comes after ours, as dlsym(RTLD_NEXT) would find it. NULL: nothing, and unlike dlsym's, this
 * answer allocates nothing: we may have been called by the allocator, which is just beginning.
 */
void *gt_real_next(const char *name);

/*
 * After look-ups that may have failed: the program's dlerror must not tell of them. Ours must not
 * be called: it translates its text under a lock of libc's locale that the program, being here
 * through malloc, may hold.
 */
void gt_real_clear_dlerror(void);

/*
 * For a library that was loaded late: which function of libc's, that the program calls, which hook
 * is to take the place of. Without heap: not the malloc family. How many. Before any is bound. (The
 * most are those of gt_foreign_bindings, too.)
 */
enum { GT_BINDINGS_MAX = 768 };
int gt_real_bindings(struct gt_elf_binding out[GT_BINDINGS_MAX], bool heap);

/* Of which function of libc's that has a hook this is in the code; GT_HOOK_NONE: of none. Needs
 * gt_real_find_code, which is for the constructor. */
void gt_real_find_code(void);
enum gt_hook gt_real_around(uintptr_t pc);

/* Of all leaves. */
const char *gt_real_name(enum gt_hook hook);

/* Of all of these names and their numbers: the same where they are the same. */
uint64_t gt_real_names(void);

/* errno is as now at the end of the block. */
static inline void gt_errno_restore(const int *saved)
{
    errno = *saved;
}
#define GT_KEEP_ERRNO __attribute__((cleanup(gt_errno_restore))) const int gt_saved = errno

/* Marks a function as interposed: visible to the program. */
#define GT_EXPORT __attribute__((visibility("default")))

#endif
