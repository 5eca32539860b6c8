/* Becomes cat when a byte comes. */
#include "naps.h"
int main(void)
{
    read(0, &c, 1);
    return execlp("cat", "cat", NULL);
}
