/* See jit_names.h. */
#include "jit_names.h"

#include "encoder/base/clock.h"
#include "encoder/base/libc.h"
#include "encoder/base/sparse.h"
#include "encoder/base/strbuf.h"
#include "symbolize/made/gdb_jit.h"
#include "symbolize/made/jitdump.h"
#include "symbolize/made/perf_map.h"

#include <limits.h>
#include <unistd.h>

static struct {
    struct gt_made_functions code;
    struct gt_perf_map map;
    struct gt_jitdump dump;
    char dump_path[PATH_MAX]; /* "": not found */
    bool unsure;              /* the files contain more than has been read */
    struct gt_gdb_jit gdb;
    struct gt_made_functions gdb_code;
    bool gdb_unsure;
    uint64_t begin_ns, end_ns;
    uint32_t missed, next_search; /* times (of gt_made_of_time) with a nameless address */
    bool missing;                 /* no further search in the present time */
} made GT_SPARSE;

/* Whether anything of `made` was set: a forked child's page of it costs a fault. */
static bool used;

static uint32_t own_pid(void)
{
    return (uint32_t)gt_syscall(SYS_getpid);
}

static void read_map(uint64_t now_ns)
{
    char path[48];
    struct gt_strbuf t = gt_strbuf_start(path, sizeof path);
    gt_strbuf_add(&t, "/tmp/perf-");
    gt_strbuf_decimal(&t, own_pid());
    gt_strbuf_add(&t, ".map");
    made.unsure = !gt_perf_map_read(&made.map, path, geteuid(), &made.code, now_ns);
}

static void read_dump(uint64_t now_ns)
{
    made.unsure =
        !gt_jitdump_read(&made.dump, made.dump_path, geteuid(), own_pid(), &made.code, now_ns);
}

/* Reads the known sources. */
static void read_all(void)
{
    uint64_t now_ns = gt_clock_monotonic_raw();
    if (*made.dump_path)
        read_dump(now_ns);
    else
        read_map(now_ns);
    if (made.gdb.descriptor)
        made.gdb_unsure = !gt_gdb_jit_read(&made.gdb, &made.gdb_code, now_ns);
}

void gt_made_of_time(uint64_t begin_ns, uint64_t end_ns, bool read)
{
    used = true;
    made.begin_ns = begin_ns;
    made.end_ns = end_ns;
    made.missing = !read;
    if (read)
        read_all();
}

/* Whether to search for other sources. Most programs with such code have just a map, so the search
 * becomes rarer, down to every 64th time with a nameless address. */
static bool wants_search(void)
{
    enum { OFTEN = 64 };
    if (made.missing || *made.dump_path || made.gdb.descriptor)
        return false;
    made.missing = true;
    if (made.missed++ < made.next_search)
        return false;
    made.next_search += made.missed < OFTEN ? made.missed : OFTEN;
    return true;
}

/* Searches for a jitdump, which replaces the map: it has the same entries, with times. Else for
 * GDB's interface. */
static void search(void)
{
    used = true;
    if (gt_jitdump_find("/proc/self/maps", own_pid(), made.dump_path, sizeof made.dump_path)) {
        if (made.map.file.ino)
            gt_made_clear(&made.code);
        made.map = (struct gt_perf_map){.overlong = false};
    } else if (!gt_gdb_jit_find(&made.gdb)) {
        return;
    }
    read_all();
}

static bool find(uint64_t pc, struct gt_sym_frame *frame)
{
    uint64_t begin = made.begin_ns, end = made.end_ns;
    return (!made.unsure && gt_made_find(&made.code, pc, begin, end, frame)) ||
           (!made.gdb_unsure && gt_made_find(&made.gdb_code, pc, begin, end, frame));
}

bool gt_made_name(uint64_t pc, struct gt_sym_frame *frame)
{
    return find(pc, frame) || (wants_search() && (search(), find(pc, frame)));
}

void gt_made_after_fork(void)
{
    if (!used)
        return;
    gt_made_inherit(&made.code);
    gt_made_inherit(&made.gdb_code);
    made.map = (struct gt_perf_map){.overlong = false};
    made.dump = (struct gt_jitdump){.damaged = false};
    *made.dump_path = 0;
    made.gdb.seen = 0;
}
