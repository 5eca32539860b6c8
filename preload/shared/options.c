/* See options.h. */
#include "options.h"

#include "encoder/base/libc.h"
#include "encoder/base/log.h"
#include "encoder/base/sparse.h"
#include "encoder/base/spelling.h"
#include "encoder/base/strbuf.h"
#include "encoder/base/version.h"
#include "encoder/format/setup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct gt_options gt_options;

/* Every switch parses itself; a bad value is reported and leaves the default. */

static bool read_either(const char *value, const char *yes, const char *no, bool *is)
{
    *is = strcmp(value, yes) == 0;
    return *is || strcmp(value, no) == 0;
}

#define EITHER(name, yes, no)                                 \
    static bool read_##name(const char *value)                \
    {                                                         \
        return read_either(value, yes, no, &gt_options.name); \
    }
EITHER(on, "on", "off")
EITHER(heap, "on", "off")
EITHER(sched, "on", "off")
EITHER(manual, "manual", "auto")
EITHER(names_later, "later", "now")

enum { THREE = 3 };

static bool read_one_of(const char *value, const char *const values[THREE], unsigned *which)
{
    for (unsigned i = 0; i < THREE; i++) {
        if (strcmp(value, values[i]) == 0) {
            *which = i;
            return true;
        }
    }
    return false;
}

static bool read_quiet(const char *value)
{
    static const char *const values[THREE] = {"", "1", "0"}; /* as enum gt_log_quiet */
    return read_one_of(value, values, &gt_log_quiet);
}

static bool read_children(const char *value)
{
    static const char *const values[THREE] = {"0", "1", "all"}; /* as enum gt_children */
    return read_one_of(value, values, &gt_options.children);
}

/* Writes the current directory as part of a pattern, with each % doubled. false: too long. */
static bool put_directory(char *p, const char *end)
{
    char dir[PATH_MAX];
    if (!getcwd(dir, sizeof dir))
        return false;
    const char *d = dir;
    for (; *d && end - p > 3; d++) {
        if (*d == '%')
            *p++ = '%';
        *p++ = *d;
    }
    *p++ = '/';
    *p = 0;
    return !*d;
}

/*
 * The output pattern of the process that the user started, absolute; "": not known. A descendant's
 * relative pattern is the inherited one if the absolute pattern ends in it. Otherwise it is new.
 */
static const char *inherited = "";

static const char *as_inherited(const char *value)
{
    size_t whole = strlen(inherited), part = strlen(value);
    bool same = part < whole && inherited[whole - part - 1] == '/' &&
                strcmp(inherited + whole - part, value) == 0;
    return same ? inherited : value;
}

/* Copies the pattern, since programs overwrite their environment (setproctitle), and makes it
 * absolute, since they change their directory. */
static bool read_output(const char *value)
{
    char *p = gt_options.output;
    size_t size = sizeof gt_options.output;
    *p = 0;
    value = as_inherited(value);
    if (*value != '/' && !put_directory(p, p + size))
        return false;
    size_t n = strlen(p);
    if (!*value || strlen(value) >= size - n)
        return false;
    strcpy(p + n, value);
    return true;
}

static bool read_format(const char *value)
{
    const struct gt_format *format = gt_format_find(value);
    if (format)
        gt_options.format = format;
    return format;
}

/* Reads a size: a number and perhaps K, M or G, by 1,024. */
static bool read_size(const char *value, uint64_t *size)
{
    char *end;
    errno = 0;
    uint64_t n = strtoull(value, &end, 10);
    static const char units[] = "KMG";
    const char *unit = *end ? strchr(units, *end) : NULL;
    unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
    if (*value < '0' || *value > '9' || errno || (*end && (!unit || end[1])) ||
        n << shift >> shift != n)
        return false;
    *size = n << shift;
    return true;
}

