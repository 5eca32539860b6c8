/* See target.h. */
#include "target.h"

#include "elf_view.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { NESTED_MAX = 5 }; /* scripts whose interpreter is a script: the kernel's limit */

static void __attribute__((format(printf, 3, 4)))
refuse(struct gt_target *t, int status, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vsnprintf(t->why, sizeof t->why, format, ap);
    va_end(ap);
    t->status = status;
}

static void __attribute__((format(printf, 2, 3))) mend(struct gt_target *t, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vsnprintf(t->mend, sizeof t->mend, format, ap);
    va_end(ap);
}

/* Names -------------------------------------------------------------------------------------- */

static int can_run(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return errno;
    if (S_ISDIR(st.st_mode))
        return EISDIR;
    if (!S_ISREG(st.st_mode))
        return EACCES; /* as execve(2); to open a FIFO would wait for its writer */
    return access(path, X_OK) == 0 ? 0 : errno;
}

int gt_target_find(const char *name, char path[PATH_MAX])
{
    const char *dirs = getenv("PATH");
    int error = ENOENT;
    if (strchr(name, '/') || !*name) {
        snprintf(path, PATH_MAX, "%s", name);
        return can_run(name);
    }
    for (const char *d = dirs ? dirs : "/bin:/usr/bin", *next; d; d = next) {
        size_t n = strcspn(d, ":");
        next = d[n] ? d + n + 1 : NULL;
        snprintf(path, PATH_MAX, "%.*s%s%s", (int)n, d, n ? "/" : "", name);
        int found = can_run(path);
        if (found == 0)
            return 0;
        if (found == EACCES)
            error = EACCES;
    }
    return error;
}

/* The file's contents ------------------------------------------------------------------------ */

bool gt_target_map(const char *path, const void **base, size_t *size)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    *base = MAP_FAILED;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
        *size = (size_t)st.st_size;
        *base = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    if (fd >= 0)
        close(fd);
    return *base != MAP_FAILED;
}

/* Whether the program would get its privileges: a mount or no_new_privs may forbid that. */
static bool privileges_count(const char *path)
{
    struct statvfs fs;
    char line[128];
    bool forbidden = statvfs(path, &fs) == 0 && (fs.f_flag & ST_NOSUID);
    FILE *status = fopen("/proc/self/status", "re");
    while (status && fgets(line, sizeof line, status))
        forbidden |= strcmp(line, "NoNewPrivs:\t1\n") == 0;
    if (status)
        fclose(status);
    return !forbidden;
}

/* A program that starts with more privileges than its caller's ignores LD_PRELOAD: ld.so(8). */
static const char *privilege(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0 || !privileges_count(path))
        return NULL;
    if ((st.st_mode & S_ISUID) && st.st_uid != getuid())
        return "set-user-ID";
    if ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && st.st_gid != getgid())
        return "set-group-ID";
    if (getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0)
        return "given file capabilities";
    return NULL;
}

static bool starts(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

static void refuse_sanitizer(struct gt_target *t, const char *path, const char *name,
                             const char *flag)
{
    refuse(t, GT_EXIT_CANNOT_RUN,
           "%s is built with %s, which no other library that stands before libc gets along with",
           path, name);
    mend(t, "build it without -fsanitize=%s", flag);
}

static void look_at_sanitizers(struct gt_target *t, const char *path, const struct gt_elf_view *v)
{
    bool of_threads = gt_elf_defines(v, "__tsan_init"); /* it is linked statically */
    for (const char *const *name = v->needed; *name; name++) {
        of_threads |= starts(*name, "libtsan.") || starts(*name, "libclang_rt.tsan");
        if (starts(*name, "liblsan."))
            refuse_sanitizer(t, path, "LeakSanitizer alone", "leak, or with -fsanitize=address");
        if (starts(*name, "libasan.")) /* libasan must be the first library */
            snprintf(t->first, sizeof t->first, "%s", *name);
    }
    if (of_threads)
        refuse_sanitizer(t, path, "ThreadSanitizer", "thread");
}

static void look_at_loader(struct gt_target *t, const char *path, const struct gt_elf_view *v)
{
    static const char *const foreign[] = {"musl", "uClibc", "/linker"};
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        if (strstr(v->interpreter, foreign[i])) {
            refuse(t, GT_EXIT_CANNOT_RUN,
                   "%s is linked to another libc%s: its loader is %s, and libgotrace.so is made "
                   "for glibc",
                   path, i == 0 ? ", musl" : "", v->interpreter);
            mend(t, "build it on a system with glibc");
            return;
        }
    }
    if (!starts(path, "/proc/") /* of a running process */ && access(v->interpreter, X_OK) != 0) {
        mend(t, "build it on this system, or run it on the one that it was built for");
        refuse(t, GT_EXIT_CANNOT_RUN, "%s cannot start here: its loader %s is missing", path,
               v->interpreter);
    }
}

