/*
 * `gotrace recover`: writes the trace of a process that was killed. The trace file has whole
 * generations. The events after them are in the black box, and take the way that they would have
 * taken in the process: through the tables and writers of encoder/.
 */
#include "recover.h"

#include "boxed.h"
#include "cause.h"
#include "clean.h"
#include "cpu_state.h"
#include "kept.h"
#include "box_names.h"
#include "v1_part.h"

#include "encoder/base/path.h"
#include "scripts/tool/copy.h"
#include "scripts/tool/help.h"
#include "scripts/tool/tool.h"
#include "scripts/tool/written.h"

#include "encoder/file/frames.h"
#include "encoder/thread/held.h"
#include "encoder/cpu/merge.h"
#include "encoder/file/output.h"
#include "encoder/read/batches.h"
#include "encoder/read/need.h"
#include "encoder/read/trace.h"
#include "encoder/file/v1/v1.h"
#include "encoder/file/v2.h"
#include "encoder/thread/writer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static void help(void)
{
    puts("usage: gotrace recover BOX [TRACE] -o FILE\n"
         "       gotrace recover --clean=DIRECTORY\n"
         "\n"
         "Writes the trace of a program that was recorded with --live and killed:\n"
         "its file or flight recorder, and what was in memory only. BOX is the file that\n"
         "it left, t.out.live. TRACE is needed if it is not beside BOX any more. Other\n"
         "commands accept a BOX instead of a trace, too.\n"
         "\n"
         "  -o, --output=FILE      the whole trace\n"
         "      --clean=DIRECTORY  for each BOX there whose process is gone: complete the\n"
         "                         trace beside it, and remove the BOX\n"
         "  -h, --help             print this");
    exit(0);
}

/* Ends the program if the box's process still runs: it may write there. */
static void check_is_dead(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        gt_fail(GT_EXIT_FAILED, "%s: its process runs", path);
    if (fd >= 0)
        close(fd);
}

/* The trace's file -------------------------------------------------------------------------- */

static bool is_the_file(const char *path, const struct gt_live_whole *whole)
{
    struct stat st;
    return stat(path, &st) == 0 && st.st_dev == whole->device && st.st_ino == whole->inode &&
           (uint64_t)st.st_size >= whole->bytes;
}

/* The path of the trace beside the box; NULL: the trace is not there. */
static const char *trace_beside(const struct gt_boxed *b, const struct gt_live_whole *whole)
{
    static char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%.*s", gt_boxed_trace_length(b->path), b->path);
    return is_the_file(path, whole) ? path : NULL;
}

/* The trace at its old path, or moved away there for the next one, or beside the box; or NULL. */
static const char *find_trace(const struct gt_boxed *b, const struct gt_live_whole *whole)
{
    static char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%.*s", PATH_MAX - 1, whole->path);
    if (is_the_file(path, whole))
        return path;
    snprintf(path, sizeof path, "%.*s.%llu", PATH_MAX - 1, whole->path,
             (unsigned long long)b->live->pid);
    return is_the_file(path, whole) ? path : trace_beside(b, whole);
}

/* Goes on with a v2 file; false: the part does not end with a whole generation. */
static bool go_on_v2(struct gt_bytes part)
{
    struct gt_bytes last = part;
    const uint8_t *end = part.p += GT_HEADER_BYTES;
    while (part.p < part.end && (end = gt_generation_end(part, gt_format))) {
        last.p = part.p;
        part.p = end;
    }
    if (part.p == part.end)
        gt_recovered_cpus_of(last);
    gt_v2_go_on();
    return part.p == part.end;
}

/* Copies the whole part of the file, at least a header, and goes on. false: not the box's trace. */
static bool go_on(const struct gt_boxed *b, const struct gt_bytes *file, const char *path,
                  uint64_t bytes)
{
    if (gt_bytes_left(file) < bytes || bytes <= GT_HEADER_BYTES ||
        gt_format_of_header(file->p) != b->format)
        return false;
    struct gt_bytes part = {file->p, file->p + bytes, false};
    gt_output_write(part.p, bytes);
    return b->format->v1 ? gt_v1_part_go_on(part, path) : go_on_v2(part);
}

