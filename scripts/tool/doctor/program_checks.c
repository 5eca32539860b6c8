/* Checks of a program: whether it would be traced, and what its stacks would show. */
#include "doctor.h"

#include "scripts/tool/ask.h"
#include "scripts/tool/elf_view.h"
#include "scripts/tool/package.h"
#include "scripts/tool/target.h"
#include "scripts/tool/tool.h"

#include "symbolize/elf/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    const char *name; /* as given */
    struct gt_target target;
    char path[PATH_MAX];     /* of the file that runs, without links; "": it would not be traced */
    struct gt_image image;   /* its symbols. base NULL: it could not be read, or does not matter */
    struct gt_elf_view view; /* the whole file */
} program;

void gt_program_checks_of(const char *name)
{
    char library[PATH_MAX];
    const void *base;
    size_t size;
    gt_find_library(library);
    gt_target_look(&program.target, name, library);
    program.name = name;
    if (program.target.status || !realpath(program.target.file, program.path))
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
    const char *here = strchr(name, '/') ? "" : "./", *typed = gt_to_type(name);
    struct stat st;
    if (stat(name, &st) != 0 || !S_ISREG(st.st_mode))
        return;
    if (access(name, X_OK) != 0 && end && strcmp(end, ".py") == 0)
        gt_mend(c, "gotrace -- python3 %s", typed);
    else if (access(name, X_OK) != 0)
        gt_mend(c, "chmod +x %s%s && gotrace doctor %s%s", here, typed, here, typed);
    else if (*here)
        gt_mend(c, "gotrace doctor ./%s", typed);
}

static void look_at_tracing(struct gt_check *c)
{
    const struct gt_target *target = &program.target;
    if (target->status) {
        gt_found(c, GT_HEALTH_MISSING, "%s", target->why);
        mend_name(c);
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
    if (known == 0 && *line)
        gt_mend(c, "%sapt install %s", gt_as_root(), name);
    else if (known >= 0)
        gt_mend(c,
                "gotrace symbolize --debuginfod TRACE (or install %s, which is in none of the "
                "archives that apt knows here)",
                name);
    else
        gt_mend(c,
                "%sdnf debuginfo-install %s (or: gotrace symbolize --debuginfod "
                "TRACE)",
                gt_as_root(), gt_package_of(program.path));
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

/* The separate file with debug information, by build ID; "": there is none. */
static const char *debug_file(void)
{
    static char path[PATH_MAX];
    const struct gt_image *image = &program.image;
    size_t n = (size_t)snprintf(path, sizeof path, "/usr/lib/debug/.build-id/");
    if (image->build_id_len < 2)
        return "";
    for (size_t i = 0; i < image->build_id_len; i++)
        n += (size_t)sprintf(path + n, "%02x%s", image->build_id[i], i ? "" : "/");
    strcpy(path + n, ".debug");
    return access(path, R_OK) == 0 ? path : "";
}

static void look_at_symbols(struct gt_check *c)
{
    if (!is_read(c))
        return;
    const char *separate = debug_file();
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

static void look_at_libraries(struct gt_check *c)
{
    static const struct {
        const char *start, *says;
    } known[] = {{"libjemalloc", "jemalloc"}, {"libtcmalloc", "tcmalloc"},
                 {"libmimalloc", "mimalloc"}, {"libtbb", "oneTBB"},
                 {"libgomp", "OpenMP (gcc)"}, {"libomp", "OpenMP (clang)"},
                 {"libpython3", "Python"}};
    char list[512] = "";
    if (!is_read(c))
        return;
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
    {"stacks", look_at_stacks, false},  {"libraries", look_at_libraries, false},
    {"python", look_at_python, false},  {0}};
