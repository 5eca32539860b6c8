/* An allocator that reads a file when it is first called, as jemalloc does. */
#define BEGIN begin
static void begin(void);
#include "../../prog/program.h"
#include "own_malloc.h"

size_t malloc_usable_size(void *p)
{
    return p ? ((size_t *)p)[-2] : 0;
}
static void begin(void)
{
    static int state;
    if (state == 1)
        abort(); /* jemalloc would wait for itself */
    if (state++ == 0)
        close(open("/proc/self/stat", O_RDONLY));
    state = 2;
}
__attribute__((constructor)) static void at_start(void)
{
    if (!used)
        begin();
}
