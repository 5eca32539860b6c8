/* What glibc 2.31 has not, for programs that are to be built there, too. */
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_restrict_self 446
#endif
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#ifndef SYS_futex_wait
#define SYS_futex_wake 454
#define SYS_futex_wait 455
#define SYS_futex_requeue 456
#endif
#define FUTEX_LOCK_PI2 13 /* as <linux/futex.h> has it */

#if !__GLIBC_PREREQ(2, 34)
#define _Fork fork

static inline int close_range(unsigned first, unsigned last, int flags)
{
    return (int)syscall(436, first, last, flags);
}

static inline void closefrom(int first)
{
    close_range((unsigned)first, ~0u, 0);
}

static inline int execveat(int dir, const char *path, char *const *argv, char *const *envp,
                           int flags)
{
    return (int)syscall(SYS_execveat, dir, path, argv, envp, flags);
}

/* Those that the programs meet. */
static inline const char *name_of_error(int error)
{
    static const struct {
        int error;
        const char *name;
    } names[] = {{0, "0"},           {EINVAL, "EINVAL"},       {ENOMEM, "ENOMEM"},
                 {ENOSYS, "ENOSYS"}, {ENOENT, "ENOENT"},       {EBUSY, "EBUSY"},
                 {EPERM, "EPERM"},   {ETIMEDOUT, "ETIMEDOUT"}, {EAGAIN, "EAGAIN"},
                 {ESRCH, "ESRCH"},   {EFAULT, "EFAULT"},       {EALREADY, "EALREADY"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (names[i].error == error)
            return names[i].name;
    }
    return NULL;
}
#define strerrorname_np name_of_error
#endif