static void begin_file(const struct gt_boxed *b)
{
    if (b->format->v1)
        gt_v1_open();
    else
        gt_v2_open();
}

/* Copies the whole part of the trace's file. false: the file is gone. */
static bool copy_trace(const struct gt_boxed *b, const char *path)
{
    const struct gt_live_whole *whole = gt_boxed_whole(b);
    struct gt_bytes file = {.p = NULL};
    if (!whole->bytes) {
        begin_file(b);
        return true;
    }
    path = path ? path : find_trace(b, whole);
    if (!path) {
        gt_say("%.*s is not there any more, or another one: only what was in memory is recovered",
               PATH_MAX - 1, whole->path);
        begin_file(b);
        return false;
    }
    const char *why = gt_trace_map(&file, path, GT_HEADER_BYTES);
    if (why || !file.p)
        gt_fail(GT_EXIT_FAILED, "%s: %s", path, why ? why : "no trace");
    if (!go_on(b, &file, path, whole->bytes))
        gt_fail(GT_EXIT_FAILED, "%s: not the trace that %s goes on with", path, b->path);
    return true;
}

/* The events in memory ----------------------------------------------------------------------- */

static const struct gt_live_begun *beginning_of(const struct gt_boxed *b, uint32_t gen)
{
    const struct gt_live_begun *begun = b->live->begun;
    return &begun[begun[gen & 1].gen == gen ? gen & 1 : !(gen & 1)];
}

static void write_kept(const struct gt_kept *k)
{
    gt_recovered_cpus_of_kept(k);
    if (gt_format->v1)
        gt_v1_write(k->gen, k, k->early, k->plain, 0);
    else
        gt_v2_write_kept(k);
}

static bool write_v1(uint32_t gen, const struct gt_boxed_generation *g,
                     const struct gt_live_begun *begun, bool whole)
{
    atomic_store(&gt_gen.from, begun->from);
    bool written = gt_v1_write(gen, NULL, g->packed, g->plain, UINT64_MAX) == 0;
    if (!written)
        gt_say("damaged: there are events that cannot be; what comes after that is left out");
    if (whole || !written)
        gt_v1_end(0, written && !gt_merge_mended());
    return written && !gt_merge_mended();
}

/* whole: the trace is complete with this generation. false: not all of it could be written. */
static bool write_unfinished(uint32_t gen, struct gt_boxed_generation *g,
                             const struct gt_live_begun *begun, bool whole)
{
    if (!gt_recovered_cpus_complete(gen, &g->packed, &g->plain))
        gt_fail(GT_EXIT_FAILED, "damaged: there are events that cannot be");
    if (gt_format->v1)
        return write_v1(gen, g, begun, whole);
    gt_v2_begin(g->packed);
    gt_v2_write(g->plain);
    gt_v2_end(gen, &begun->snapshot, UINT64_MAX, whole && !gt_merge_mended());
    return !gt_merge_mended();
}

/*
 * Writes the generations in the box: those that the flight recorder kept, and up to two unfinished
 * ones. A process may be killed while its threads move from one generation to the next. Readers
 * refuse a trace in which needed events are missing. complete: all earlier events are there. If
 * nothing else is lost, the last generation says that the trace is complete.
 */
