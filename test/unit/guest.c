/*
 * libdw among the program's own libraries: it brings no libdebuginfod along, and whoever looks for
 * the functions that were ours meanwhile finds libc's afterwards.
 */
#include "symbolize/elf/guest.h"

#include "check.h"

#include <dlfcn.h>

static bool is_outside(void)
{
    return false;
}

static void never(void)
{
    CHECK(false, "a call of abort");
}

int main(void)
{
    static const char *const names[] = {"dlopen", "abort", "__assert_fail"};
    void *before[3];
    for (int i = 0; i < 3; i++)
        before[i] = dlsym(RTLD_DEFAULT, names[i]);
    void *lib = gt_guest_load("libdw.so.1", is_outside, never);
    CHECK(lib && dlsym(lib, "dwfl_begin"), "%s", dlerror());
    CHECK(!dlopen("libdebuginfod.so.1", RTLD_LAZY | RTLD_NOLOAD), "libdw has opened it");
    for (int i = 0; i < 3; i++)
        CHECK(dlsym(RTLD_DEFAULT, names[i]) == before[i], "%s is another one", names[i]);
    if (!dlopen("libdebuginfod.so.1", RTLD_LAZY)) {
        printf("there is no libdebuginfod that it could have opened\n");
        return 77;
    }
    return 0;
}
