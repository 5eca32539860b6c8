/* See descent.h. */
#include "descent.h"

#include "options.h"

#include "encoder/base/arena.h"
#include "encoder/base/clock.h"
#include "encoder/base/file.h"
#include "encoder/base/sparse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The variables for descendants. */
static struct {
    size_t used;
    char *string[4]; /* in text */
    unsigned strings;
    char text[PATH_MAX + 128];
} told GT_SPARSE;

void gt_descent_tell(const char *name, const char *value)
{
    enum { MOST = sizeof told.string / sizeof *told.string };
    char *at = told.text + told.used;
    size_t room = sizeof told.text - told.used;
    int n = snprintf(at, room, "%s=%s", name, value);
    if (told.strings == MOST || n < 0 || (size_t)n >= room)
        return;
    told.string[told.strings++] = at;
    told.used += (size_t)n + 1;
}

/* The length in words of the auxiliary vector, which the kernel put behind this environment, with
 * the two zeros at its end. */
static size_t auxiliary_vector(char **environment)
{
    size_t n = 0;
    while (environment[n])
        n++;
    char **vector = environment + n + 1;
    for (n = 0; vector[n]; n += 2)
        ;
    return n + 2;
}

static bool names_the_same(const char *one, const char *other)
{
    size_t n = strcspn(one, "=") + 1;
    return strncmp(one, other, n) == 0;
}

/* Puts our string in the place of an older one for the same variable, else at the end of `array`.
 * Returns the new length. */
static size_t put(char **array, size_t n, char *string)
{
    size_t i = 0;
    while (i < n && !names_the_same(array[i], string))
        i++;
    array[i] = string;
    return i < n ? n : n + 1;
}

/*
 * Makes a new array of the program's strings, in their order, with our strings before the last one.
 * The program's strings stay where they are. Programs that write a title over arguments and
 * environment take the last string for the end of that area, or take all strings that follow the
 * arguments without a gap. Other programs look behind the array for the kernel's auxiliary vector,
 * so a copy of that follows.
 */
void gt_descent_hand_down(char **kernels)
{
    enum { ZEROS = 3 };
    size_t n = 0, behind = environ && environ == kernels ? auxiliary_vector(kernels) : 0;
    while (environ && environ[n])
        n++;
    char **array = NULL;
    if (told.strings)
        array = gt_pages_alloc((told.strings + n + 1 + behind + ZEROS) * sizeof *array);
    if (!array)
        return;
    char *last = n ? environ[n - 1] : NULL;
    size_t end = n ? n - 1 : 0;
    if (end)
        memcpy(array, environ, end * sizeof *array);
    for (unsigned i = 0; i < told.strings; i++)
        end = put(array, end, told.string[i]);
    if (last)
        array[end++] = last;
    if (behind)
        memcpy(array + end + 1, environ + n + 1, behind * sizeof *array);
    environ = array;
}

/* Replaces the first digit of GT_ROOT_PID's value in a confined process. */
#define CONFINED 'x'

/* When this process began, as CLOCK_REALTIME in seconds; 0 when /proc does not say. */
static double process_start(void)
{
    char text[1024];
    struct timespec real, boot;
    unsigned long long ticks;
    gt_file_read_text("/proc/self/stat", text, sizeof text);
    const char *p = strrchr(text, ')'); /* the name before it may contain anything */
    /* proc(5): starttime is field 22; after the name comes field 3 */
    if (!p || sscanf(p + 1,
                     " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
                     "%*d %llu",
                     &ticks) != 1)
        return 0;
    clock_gettime(CLOCK_REALTIME, &real);
    clock_gettime(CLOCK_BOOTTIME, &boot);
    double now = (double)real.tv_sec + (double)real.tv_nsec / 1e9;
    double uptime = (double)boot.tv_sec + (double)boot.tv_nsec / 1e9;
    return now - uptime + (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

static bool written_by_this_process(const struct stat *st)
{
    const double tick = 0.01; /* a file's time is that of the last clock tick */
    double changed = (double)st->st_mtim.tv_sec + (double)st->st_mtim.tv_nsec / 1e9;
    return changed >= process_start() - tick;
}

enum { PID_TEXT = 24 };

static void put_own(char own[PID_TEXT])
{
    snprintf(own, PID_TEXT, "%ld", gt_syscall(SYS_getpid));
}

bool gt_descent_is_child(void)
{
    char own[PID_TEXT];
    const char *root = getenv(GT_ROOT_PID);
    put_own(own);
    return root && strcmp(root, own) != 0;
}

static bool may_be_later; /* an earlier traced image exists; it may be the parent's */

bool gt_descent_has_left(const char *path)
{
    struct stat st;
    return may_be_later && gt_stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
           written_by_this_process(&st);
}

static uint64_t since;

uint64_t gt_descent_since(void)
{
    return since;
}

static void note_since(void)
{
    char text[24];
    struct timespec now;
    const char *known = getenv(GT_ROOT_TIME);
    gt_clock_read(CLOCK_REALTIME, &now);
    since = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    since = known ? strtoull(known, NULL, 10) : since;
    snprintf(text, sizeof text, "%llu", (unsigned long long)since);
    gt_descent_tell(GT_ROOT_TIME, text);
}

bool gt_descent_is_descendant(const char *path)
{
    char own[PID_TEXT];
    struct stat st;
    note_since();
    may_be_later = getenv(GT_ROOT_PID);
    if (may_be_later)
        return gt_descent_is_child() || (gt_stat(path, &st) == 0 && written_by_this_process(&st));
    put_own(own);
    gt_descent_tell(GT_ROOT_PID, own);
    gt_descent_tell(GT_ROOT_OUTPUT, gt_options.output); /* descendants may chdir */
    return false;
}

/* Changes the variable's text in place: arrays already made for exec point to it. */
void gt_descent_confine(void)
{
    char *root = getenv(GT_ROOT_PID);
    if (root && *root)
        *root = CONFINED;
}

bool gt_descent_is_confined(void)
{
    const char *root = getenv(GT_ROOT_PID);
    return root && *root == CONFINED;
}
