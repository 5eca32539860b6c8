/*
 * Preloaded to the command: the file SHRINKS becomes TO bytes long when it is first read, mapped
 * or measured, as AT says.
 */
#include "../../prog/program.h"
static void shrink(const char *at)
{
    if (strcmp(at, getenv("AT")) == 0 && truncate(getenv("SHRINKS"), atoi(getenv("TO"))) != 0)
        abort();
}
int madvise(void *p, size_t size, int advice)
{
    (void)p, (void)size, (void)advice;
    shrink("mapped");
    return 0;
}
off_t lseek(int fd, off_t to, int whence)
{
    shrink("seek");
    return ((off_t(*)(int, off_t, int))dlsym(RTLD_NEXT, "lseek"))(fd, to, whence);
}
ssize_t pread(int fd, void *to, size_t n, off_t from)
{
    if (n > sizeof(long)) /* not a look at its first bytes */
        shrink("read");
    return ((ssize_t(*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, "pread"))(fd, to, n, from);
}