static void write_generations(const struct gt_boxed *b, struct gt_boxed_sum *sum, bool complete)
{
    enum { AT_ONCE = 2 };
    struct gt_boxed_generation found[AT_ONCE];
    bool there[AT_ONCE] = {false};
    uint32_t kept = gt_kept_recover(b, write_kept, sum), whole = gt_boxed_whole(b)->gen;
    uint32_t first = (kept > whole ? kept : whole) + 1;
    for (uint32_t i = 0; i < AT_ONCE && !b->box->buffers_outside; i++)
        there[i] = gt_boxed_generation(b, first + i, &found[i], sum);
    complete &= !sum->torn && !b->box->outside;
    for (uint32_t i = 0; i < AT_ONCE; i++) {
        bool last = i + 1 == AT_ONCE || !there[i + 1];
        if (there[i])
            complete &= write_unfinished(first + i, &found[i], beginning_of(b, first + i),
                                         last && complete);
    }
}

/* Our clock counts as the process's did. */
static void set_clock(const struct gt_boxed *b)
{
    gt_clock_use_ns();
    gt_clock.hz = b->live->hz;
}

/* The process has not told its CPU's model: it is the CPU's here, if that is the same machine. */
static void use_setup(const struct gt_live *live)
{
    char setup[GT_SETUP_MAX];
    snprintf(setup, sizeof setup, "%.*s", (int)sizeof setup - 1, live->setup);
    if (*setup && gt_cause_is_of_this_boot(&live->origin))
        gt_setup_add_cpu(setup);
    gt_setup_use(setup);
}

static void begin(struct gt_boxed *b, const char *output)
{
    static const struct gt_frame_names names = {.resolve = gt_recovered_resolve};
    static const struct gt_held_texts texts = {.lock = gt_recovered_lock,
                                               .function = gt_recovered_function};
    gt_format = b->format;
    set_clock(b);
    gt_frames_init(&names, false);
    gt_held_init(&texts);
    gt_origin_use(&b->live->origin);
    use_setup(b->live);
    gt_v1_set_cpus(b->live->begun->procs);
    gt_boxed_adopt(b);
    gt_recovered_cpus_open(b->live->sched);
    gt_merge_be_lenient();
    if (gt_output_open(output, false) != 0)
        gt_fail(GT_EXIT_FAILED, "%s: %s", output, strerror(-gt_output_commit()));
}

static void report_losses(const struct gt_boxed *b, const struct gt_boxed_sum *sum)
{
    if (sum->torn)
        gt_say("%llu bytes were no whole events, and are left out", (unsigned long long)sum->torn);
    if (gt_merge_mended())
        gt_say("%llu events contradict others, and are left out or mended",
               (unsigned long long)gt_merge_mended());
    if (b->box->outside)
        gt_say("there was no space for %llu KiB more: %s is lost",
               (unsigned long long)b->box->outside >> 10,
               b->box->buffers_outside ? "its last generation" : "what stood there");
}

static void report(const struct gt_boxed *b, const char *what, uint64_t events)
{
    gt_say(gt_boxed_whole(b)->bytes ? "%s: %llu events more than the file of process %llu had"
                                    : "%s: %llu events of process %llu",
           what, (unsigned long long)events, (unsigned long long)b->live->pid);
    gt_cause_say(b->live);
}

/*
 * Writes the trace. trace: the present path of the file that the box continues, or NULL. Returns
 * how many events are in the box. Writes nothing if there are none and the box continues no file.
 */
static uint64_t write_trace(struct gt_boxed *b, const char *trace, const char *output)
{
    struct gt_boxed_sum sum = {0};
    if (is_the_file(output, gt_boxed_whole(b)))
        gt_fail(GT_EXIT_USAGE, "recover: not into its own trace");
    begin(b, output);
    bool complete = copy_trace(b, trace);
    write_generations(b, &sum, complete);
    report_losses(b, &sum);
    if ((sum.events || gt_boxed_whole(b)->bytes) && gt_output_commit() != 0)
        gt_fail(GT_EXIT_FAILED, "%s: %s", output, strerror(-gt_output_commit()));
    gt_output_close();
    return sum.events;
}

