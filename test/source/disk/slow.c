/* Preloaded, too: a disk on which each fsync takes 2 ms, whatever disk the machine has. */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int fsync(int fd)
{
    long result = syscall(SYS_fsync, fd);
    syscall(SYS_nanosleep, &(struct timespec){.tv_nsec = 2000000}, NULL); /* is not recorded */
    return (int)result;
}
