/* See replacement.h. */
#include "replacement.h"

#include "tool.h"

#include "encoder/base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    FILE *file;
    char place[PATH_MAX], temporary[PATH_MAX];
    char beside[PATH_MAX];         /* temporary name of the second file; "": none */
    char unfinished[PATH_MAX + 8]; /* the second file's name while it is written (output.h) */
    const char *suffix;            /* suffix of the second file */
    volatile sig_atomic_t exists;  /* the temporary file exists */
} replacement;

void gt_replacement_discard(void)
{
    if (replacement.exists)
        unlink(replacement.temporary);
    if (replacement.exists && *replacement.beside) {
        unlink(replacement.beside);
        unlink(replacement.unfinished);
    }
    replacement.exists = 0;
}

/* Removes the file. The raised signal ends this process when the handler returns. */
static void on_end(int number)
{
    gt_replacement_discard();
    raise(number);
}

/* Catches signals that end the process, from hang-up to limits. Ignored ones, as by nohup, stay. */
static void watch_ends(void)
{
    static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGXCPU, SIGXFSZ};
    struct sigaction act = {.sa_handler = on_end, .sa_flags = (int)SA_RESETHAND}, before;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        if (sigaction(ends[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(ends[i], &act, NULL);
    }
    atexit(gt_replacement_discard);
}

/* Makes the temporary file; signals are held, so that on_end knows of it. */
static int make_temporary(void)
{
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    int fd = mkostemp(replacement.temporary, O_CLOEXEC);
    replacement.exists = fd >= 0;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return fd;
}

const char *gt_replacement_name(const char *trace, const char *extension)
{
    static char name[PATH_MAX];
    static const char usual[] = ".out";
    size_t n = strlen(trace), cut = sizeof usual - 1;
    bool has_usual = strlen(gt_path_name(trace)) > cut && strcmp(trace + n - cut, usual) == 0;
    n -= has_usual ? cut : 0;
    if ((size_t)snprintf(name, sizeof name, "%.*s%s", (int)n, trace, extension) >= sizeof name)
        gt_fail(GT_EXIT_FAILED, "%s: %s", trace, strerror(ENAMETOOLONG));
    return name;
}

const char *gt_replacement_refusal(const char *path)
{
    struct stat st;
    if (lstat(path, &st) != 0 || S_ISREG(st.st_mode))
        return NULL;
    return S_ISLNK(st.st_mode) ? "is a symbolic link, and stays as it is" : "is no regular file";
}

/* A symbolic link made there after the check is replaced by the rename, never followed. */
FILE *gt_replacement_begin(const char *path)
{
    const char *refusal = gt_replacement_refusal(path);
    if (refusal)
        gt_fail(GT_EXIT_FAILED, "%s %s", path, refusal);
    if (snprintf(replacement.place, PATH_MAX, "%s", path) >= PATH_MAX ||
        snprintf(replacement.temporary, PATH_MAX, "%s.XXXXXX", path) >= PATH_MAX)
        gt_fail(GT_EXIT_FAILED, "%s: %s", path, strerror(ENAMETOOLONG));
    watch_ends();
    int fd = make_temporary();
    replacement.file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!replacement.file)
        gt_fail(GT_EXIT_FAILED, "%s: %s", path, strerror(errno));
    return replacement.file;
}

const char *gt_replacement_temporary(void)
{
    return replacement.temporary;
}

void gt_replacement_beside(const char *suffix)
{
    replacement.suffix = suffix;
    if (snprintf(replacement.beside, PATH_MAX, "%s%s", replacement.temporary, suffix) >= PATH_MAX)
        gt_fail(GT_EXIT_FAILED, "%s%s: %s", replacement.place, suffix, strerror(ENAMETOOLONG));
    snprintf(replacement.unfinished, sizeof replacement.unfinished, "%s.new", replacement.beside);
}

static bool rename_beside(void)
{
    char place[PATH_MAX + 32];
    if (!*replacement.beside)
        return true;
    snprintf(place, sizeof place, "%s%s", replacement.place, replacement.suffix);
    return rename(replacement.beside, place) == 0;
}

void gt_replacement_finish(const char *like)
{
    struct stat st;
    FILE *file = replacement.file;
    bool ok = fflush(file) == 0 && !ferror(file) && stat(like, &st) == 0 &&
              fchmod(fileno(file), st.st_mode & 0777) == 0;
    int error = errno;
    if (fclose(file) != 0 || !ok || !rename_beside() ||
        rename(replacement.temporary, replacement.place) != 0)
        gt_fail(GT_EXIT_FAILED, "%s: %s", replacement.place, strerror(ok ? errno : error));
    replacement.exists = 0;
}
