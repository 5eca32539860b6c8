/*
 * Names of code that the process made at run time, from its jitdump or perf map. The files are
 * found at the paths that the process sees. The number in them is the process id in its own PID
 * namespace.
 */
#include "still.h"

#include "scripts/tool/alone.h"

#include "encoder/base/clock.h"
#include "symbolize/made/jitdump.h"
#include "symbolize/made/perf_map.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static struct {
    struct gt_made_functions code;
    uint64_t now_ns;
} made;

/* Finds the jitdump's path as we see it. False: there is none. */
static bool find_dump(pid_t pid, uint32_t own, char *path, size_t size)
{
    char maps[48];
    snprintf(maps, sizeof maps, "/proc/%d/maps", pid);
    int root = snprintf(path, size, "/proc/%d/root", pid);
    return gt_jitdump_find(maps, own, path + root, size - (size_t)root);
}

void gt_made_read(pid_t pid)
{
    static struct gt_perf_map map;
    static struct gt_jitdump dump;
    char path[PATH_MAX + 48];
    uint32_t own = (uint32_t)gt_status_of(pid, "NStgid:");
    uid_t owner = (uid_t)gt_status_of(pid, "Uid:");
    bool known;
    made.now_ns = gt_clock_monotonic_raw();
    if (find_dump(pid, own, path, sizeof path)) {
        known = gt_jitdump_read(&dump, path, owner, own, &made.code, made.now_ns);
    } else {
        snprintf(path, sizeof path, "/proc/%d/root/tmp/perf-%u.map", pid, own);
        known = gt_perf_map_read(&map, path, owner, &made.code, made.now_ns);
    }
    if (!known)
        gt_made_clear(&made.code);
}

bool gt_made_name(uint64_t pc, struct gt_sym_frame *frame)
{
    return gt_made_find(&made.code, pc, made.now_ns, made.now_ns, frame);
}