/* At least 1 MiB, since each thread that records holds a buffer. */
static bool read_max_mem(const char *value)
{
    uint64_t size;
    if (!read_size(value, &size) || size < 1 << 20)
        return false;
    gt_options.max_mem = size;
    return true;
}

static uint64_t call_min; /* GOTRACE_SYSCALL_MIN; not used with GOTRACE_SYSCALLS=all */

static bool read_call_min(const char *value)
{
    char *end;
    errno = 0;
    call_min = strtoull(value, &end, 10);
    return *value >= '0' && *value <= '9' && !*end && !errno;
}

static bool read_calls(const char *value)
{
    bool all = strcmp(value, "all") == 0;
    gt_options.every_call = all;
    gt_options.calls = all || strcmp(value, "blocking") == 0;
    gt_options.call_min = all ? 0 : call_min;
    return gt_options.calls || strcmp(value, "none") == 0;
}

bool gt_options_time(const char *value, uint64_t *ns)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6},  {"s", 1e9},
                 {"", 1e9}, {"m", 6e10}, {"h", 3.6e12}};
    double number = 0, place = 1;
    const char *p = value;
    for (; *p >= '0' && *p <= '9'; p++)
        number = number * 10 + (*p - '0');
    if (*p == '.')
        for (p++; *p >= '0' && *p <= '9'; p++)
            number += (*p - '0') * (place /= 10);
    if (*value < '0' || *value > '9')
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(p, units[i].name) == 0 && number * units[i].ns < 1e18) {
            *ns = (uint64_t)(number * units[i].ns);
            return true;
        }
    }
    return false;
}

bool gt_options_hz(const char *value, uint32_t *hz)
{
    uint64_t n;
    bool valid = read_size(value, &n) && n <= 10000;
    *hz = valid ? (uint32_t)n : *hz;
    return valid;
}

#define PLAIN(name, read)                      \
    static bool read_##name(const char *value) \
    {                                          \
        return read(value, &gt_options.name);  \
    }
PLAIN(max_size, read_size)
PLAIN(max_processes, read_size)
PLAIN(delay, gt_options_time)
PLAIN(duration, gt_options_time)
PLAIN(cpu_hz, gt_options_hz)

#define RING_DEFAULT (64u << 20) /* bytes */
#define PART_MIN (1u << 20)

/* The extent of a flight recorder or of a file: a time, a size, or both. */
struct extent {
    uint64_t ns, bytes; /* 0: no limit */
};

/* Reads a size such as 64M or 64MiB. */
static bool read_extent_size(const char *value, struct extent *e)
{
    char text[32];
    size_t n = strlen(value);
    if (n < 2 || n >= sizeof text)
        return false;
    strcpy(text, value);
    if (n > 3 && strcmp(text + n - 2, "iB") == 0)
        text[n - 2] = 0;
    return strpbrk(text, "KMG") && read_size(text, &e->bytes) && e->bytes >= PART_MIN;
}

static bool read_extent_part(const char *value, struct extent *e)
{
    bool has_unit = *value && strpbrk(value, "smh");
    return has_unit ? gt_options_time(value, &e->ns) && e->ns : read_extent_size(value, e);
}

/* Reads a time, a size, or both with a comma between them. */
static bool read_extent(const char *value, struct extent *e)
{
    char text[64];
    *e = (struct extent){0};
    if (!*value)
        return true;
    if (strlen(value) >= sizeof text)
        return false;
    strcpy(text, value);
    char *comma = strchr(text, ',');
    if (comma)
        *comma = 0;
    return read_extent_part(text, e) && (!comma || read_extent_part(comma + 1, e));
}

static bool read_ring(const char *value)
{
    struct extent e;
    bool valid = read_extent(value, &e);
    gt_options.ring_time = e.ns;
    gt_options.ring_bytes = !valid ? 0 : e.bytes || !e.ns ? e.bytes : RING_DEFAULT;
    return valid;
}

/* Each file needs two changes of generation. */
#define ROTATE_MIN_NS 100000000