static void recover_box(struct gt_boxed *b, const char *trace, const char *output, const char *what)
{
    check_is_dead(b->path);
    uint64_t events = write_trace(b, trace, output);
    if (!events && !gt_boxed_whole(b)->bytes)
        gt_fail(GT_EXIT_FAILED, "%s: no events are in it", b->path);
    report(b, what, events);
}

/* Whether the trace has a line table in a file beside it, as Go 1.5's has. */
static bool has_lines_beside(const struct gt_boxed *b)
{
    return b->format->v1 && gt_v1_global_order(b->format);
}

static bool recover_for(const void *of, const char *output)
{
    struct gt_boxed b;
    gt_boxed_open(&b, of);
    if (has_lines_beside(&b)) /* the output has no name, so no file can be beside it */
        gt_fail(GT_EXIT_FAILED, "%s: of a trace with names in another file: gotrace recover",
                b.path);
    recover_box(&b, NULL, output, of);
    return true;
}

bool gt_is_box(const char *path)
{
    uint64_t pid;
    return gt_boxed_is(path, &pid);
}

const char *gt_recovered(const char *path)
{
    if (!gt_is_box(path))
        return path;
    const char *found = gt_copy_once(path, "not recovered", recover_for, path);
    if (!found)
        exit(GT_EXIT_FAILED); /* a message was printed */
    return found;
}

/* The path of the process's trace; of a flight recorder, the path that its trace would have. */
static void find_place(char place[PATH_MAX + NAME_MAX], const struct gt_boxed *b,
                       const char *directory)
{
    const struct gt_live_whole *whole = gt_boxed_whole(b);
    const char *name = gt_path_name(b->path);
    int length = gt_boxed_trace_length(name);
    if (whole->bytes)
        snprintf(place, PATH_MAX, "%.*s", PATH_MAX - 1, whole->path);
    else
        snprintf(place, PATH_MAX + NAME_MAX, "%s/%.*s", directory, length, name);
}

static void put_in_place(const struct gt_boxed *b, const char *from, const char *to)
{
    char beside[PATH_MAX + NAME_MAX + 32], beside_to[sizeof beside];
    snprintf(beside, sizeof beside, "%s" GT_V1_ELF_SUFFIX, from);
    snprintf(beside_to, sizeof beside_to, "%s" GT_V1_ELF_SUFFIX, to);
    if (has_lines_beside(b) && rename(beside, beside_to) != 0)
        gt_fail(GT_EXIT_FAILED, "%s: %s", beside_to, strerror(errno));
    if (rename(from, to) != 0)
        gt_fail(GT_EXIT_FAILED, "%s: %s", to, strerror(errno));
}

void gt_recover_in_place(const char *box, const char *directory)
{
    char place[PATH_MAX + NAME_MAX], output[sizeof place + 16];
    struct gt_boxed b;
    gt_boxed_open(&b, box);
    find_place(place, &b, directory);
    snprintf(output, sizeof output, "%s.recovered", place);
    recover_box(&b, NULL, output, place);
    gt_written_check(output, place, NULL, 0);
    put_in_place(&b, output, place);
    unlink(box);
}

/* The trace to replace, or NULL. A path in another user's box is not trusted. */
static const char *trace_to_replace(const struct gt_boxed *b)
{
    struct stat st;
    const struct gt_live_whole *whole = gt_boxed_whole(b);
    if (!whole->bytes)
        return NULL;
    bool ours = b->file.st_uid == geteuid();
    const char *trace = ours ? find_trace(b, whole) : trace_beside(b, whole);
    if (trace && (lstat(trace, &st) != 0 || !S_ISREG(st.st_mode)))
        gt_fail(GT_EXIT_FAILED, "%s: %s is a symbolic link, and stays as it is", b->path, trace);
    if (!trace && !ours)
        gt_fail(GT_EXIT_FAILED, "%s: another user's, and the trace is not beside it", b->path);
    if (trace)
        check_is_dead(trace); /* another recording may have begun there */
    return trace;
}

