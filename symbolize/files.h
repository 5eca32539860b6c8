/* The files that describe a module: its own, and what was split off from it. */
#ifndef GT_FILES_H
#define GT_FILES_H

#include "image.h"
#include "modules.h"

struct gt_files {
    struct gt_image main;  /* none: the file is gone or another one by now */
    struct gt_image debug; /* split debug information, by build ID or .gnu_debuglink */
    struct gt_image mini;  /* the symbols in .gnu_debugdata */
    struct gt_image alt;   /* dwz's common part, for the one of main and debug that has DWARF */
};

/*
 * For modules of another process, perhaps of another machine. Debug information is looked for in
 * these directories first: below .build-id, at the module's path and by its name, each also with
 * ".debug" behind it.
 */
struct gt_files_elsewhere {
    const char *const *directories; /* ends with NULL */
    /* Asked for a path when nothing was found, or NULL. */
    const char *(*fetch)(const struct gt_module *module);
    /* Told of a file that should be it and has another build ID. */
    void (*refused)(const struct gt_module *module, const char *path);
};

/* From now on all modules are such. Never in a traced program. */
void gt_files_set_elsewhere(const struct gt_files_elsewhere *elsewhere);

/* Between gt_elfutils_enter and gt_elfutils_leave. */
void gt_files_open(struct gt_files *files, const struct gt_module *module);
void gt_files_close(struct gt_files *files);

/* The one with DWARF, or NULL. */
struct gt_image *gt_files_dwarf(struct gt_files *files);

#endif
