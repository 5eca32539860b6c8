/*
 * A child of vfork replaces one of its descriptors, then executes another program; its parent
 * writes to that number before and after. Prints the inode of the parent's pipe.
 */
#include "../../prog/program.h"

int main(void)
{
    int first[2], second[2];
    char c = 1;
    struct stat is;
    if (pipe(first) != 0 || pipe(second) != 0 || write(first[1], &c, 1) != 1 ||
        write(second[1], &c, 1) != 1)
        return 1;
    if (vfork() == 0) {
        dup2(first[1], second[1]);
        if (write(second[1], &c, 1) != 1)
            _exit(1);
        execlp("true", "true", (char *)NULL);
    }
    wait(NULL);
    for (int i = 0; i < 5; i++)
        if (write(second[1], &c, 1) != 1)
            return 1;
    fstat(second[1], &is);
    printf("%lu\n", (unsigned long)is.st_ino);
}
