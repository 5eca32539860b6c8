/*
 * Files that describe code made at run time: the first byte says which kind, the second how much of
 * the rest is there at first. Addresses in it and around them are asked for each time.
 */
#include "symbolize/made/jitdump.h"
#include "symbolize/made/perf_map.h"
#include "symbolize/symbolize.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PID = 1 };

static char path[] = "/tmp/gotrace-fuzz-XXXXXX";
static int fd;

static void remove_file(void)
{
    unlink(path);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    fd = mkstemp(path);
    if (fd < 0)
        abort();
    atexit(remove_file);
    return 0;
}

static void ask(struct gt_made_functions *made, const uint8_t *data, size_t size)
{
    struct gt_sym_frame frame;
    for (uint64_t pc = 0; pc < 0x2000; pc += 0xfd) {
        if (gt_made_find(made, pc, pc / 16, pc / 8, &frame) &&
            (!*frame.func || strlen(frame.func) > 4096 || strlen(frame.file) > 4096))
            abort();
    }
    for (size_t i = 0; i + 8 <= size; i += 8) {
        uint64_t pc;
        memcpy(&pc, data + i, sizeof pc);
        gt_made_find(made, pc, 0, UINT64_MAX, &frame);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct gt_made_functions made;
    struct gt_perf_map map = {.overlong = false};
    struct gt_jitdump dump = {.damaged = false};
    if (size < 2)
        return 0;
    size_t all = size - 2, first = data[1] * all / 255;
    for (size_t n = first;; n = all) {
        if (ftruncate(fd, 0) != 0 || pwrite(fd, data + 2, n, 0) != (ssize_t)n)
            abort();
        if (data[0] & 1)
            gt_jitdump_read(&dump, path, geteuid(), PID, &made, 1000);
        else
            gt_perf_map_read(&map, path, geteuid(), &made, 1000);
        ask(&made, data + 2, n);
        if (n == all)
            break;
    }
    gt_made_clear(&made);
    return 0;
}