static bool read_rotate(const char *value)
{
    struct extent e;
    bool valid = read_extent(value, &e) && (!e.ns || e.ns >= ROTATE_MIN_NS);
    gt_options.rotation.ns = e.ns;
    gt_options.rotation.bytes = e.bytes;
    return valid;
}

static bool read_keep(const char *value)
{
    enum { MOST = 10000 }; /* the name of each file is kept in memory */
    uint64_t n;
    bool valid = read_size(value, &n) && n <= MOST;
    gt_options.rotation.keep = valid ? (uint32_t)n : 0;
    return valid;
}

/* Whether a handler may take the signal, and the kernel does not report faults by it. */
static bool signal_may_be_ours(int number)
{
    static const int others[] = {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE,
                                 SIGILL,  SIGTRAP, SIGABRT, SIGSYS};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (number == others[i])
            return false;
    }
    return number > 0 && number <= SIGRTMAX && (number < 32 || number >= SIGRTMIN);
}

/* The signal of a name as in kill -l, with or without SIG, RTMIN+n and RTMAX-n included; or of a
 * number. -1: none. */
static int signal_of(const char *name)
{
    char *end;
    name += strncmp(name, "SIG", 3) == 0 ? 3 : 0;
    if (strncmp(name, "RTMIN+", 6) == 0 || strncmp(name, "RTMAX-", 6) == 0) {
        long n = strtol(name + 5, &end, 10);
        return *end ? -1 : (int)(name[4] == 'N' ? SIGRTMIN + n : SIGRTMAX + n);
    }
    for (int i = 1; i < 32; i++) {
        const char *abbreviation = gt_libc_signal(i);
        if (abbreviation && strcmp(name, abbreviation) == 0)
            return i;
    }
    long n = strtol(name, &end, 10);
    return *end || n > SIGRTMAX ? -1 : (int)n;
}

static bool read_signal(const char *value)
{
    gt_options.signal = *value ? signal_of(value) : 0;
    return !gt_options.signal || signal_may_be_ours(gt_options.signal);
}

static bool read_hold_min(const char *value)
{
    return gt_options_time(value, &gt_options.hold_min);
}

static bool read_hang(const char *value)
{
    return gt_options_time(value, &gt_options.hang);
}

/* Copies a value, which the program may change later. NULL, or too long: "". */
static const char *keep_path(char to[static PATH_MAX], const char *value)
{
    return value && strlen(value) < PATH_MAX ? strcpy(to, value) : "";
}

static bool read_live(const char *value)
{
    gt_options.boxed = strcmp(value, "off") != 0;
    static char path[PATH_MAX] GT_SPARSE;
    gt_options.live = keep_path(path, *value == '/' ? value : NULL);
    return *gt_options.live || !gt_options.boxed || strcmp(value, "on") == 0;
}