/* Chooses a name that no file has: a file of that name is another process's. */
static void choose_place(char *place, size_t size, const struct gt_boxed *b)
{
    struct stat st;
    int n = snprintf(place, size, "%.*s", gt_boxed_trace_length(b->path), b->path);
    for (unsigned i = 0; lstat(place, &st) == 0; i++)
        snprintf(place + n, size - (size_t)n, i ? ".%llu.%u" : ".%llu",
                 (unsigned long long)b->live->pid, i);
}

/* Puts the trace on disk, as the box will be removed. */
static void sync_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) != 0)
        gt_fail(GT_EXIT_FAILED, "%s: %s", path, strerror(errno));
    close(fd);
}

static void discard(const struct gt_boxed *b, const char *output)
{
    char beside[PATH_MAX + 128];
    snprintf(beside, sizeof beside, "%s" GT_V1_ELF_SUFFIX, output);
    if (has_lines_beside(b))
        unlink(beside);
    unlink(output);
}

bool gt_recover_orphan(const char *box, const struct stat *locked, bool says)
{
    char place[PATH_MAX + 64], output[sizeof place + 16];
    struct gt_boxed b;
    gt_boxed_open(&b, box);
    if (b.file.st_ino != locked->st_ino || b.file.st_dev != locked->st_dev)
        gt_fail(GT_EXIT_FAILED, "%s: another file by now", box);
    const char *trace = trace_to_replace(&b);
    if (trace)
        snprintf(place, sizeof place, "%s", trace);
    else
        choose_place(place, sizeof place, &b);
    snprintf(output, sizeof output, "%s.recovered", place);
    uint64_t events = write_trace(&b, trace, output);
    if (events) {
        gt_written_check(output, place, NULL, 0);
        sync_file(output);
        put_in_place(&b, output, place);
        if (says)
            report(&b, place, events);
    } else if (gt_boxed_whole(&b)->bytes) {
        discard(&b, output);
    }
    return events;
}

char *gt_recover_find(const char *directory, pid_t pid)
{
    char *found = NULL;
    DIR *dir = opendir(directory);
    for (struct dirent *e; !found && dir && (e = readdir(dir));) {
        char path[PATH_MAX];
        uint64_t its;
        if (!gt_boxed_trace_length(e->d_name) ||
            (size_t)snprintf(path, sizeof path, "%s/%s", directory, e->d_name) >= sizeof path)
            continue;
        if (gt_boxed_is(path, &its) && its == (uint64_t)pid)
            found = gt_need(strdup(path));
    }
    if (dir)
        closedir(dir);
    return found;
}

int gt_command_recover(int argc, char **argv)
{
    static const struct option longs[] = {{"output", required_argument, NULL, 'o'},
                                          {"clean", required_argument, NULL, 'c'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    const char *output = NULL, *directory = NULL;
    for (int c; (c = gt_option(argc, argv, "o:h", longs)) != -1;) {
        switch (c) {
        case 'o': output = optarg; break;
        case 'c': directory = optarg; break;
        case 'h': help(); break;
        default: exit(GT_EXIT_USAGE);
        }
    }
    if (directory && (output || optind < argc))
        gt_fail(GT_EXIT_USAGE, "recover: --clean=DIRECTORY, and nothing else");
    if (directory)
        return gt_recover_clean(directory, true) ? 0 : GT_EXIT_FAILED;
    if (optind == argc || argc - optind > 2 || !output)
        gt_fail(GT_EXIT_USAGE, "recover needs %s: gotrace recover BOX [TRACE] -o FILE",
                output ? "a black box, such as t.out.live" : "-o FILE");
    struct gt_boxed b;
    gt_boxed_open(&b, argv[optind]);
    recover_box(&b, argv[optind + 1], output, output);
    gt_written_check(output, output, &argv[optind + 1], optind + 1 < argc);
    return 0;
}
