/* Checks of a program: whether it would be traced, and what its stacks would show. */
#include "doctor.h"

#include "scripts/tool/ask.h"
#include "scripts/tool/elf_view.h"
#include "scripts/tool/package.h"
#include "scripts/tool/target.h"
#include "scripts/tool/tool.h"

#include "symbolize/elf/elfutils.h"
#include "symbolize/elf/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    const char *name; /* as given */
    int pid;          /* 0: it is the name of a program */
    struct gt_target target;
    char path[PATH_MAX];     /* of the file that runs, without links; "": it would not be traced */
    struct gt_image image;   /* its symbols. base NULL: it could not be read, or does not matter */
    struct gt_elf_view view; /* the whole file */
} program;

/* Sets the path. That of a process may be another file here: in a container, or replaced. */
static bool find_file(void)
{
    struct stat its, here;
    const char *file = program.target.file;
    if (!*file || stat(file, &its) != 0)
        return false;
    if (!realpath(file, program.path) || stat(program.path, &here) != 0 ||
        here.st_ino != its.st_ino || here.st_dev != its.st_dev)
        snprintf(program.path, sizeof program.path, "%s", file);
    return true;
}

void gt_program_checks_of(const char *name)
{
    char library[PATH_MAX];
    const void *base;
    size_t size;
    enum { PID_DIGITS = 7 }; /* the kernel's PID_MAX_LIMIT is 4,194,304 */
    static char file[64];
    program.name = name;
    size_t digits = strspn(name, "0123456789");
    if (digits && digits <= PID_DIGITS && !name[digits] && *name != '0') {
        program.pid = (int)strtol(name, NULL, 10);
        snprintf(file, sizeof file, "/proc/%d/exe", program.pid);
        name = file;
    }
    gt_find_library(library);
    gt_target_look(&program.target, name, library);
    if (program.target.status || !find_file())
        program.path[0] = 0; /* nothing but the reason matters */
    else if (!gt_target_map(program.path, &base, &size) ||
             !gt_elf_view(&program.view, base, size) ||
             gt_image_open(&program.image, program.path) != 0)
        program.image.base = NULL;
}

static bool is_read(struct gt_check *c)
{
    c->health = GT_HEALTH_UNASKED;
    return program.image.base != NULL;
}

/* What to type if the name is not that of a program, but of a file here. */
static void mend_name(struct gt_check *c)
{
    const char *name = program.name, *end = strrchr(name, '.');
    const char *here = strchr(name, '/') ? "" : "./";
    char path[PATH_MAX];
    struct stat st;
    snprintf(path, sizeof path, "%s%s", here, name);
    if (stat(name, &st) != 0 || !S_ISREG(st.st_mode))
        return;
    if (access(name, X_OK) != 0 && end && strcmp(end, ".py") == 0)
        gt_mend(c, "gotrace -- python3 %s", gt_to_type(name));
    else if (access(name, X_OK) != 0)
        gt_mend(c, "chmod +x %s && gotrace doctor %s", gt_to_type(path), gt_to_type(path));
    else if (*here)
        gt_mend(c, "gotrace doctor %s", gt_to_type(path));
}

static void look_at_tracing(struct gt_check *c)
{
    const struct gt_target *target = &program.target;
    if (program.pid) {
        gt_process_look(c, program.pid, target);
    } else if (target->status) {
        gt_found(c, GT_HEALTH_MISSING, "%s", target->why);
        gt_mend(c, "%s", target->mend);
        mend_name(c);
    } else if (!*target->file) {
        gt_found(c, GT_HEALTH_MISSING,
                 "%s may be run, but not read: whether it would be traced is not known, and its "
                 "functions would have no names",
                 program.name);
        gt_mend(c, "%schmod +r %s", gt_as_root(), gt_to_type(program.name));
    } else if (*target->absent) {
        gt_found(c, GT_HEALTH_MISSING,
                 "%s, which runs the script, is told to run %s: there is no such program",
                 target->file, target->absent);
        gt_mend(c, "install %s, or name another one in the first line of the script",
                target->absent);
    } else {
        gt_found(c, GT_HEALTH_OK, "%s%s is dynamically linked to glibc: it would be traced",
                 target->file, target->script ? ", which runs the script," : "");
    }
}

static void mend_symbols(struct gt_check *c)
{
    char line[512];
    const char *name = gt_debug_package_of(program.path);
    if (!*name) {
        gt_mend(c, "build it with -g, and do not strip it");
        return;
    }
    int known = gt_ask((const char *const[]){"apt-cache", "show", name, NULL}, line, sizeof line);
    if (known < 0) {
        gt_mend(c, "%sdnf debuginfo-install %s (or: gotrace symbolize --debuginfod TRACE)",
                gt_as_root(), gt_package_of(program.path));
    } else if (known == 0 && *line) {
        gt_mend(c, "%sapt install %s", gt_as_root(), name);
    } else {
        const char *source = gt_debug_source();
        gt_mend(c, "gotrace symbolize --debuginfod TRACE (or install %s, from %s)", name,
                *source ? source : "an archive that apt does not know here");
    }
}

/* Whether the dynamic symbols have functions of the program's own, which it exports to libraries.
 */