/* The switches. accepted: for error messages; NULL: the names in the table of formats. */
static const struct {
    const char *name, *accepted, *fallback;
    bool (*read)(const char *value);
} table[] = {
    {"GOTRACE_QUIET", "0 or 1", "", read_quiet}, /* first: reading the others may print errors */
    {"GOTRACE", "on or off", "on", read_on},
    {"GOTRACE_OUTPUT", "a path", GT_OUTPUT_DEFAULT, read_output},
    {"GOTRACE_CHILDREN", "0, 1 or all", "1", read_children},
    {"GOTRACE_MAX_PROCESSES", "a number", "0", read_max_processes},
    {"GOTRACE_MAX_SIZE", "a number of bytes, with K, M or G if you like", "0", read_max_size},
    {"GOTRACE_MAX_MEM", "1M or more", "256M", read_max_mem},
    {"GOTRACE_SYSCALL_MIN", "a number of nanoseconds", "10000", read_call_min},
    {"GOTRACE_SYSCALLS", "all, blocking or none", "blocking", read_calls}, /* after its minimum */
    {"GOTRACE_HOLD_MIN", "a time such as 1ms", "1ms", read_hold_min},
    {"GOTRACE_FORMAT", NULL, GT_FORMAT_DEFAULT, read_format},
    {"GOTRACE_NAMES", "now or later", "now", read_names_later},
    {"GOTRACE_HEAP", "on or off", "on", read_heap},
    {"GOTRACE_SCHED", "on or off", "off", read_sched},
    {"GOTRACE_START", "auto or manual", "auto", read_manual},
    {"GOTRACE_DELAY", "a time such as 500ms or 10s", "0", read_delay},
    {"GOTRACE_DURATION", "a time such as 500ms or 10s", "0", read_duration},
    {"GOTRACE_RING", "a time or a size with a unit: 30s, 64M or 30s,64M", "", read_ring},
    {"GOTRACE_ROTATE", "a time or a size with a unit: 1h, 1G or 1h,1G", "", read_rotate},
    {"GOTRACE_KEEP", "a number up to 10000", "0", read_keep},
    {"GOTRACE_LIVE", "on, off or a directory, absolute", "off", read_live},
    {"GOTRACE_HANG", "a time such as 10s", "0", read_hang},
    {"GOTRACE_SIGNAL", "a signal that programs may use", "", read_signal},
    {"GOTRACE_CPU_HZ", "a number up to 10000", "0", read_cpu_hz},
};

enum { SWITCHES = sizeof table / sizeof *table };

static const char *accepted_by(size_t i)
{
    return table[i].accepted ? table[i].accepted : gt_format_names();
}

/* The name by which the program was called: later it may be any title (setproctitle). A forked
 * child keeps it. */
static char program_name[NAME_MAX + 1];

const char *gt_options_program(void)
{
    return program_name;
}

static const char *value_of(const char *settings, const char *name)
{
    size_t n = strlen(name);
    for (; settings && *settings; settings += strlen(settings) + 1) {
        if (strncmp(settings, name, n) == 0 && settings[n] == '=')
            return settings + n + 1;
    }
    return settings ? NULL : getenv(name);
}

enum { PREFIX = sizeof "GOTRACE_" - 1 };

/* Whether it is a variable of the command, of tests, or of processes for their descendants. */
static bool is_no_switch(const char *name, size_t length)
{
    static const char *const others[] = {"LIBRARY", "FAMILY", "ATTACH_UNTIL", "ROOT_", "TEST_"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        size_t n = strlen(others[i]);
        bool whole = others[i][n - 1] != '_';
        if (strncmp(name + PREFIX, others[i], n) == 0 && (!whole || length == PREFIX + n))
            return true;
    }
    return false;
}

static void check_name(const char *variable)
{
    char name[64] = "";
    size_t length = strcspn(variable, "="), nearest = 0;
    unsigned least = GT_SPELLING_FAR;
    if (length >= sizeof name || is_no_switch(variable, length))
        return;
    memcpy(name, variable, length);
    for (size_t i = 0; i < SWITCHES && least; i++) {
        unsigned distance = gt_spelling_distance(name, table[i].name);
        nearest = distance < least ? i : nearest;
        least = distance < least ? distance : least;
    }
    if (least && least < GT_SPELLING_FAR)
        gt_log_note("%s: not known; did you mean %s?", name, table[nearest].name);
    else if (least)
        gt_log_note("%s: not known", name);
}

/* Complains about unknown switches. Only the process that the user started does so. */
static void check_names(void)
{
    if (getenv(GT_ROOT_OUTPUT))
        return;
    for (char **e = environ; e && *e; e++) {
        if (strncmp(*e, "GOTRACE_", PREFIX) == 0)
            check_name(*e);
    }
}