/* Refuses an ELF file that is no program, as execve(2) does, or that would end as it starts. */
static void look_at_kind(struct gt_target *t, const char *path, const struct gt_elf_view *v)
{
    if (v->type == ET_CORE) {
        refuse(t, GT_EXIT_CANNOT_RUN, "%s is a core file, and no program", path);
        mend(t, "gotrace stacks %s", gt_to_type(path));
    } else if (v->type != ET_EXEC && v->type != ET_DYN) {
        refuse(t, GT_EXIT_CANNOT_RUN, "%s is an object file, and no program: link it", path);
        mend(t, "cc %s -o PROGRAM", gt_to_type(path));
    } else if (!v->whole) {
        refuse(t, GT_EXIT_CANNOT_RUN,
               "%s is cut short: it ends before the contents that its headers tell of", path);
        mend(t, "build it or copy it again");
    } else if (v->type == ET_DYN && !v->interpreter && !v->pie) {
        refuse(t, GT_EXIT_CANNOT_RUN, "%s is a shared library, and no program", path);
        mend(t, "gotrace doctor PROGRAM (one that loads the library)");
    }
}

/* Tells how to run a program as the user or group that it would become. */
static void mend_privilege(struct gt_target *t, const char *path)
{
    struct stat st;
    const char *sudo = getuid() == 0 ? "" : "sudo ";
    if (stat(path, &st) != 0)
        return;
    if ((st.st_mode & S_ISUID) && st.st_uid != getuid())
        mend(t, "%ssetpriv --reuid=%d --clear-groups gotrace -o /tmp/t.out -- %s", sudo,
             (int)st.st_uid, gt_to_type(path));
    else if ((st.st_mode & S_ISGID) && st.st_gid != getgid())
        mend(t, "%ssetpriv --regid=%d --keep-groups gotrace -- %s", sudo, (int)st.st_gid,
             gt_to_type(path));
    else
        mend(t, "%sgotrace -- %s", sudo, gt_to_type(path));
}

static void look_at_elf(struct gt_target *t, const char *path, const struct gt_elf_view *v,
                        const struct gt_elf_view *ours)
{
    const char *privileged = privilege(path);
    bool is_loader = v->soname && starts(v->soname, "ld-");
    if (v->native && !is_loader)
        look_at_kind(t, path, v);
    if (t->status)
        return;
    if (!gt_elf_same_architecture(v, ours)) {
        char theirs[64];
        snprintf(theirs, sizeof theirs, "%s", gt_elf_architecture(v));
        refuse(t, GT_EXIT_CANNOT_RUN, "%s is made for %s, and libgotrace.so for %s", path, theirs,
               gt_elf_architecture(ours));
        mend(t, "build the program for %s", gt_elf_architecture(ours));
    } else if (privileged) {
        refuse(t, GT_EXIT_CANNOT_RUN,
               "%s is %s: such programs preload nothing. Run gotrace as the user it becomes", path,
               privileged);
        mend_privilege(t, path);
    } else if (v->interpreter && *v->needed) {
        look_at_loader(t, path, v);
        look_at_sanitizers(t, path, v);
    } else if (is_loader) {
        return; /* the loader, started as a program: LD_PRELOAD holds for what it loads */
    } else if (v->go) {
        refuse(t, GT_EXIT_CANNOT_RUN,
               "%s is a Go program without cgo: there is no libc in it to preload anything to. "
               "Go's own runtime/trace sees its goroutines",
               path);
        mend(t, "call runtime/trace.Start in it");
    } else if (v->interpreter) {
        refuse(t, GT_EXIT_CANNOT_RUN, "%s uses no library, so no libc: there are no calls to see",
               path);
        mend(t, "strace -f %s (shows its system calls)", gt_to_type(path));
    } else {
        refuse(t, GT_EXIT_CANNOT_RUN,
               "%s is statically linked: no library can be preloaded to it. Link it dynamically",
               path);
        mend(t, "build it without -static");
    }
}

