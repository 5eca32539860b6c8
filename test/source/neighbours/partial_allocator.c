/* malloc and free, and nothing else of an allocator. */
#include "../../prog/program.h"

/* Each block begins a page, behind one that cannot be read; whatever else is freed is an error. */
void *malloc(size_t size)
{
    size_t pages = (size + 4095) / 4096 * 4096 + 8192;
    char *p = mmap(NULL, pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    mprotect(p, 4096, PROT_NONE);
    return p + 4096;
}

void free(void *p)
{
    if ((uintptr_t)p % 4096)
        abort();
    if (p)
        mprotect(p, 4096, PROT_READ);
}