/* Refuses switches that exclude each other. */
static void refuse_together(void)
{
    bool rotates = gt_rotation_is_wanted(&gt_options.rotation);
    if (rotates && gt_options.ring_bytes) {
        gt_log_note(
            "GOTRACE_ROTATE: not with GOTRACE_RING, which writes files when it is asked to");
        gt_options.rotation = (struct gt_rotation_config){0};
    } else if (gt_options.rotation.keep && !rotates) {
        gt_log_note("GOTRACE_KEEP: nothing is removed without GOTRACE_ROTATE");
    }
    if (gt_options.names_later && gt_v1_global_order(gt_options.format)) {
        gt_log_note(
            "GOTRACE_NAMES=later: a go1.5 trace has no place for what that needs; using now");
        gt_options.names_later = false;
    }
}

/* Whether the format has logs: formats before Go 1.11 have none. */
static bool has_logs(const struct gt_format *format)
{
    return !format->v1 || gt_v1_has(format, GT_V1_USER_LOG);
}

static char setup[GT_SETUP_MAX]; /* the setup's text */

const char *gt_options_setup(void)
{
    return setup;
}

/*
 * Adds a switch that the user has set. Names of files may tell what is nobody else's business, and
 * the trace's own name says nothing.
 */
static void add_setting(struct gt_strbuf *settings, size_t i, const char *value)
{
    if (table[i].read == read_output)
        return;
    gt_strbuf_add(settings, table[i].name);
    gt_strbuf_add(settings, "=");
    gt_strbuf_add(settings, strchr(value, '/') ? "..." : value);
    gt_strbuf_add(settings, " ");
}

static void note_setup(const char *switches)
{
    *setup = 0;
    gt_setup_add(setup, GT_SETUP_LIBRARY, gt_version);
    gt_setup_add(setup, GT_SETUP_SWITCHES, switches);
}

/* Whether GOTRACE=off: then no other switch is read, and nothing is printed. */
static bool is_off(const char *settings)
{
    const char *value = value_of(settings, "GOTRACE");
    return value && strcmp(value, "off") == 0;
}

void gt_options_read(const char *settings)
{
    static char path_kept[PATH_MAX] GT_SPARSE, merged_kept[PATH_MAX] GT_SPARSE;
    char set[GT_SETUP_MAX];
    struct gt_strbuf switches = gt_strbuf_start(set, sizeof set);
    bool off = is_off(settings);
    snprintf(program_name, sizeof program_name, "%s", program_invocation_short_name);
    const char *root = settings ? NULL : getenv(GT_ROOT_OUTPUT);
    const char *merged = settings ? NULL : getenv(GT_ROOT_MERGED);
    const char *path = settings ? NULL : getenv("PATH");
    inherited = root ? root : "";
    gt_options.path = keep_path(path_kept, path);
    gt_options.merged = keep_path(merged_kept, merged);
    for (size_t i = 0; i < SWITCHES; i++) {
        table[i].read(table[i].fallback);
        const char *value = off ? NULL : value_of(settings, table[i].name);
        if (value && table[i].read(value)) {
            add_setting(&switches, i, value);
        } else if (value) {
            gt_log_note("%s=%s is not %s; using %s", table[i].name, value, accepted_by(i),
                        *table[i].fallback ? table[i].fallback : "none");
            table[i].read(table[i].fallback);
        }
    }
    note_setup(set);
    inherited = "";
    gt_options.on &= !off;
    if (!settings && !off)
        check_names();
    refuse_together();
    gt_options.channels = gt_options.on && gt_options.every_call && has_logs(gt_options.format);
}

bool gt_options_set_output(const char *pattern)
{
    char before[PATH_MAX];
    strcpy(before, gt_options.output);
    bool read = read_output(pattern);
    if (!read)
        strcpy(gt_options.output, before);
    return read;
}

const char *gt_options_refusal(const char *name, const char *value)
{
    for (size_t i = 0; i < SWITCHES; i++) {
        if (strcmp(table[i].name, name) == 0)
            return table[i].read(value) ? NULL : accepted_by(i);
    }
    return "";
}

/* Output pattern ----------------------------------------------------------------------------- */

struct text {
    char *pos, *end;
    bool whole;
    size_t most; /* maximal bytes of each name in it */
};

