/*
 * Maps its own executable below libc, as far away as its zeros are long. Prints whether that
 * worked.
 */
#include "../../prog/program.h"
static volatile char zeros[64 << 20];
int main(void)
{
    struct stat st;
    int fd = open("/proc/self/exe", O_RDONLY);
    fstat(fd, &st);
    zeros[1] = 1;
    char *libc = (char *)(void *)pause,
         *file = mmap(libc - sizeof zeros / 2, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    printf("%d\n", file < libc && libc - file < (long)sizeof zeros);
    fflush(stdout);
    return pause();
}
