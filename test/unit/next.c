/* Look-ups of many names at once find what dlsym(RTLD_NEXT) finds, or leave it to that. */
#include "check.h"

#include "encoder/base/arch/arch.h"
#include "symbolize/elf/elf_names.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const struct name {
    const char *name, *version;
} names[] = {
#define GT_HOOK(name, result, parameters, arguments, version) {#name, version},
#include "preload/tables/hooks.def"
    {"memcpy", ""},       /* chosen at run time: the symbol is not the function */
    {"environ", ""},      /* no function */
    {"__res_query", ""},  /* since 2.34 of programs that were linked before */
    {"no_such_name", ""}, /* nowhere */
    {"main", ""},         /* only before us */
};
enum { NAMES = sizeof names / sizeof *names };

int main(void)
{
    struct gt_elf_next next;
    int found = 0;
    bool knows_versions = strverscmp(gnu_get_libc_version(), "2.36") >= 0;
    gt_elf_next_begin(&next);
    CHECK(next.n > 0);
    for (int i = 0; i < NAMES; i++) {
        void *fn = gt_elf_next_function(&next, names[i].name);
        found += fn != NULL;
        if (!knows_versions && !*names[i].version) /* gives the oldest version of some */
            CHECK(!fn || dlsym(RTLD_NEXT, names[i].name));
        else if (!*names[i].version)
            CHECK(!fn || fn == dlsym(RTLD_NEXT, names[i].name), "%s", names[i].name);
    }
    CHECK(found > NAMES * 9 / 10);
    CHECK(!gt_elf_next_function(&next, "environ"));
    CHECK(!gt_elf_next_function(&next, "no_such_name"));
    CHECK(!gt_elf_next_function(&next, "main"));
    return 0;
}
