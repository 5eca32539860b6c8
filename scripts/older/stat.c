/* See shims.c. Apart from it: the library has hooks of these names. */
struct stat;

/* Since glibc 2.33 functions; before, inline ones that called these. Both kinds of glibc have them.
 */
int __xstat(int version, const char *path, struct stat *st);
int __lxstat(int version, const char *path, struct stat *st);
int __fxstat(int version, int fd, struct stat *st);
int __fxstatat(int version, int dir, const char *path, struct stat *st, int flags);

/* _STAT_VER: the layout that the kernel has, too. */
#if defined __x86_64__
enum { VERSION = 1 };
#else
enum { VERSION = 0 };
#endif

int stat(const char *path, struct stat *st)
{
    return __xstat(VERSION, path, st);
}

int lstat(const char *path, struct stat *st)
{
    return __lxstat(VERSION, path, st);
}

int fstat(int fd, struct stat *st)
{
    return __fxstat(VERSION, fd, st);
}

int fstatat(int dir, const char *path, struct stat *st, int flags)
{
    return __fxstatat(VERSION, dir, path, st, flags);
}