static bool exports_functions(void)
{
    enum { MANY = 16 }; /* a few are startup code's */
    size_t size, n = 0;
    const ElfW(Sym) *symbol = gt_image_section(&program.image, ".dynsym", &size);
    for (size_t i = 0; symbol && i < size / sizeof *symbol; i++)
        n += symbol[i].st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol[i].st_info) == STT_FUNC;
    return n >= MANY;
}

/* The separate file with debug information, where stacks take it from; "": there is none. */
static const char *debug_file(void)
{
    static struct gt_files files;
    struct gt_module module = {.path = program.path, .build_id_len = program.image.build_id_len};
    jmp_buf bail;
    memcpy(module.build_id, program.image.build_id, sizeof module.build_id);
    if (setjmp(bail) == 0) {
        gt_elfutils_enter(&bail);
        gt_files_open(&files, &module);
    }
    gt_elfutils_leave();
    return files.debug.has_dwarf ? files.debug.path : "";
}

static void look_at_symbols(struct gt_check *c)
{
    if (!is_read(c))
        return;
    const char *separate = program.image.has_dwarf ? "" : debug_file();
    if ((program.image.has_dwarf || *separate) && !gt_has_libdw()) {
        gt_found(c, GT_HEALTH_LIMITED,
                 "there is debug information, but no libdw.so.1 here that finds lines of code in "
                 "it");
        gt_mend_libdw(c);
        return;
    }
    if (program.image.has_dwarf)
        gt_found(c, GT_HEALTH_OK, "functions and lines of code: the file has debug information");
    else if (*separate)
        gt_found(c, GT_HEALTH_OK, "functions and lines of code: %s", separate);
    else if (program.image.has_symtab || gt_image_header(&program.image, ".gnu_debugdata"))
        gt_found(c, GT_HEALTH_LIMITED,
                 "names of functions, but no lines of code: there is no debug "
                 "information");
    else if (exports_functions())
        gt_found(c, GT_HEALTH_LIMITED,
                 "it is stripped: only functions that it exports to libraries have names, and "
                 "there are no lines of code");
    else
        gt_found(c, GT_HEALTH_LIMITED, "it is stripped: its own functions are shown as addresses");
    if (c->health != GT_HEALTH_OK)
        mend_symbols(c);
}

static void look_at_stacks(struct gt_check *c)
{
    if (!is_read(c))
        return;
    bool unwinds = program.view.unwinds;
    gt_found(c, unwinds ? GT_HEALTH_OK : GT_HEALTH_LIMITED,
             unwinds ? "callers are found by its unwind tables (.eh_frame)"
                     : "it has no unwind tables (.eh_frame): callers are found only by frame "
                       "pointers");
    gt_mend(c, "build it with -fasynchronous-unwind-tables or -fno-omit-frame-pointer");
}

/* Asks the loader, if it is that of this system, for a library that it does not find. */
static bool is_lost(char *line, size_t size)
{
    const char *loader = program.view.interpreter;
    if (program.pid || !loader || strncmp(loader, "/lib", 4) != 0)
        return false;
    gt_ask_errors((const char *const[]){loader, "--list", program.path, NULL}, line, size);
    return strstr(line, "error while loading");
}

static void look_at_libraries(struct gt_check *c)
{
    static const struct {
        const char *start, *says;
    } known[] = {{"libjemalloc", "jemalloc"}, {"libtcmalloc", "tcmalloc"},
                 {"libmimalloc", "mimalloc"}, {"libtbb", "oneTBB"},
                 {"libgomp", "OpenMP (gcc)"}, {"libomp", "OpenMP (clang)"},
                 {"libpython3", "Python"}};
    char list[512] = "", lost[512];
    if (!is_read(c))
        return;
    if (is_lost(lost, sizeof lost)) {
        gt_found(c, GT_HEALTH_MISSING, "the program cannot start: %s", lost);
        gt_mend(c, "install the package with that library, or: export LD_LIBRARY_PATH=FOLDER");
        return;
    }
    for (const char *const *name = program.view.needed; *name; name++) {
        for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
            size_t n = strlen(list);
            if (strncmp(*name, known[i].start, strlen(known[i].start)) == 0)
                snprintf(list + n, sizeof list - n, "%s%s", n ? ", " : "", known[i].says);
        }
    }
    gt_found(c, *list ? GT_HEALTH_OK : GT_HEALTH_UNASKED, "%s: known to the library", list);
}

static void look_at_python(struct gt_check *c)
{
    const char *base = strrchr(program.path, '/');
    int minor = 0;
    char free_threaded = 0; /* 't' */
    c->health = GT_HEALTH_UNASKED;
    if (!base || sscanf(base, "/python3.%d%c", &minor, &free_threaded) < 1)
        return;
    bool known = minor >= 9 && minor <= 15 && free_threaded != 't';
    gt_found(c, known ? GT_HEALTH_OK : GT_HEALTH_LIMITED, "Python 3.%d: stacks show %s", minor,
             known ? "lines of Python, waits for the GIL are waits for a lock"
                   : "the interpreter's functions, no lines of Python");
    gt_mend(c, "use Python 3.9 to 3.15, not free-threaded");
}

const struct gt_check_row gt_program_checks[] = {
    {"tracing", look_at_tracing, true}, {"symbols", look_at_symbols, false},
    {"stacks", look_at_stacks, false},  {"libraries", look_at_libraries, true},
    {"python", look_at_python, false},  {0}};
