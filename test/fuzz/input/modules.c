/*
 * ELF and DWARF: a library is loaded, then its file is replaced by the input, and all its addresses
 * are asked for. The file as the compiler made it is the seed: FUZZ_SEED says where to put a copy.
 */
#include "symbolize/elf/modules.h"
#include "symbolize/symbolize.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char path[] = "/tmp/gotrace-fuzz-XXXXXX", library[64];
static uint64_t lo, hi;

static void remove_all(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", path);
    (void)!system(command);
}

static void write_file(const uint8_t *data, size_t size)
{
    unlink(library);
    int fd = open(library, O_WRONLY | O_CREAT | O_TRUNC, 0700);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size || close(fd) != 0)
        abort();
}

/* No build ID: a file with another one would not be looked at. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    char command[512];
    (void)argc;
    (void)argv;
    if (!mkdtemp(path))
        abort();
    atexit(remove_all);
    snprintf(library, sizeof library, "%s/lib.so", path);
    snprintf(command, sizeof command,
             "printf 'static inline __attribute__((always_inline)) int in(int x){return x*7;}"
             "int f(int x){return in(x)+1;}static int g(int x){return f(x);}int h(int x)"
             "{return g(x)+in(x);}' | gcc -x c -g -O1 -shared -fPIC -Wl,--build-id=none - -o %s"
             " && if [ \"$FUZZ_SEED\" ]; then cp %s \"$FUZZ_SEED\"; fi",
             library, library);
    if (system(command) != 0)
        abort();
    void *lib = dlopen(library, RTLD_NOW);
    uint64_t epoch = gt_modules_refresh();
    const struct gt_module *m = gt_modules_find(epoch, (uint64_t)(uintptr_t)dlsym(lib, "f"));
    lo = m->lo;
    hi = m->hi;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gt_sym_frame frames[32];
    struct gt_symbolizer *s = gt_symbolizer_new();
    write_file(data, size);
    for (uint64_t pc = lo; pc < hi; pc += 173) {
        int n = gt_symbolize(s, gt_modules_epoch(), pc, pc & 1, frames, 32);
        if (n < 1 || n > 32)
            abort();
        for (int i = 0; i < n; i++)
            if (strlen(frames[i].func) + strlen(frames[i].file) > 1 << 20)
                abort();
    }
    gt_symbolizer_free(s);
    return 0;
}