static void look(struct gt_target *t, const char *name, const struct gt_elf_view *ours, int depth);

static bool takes_argument(const char *option)
{
    static const char *const options[] = {"-u", "--unset", "-C", "--chdir"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (strcmp(option, options[i]) == 0)
            return true;
    }
    return false;
}

/* The program that env(1) runs, from its words; NULL: not known. */
static char *program_of_env(char *words)
{
    for (char *save, *w = strtok_r(words, " \t", &save); w; w = strtok_r(NULL, " \t", &save)) {
        if (takes_argument(w) && !strtok_r(NULL, " \t", &save))
            return NULL;
        w += starts(w, "-S") ? 2 : 0;
        if (*w && *w != '-' && !strchr(w, '='))
            return w;
    }
    return NULL;
}

/*
 * Looks at the program of `#!/usr/bin/env [-S] [-option]… [NAME=value]… program`. If there is no
 * such program, a run leaves the message to env: the wrong word may have been taken for it.
 */
static void look_behind_env(struct gt_target *t, char *words, const struct gt_elf_view *ours,
                            int depth)
{
    char path[PATH_MAX], *program = program_of_env(words);
    if (program && gt_target_find(program, path) == 0)
        look(t, program, ours, depth);
    else if (program)
        snprintf(t->absent, sizeof t->absent, "%s", program);
}

static void look_at_script(struct gt_target *t, const char *path, const char *text, size_t size,
                           const struct gt_elf_view *ours, int depth)
{
    char line[PATH_MAX], why[sizeof t->why], *words;
    size_t n = size < sizeof line ? size : sizeof line - 1;
    memcpy(line, text, n);
    line[n] = 0;
    line[strcspn(line, "\n")] = 0;
    char *interpreter = strtok_r(line + 2, " \t", &words);
    if (!interpreter && depth == 0)
        look(t, "/bin/sh", ours, 1); /* a format unknown to the kernel: see there */
    if (!interpreter || depth >= NESTED_MAX)
        return; /* the kernel will report the error */
    t->script = true;
    look(t, interpreter, ours, depth + 1);
    if (!t->status && strcmp(basename(interpreter), "env") == 0)
        look_behind_env(t, words, ours, depth + 1);
    if (t->status) {
        snprintf(why, sizeof why, "%s", t->why);
        refuse(t, GT_EXIT_CANNOT_RUN, "%.*s is a script: %.*s", PATH_MAX, path, PATH_MAX, why);
        if (strchr(interpreter, '\r'))
            mend(t, "sed -i 's/\\r$//' %s (its lines end as in Windows)", gt_to_type(path));
    }
}

static void look(struct gt_target *t, const char *name, const struct gt_elf_view *ours, int depth)
{
    char path[PATH_MAX];
    const void *base;
    size_t size;
    struct gt_elf_view view;
    int error = gt_target_find(name, path);
    if (depth == 0)
        t->runs = !error;
    if (error)
        refuse(t, error == ENOENT || error == ENOTDIR ? GT_EXIT_NOT_FOUND : GT_EXIT_CANNOT_RUN,
               "%s: %s", name, strerror(error));
    else if (access(path, R_OK) != 0)
        return; /* a program that may be run but not read cannot be checked */
    else if (!gt_target_map(path, &base, &size)) /* it is empty */
        look(t, "/bin/sh", ours, depth + 1);
    else if (size > 2 && memcmp(base, "#!", 2) == 0)
        look_at_script(t, path, base, size, ours, depth);
    else if (gt_elf_view(&view, base, size)) {
        snprintf(t->file, sizeof t->file, "%s", path);
        look_at_elf(t, path, &view, ours);
    } else if (depth ==
               0) /* execvp(3) has the shell run a file of a format unknown to the kernel */
        look(t, "/bin/sh", ours, depth + 1);
}

void gt_target_look(struct gt_target *t, const char *program, const char *library)
{
    struct gt_elf_view ours;
    const void *base;
    size_t size;
    *t = (struct gt_target){0};
    if (!gt_target_map(library, &base, &size) || !gt_elf_view(&ours, base, size))
        refuse(t, GT_EXIT_OURS, "%s is not a library", library);
    else
        look(t, program, &ours, 0);
}
