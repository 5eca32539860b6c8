/* Mangled names out of symbol tables, demangled with as little stack as the drain thread has. */
#include "symbolize/dwarf/demangle.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void *demangle(void *symbol)
{
    char room[600] = "";
    const char *name = gt_demangle(symbol, room, 500);
    size_t length = strlen(name);
    if (name == room && length >= 500)
        abort();
    char *copy = strdup(name), *callable = gt_thread_callable(copy);
    if (callable < copy || callable > copy + length)
        abort();
    free(copy);
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *symbol = memcpy(calloc(1, size + 1), data, size);
    pthread_t thread;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 1 << 20);
    if (pthread_create(&thread, &attr, demangle, symbol) != 0)
        abort();
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
    free(symbol);
    return 0;
}