/* The counters of an output pattern. */
struct counts {
    unsigned n;      /* for %n: number of the process's file */
    unsigned unused; /* for %u: the first number without a file */
};

static void add(struct text *t, const char *s)
{
    size_t n = strlen(s), room = (size_t)(t->end - t->pos);
    if (n >= room)
        t->whole = false;
    else
        memcpy(t->pos, s, n + 1), t->pos += n;
}

static void add_number(struct text *t, long n)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%ld", n);
    add(t, digits);
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("._+-", c));
}

/*
 * Adds a name of foreign origin as part of a file name: at most t->most bytes, no directory, and no
 * character that a shell or `ls` would interpret.
 */
static void add_name(struct text *t, const char *name)
{
    char plain[NAME_MAX + 1] = "_"; /* for an empty name */
    size_t n = strnlen(name, t->most);
    for (size_t i = 0; i < n; i++)
        plain[i] = is_plain(name[i]) && (i || (*name != '.' && *name != '-')) ? name[i] : '_';
    plain[n ? n : 1] = 0;
    add(t, plain);
}

static void add_host(struct text *t)
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    add_name(t, host);
}

/* Expands one %-escape. false: not one of ours, to be taken literally. */
static bool expand(struct text *t, char escape, const struct counts *counts)
{
    switch (escape) {
    case 'p': add_number(t, gt_syscall(SYS_getpid)); return true;
    case 'e': add_name(t, program_name); return true;
    case 'h': add_host(t); return true;
    case 't': add_number(t, (long)time(NULL)); return true;
    case 'n': add_number(t, counts->n); return true;
    case 'u': add_number(t, counts->unused); return true;
    case '%': add(t, "%"); return true;
    default: return false;
    }
}

static bool put_path(char path[PATH_MAX], bool descendant, const struct counts *counts, size_t most)
{
    struct text t = {path, path + PATH_MAX, true, most};
    const char *p = gt_options.output;
    bool has_pid = false, has_n = false;
    for (; *p; p++) {
        if (*p == '%' && expand(&t, p[1], counts)) {
            has_pid |= p[1] == 'p';
            has_n |= p[1] == 'n';
            p++;
        } else {
            add(&t, (char[2]){*p, 0});
        }
    }
    if (descendant && !has_pid) {
        add(&t, ".");
        add_number(&t, gt_syscall(SYS_getpid));
    }
    if (counts->n > 1 && !has_n) {
        add(&t, ".");
        add_number(&t, counts->n);
    }
    return t.whole;
}

/* Whether a part of the path, with a suffix that the encoder may append, is longer than file
 * systems allow. */
static bool has_long_part(const char *path)
{
    enum { MORE = sizeof ".4194304.elf.new" - 1 };
    for (size_t n; *path; path += n + (path[n] == '/')) {
        n = strcspn(path, "/");
        if (n + MORE > NAME_MAX)
            return true;
    }
    return false;
}

static bool put_short_path(char path[PATH_MAX], bool descendant, const struct counts *counts)
{
    size_t most = NAME_MAX;
    bool whole;
    do
        whole = put_path(path, descendant, counts, most);
    while (has_long_part(path) && (most /= 2));
    return whole;
}

static bool exists(const char *path)
{
    return gt_syscall(SYS_faccessat, AT_FDCWD, path, F_OK) == 0;
}

bool gt_options_output_is_unused(void)
{
    return strstr(gt_options.output, "%u");
}

bool gt_options_output_path(char path[PATH_MAX], bool descendant, unsigned n)
{
    enum { MOST = 100000 };
    struct counts counts = {.n = n, .unused = 1};
    bool looks = gt_options_output_is_unused();
    bool whole = put_short_path(path, descendant, &counts);
    while (looks && whole && counts.unused < MOST && exists(path)) {
        counts.unused++;
        whole = put_short_path(path, descendant, &counts);
    }
    return whole;
}
