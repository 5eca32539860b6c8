/* The files that describe a module: its own file, and those that were split off from it. */
#pragma once

#include "image.h"
#include "modules.h"

struct gt_files {
    struct gt_image main;  /* none: the file is gone or was replaced */
    struct gt_image debug; /* split debug information, by build ID or .gnu_debuglink */
    struct gt_image mini;  /* the symbols in .gnu_debugdata */
    struct gt_image alt;   /* dwz's common part, for the one of main and debug that has DWARF */
};

/*
 * Where to find files of modules of another process, perhaps on another machine. Debug information
 * is looked for first in these directories: below .build-id, at the module's path and by its name,
 * each also with ".debug" appended.
 */
struct gt_files_elsewhere {
    const char *const *directories; /* ends with NULL */
    /* Returns a path when no file was found, or NULL. */
    const char *(*fetch)(const struct gt_module *module);
    /* Called for a file with the right name and another build ID. */
    void (*refused)(const struct gt_module *module, const char *path);
};

/* Treats all modules as those of another process from now on. Never in a traced program. */
void gt_files_set_elsewhere(const struct gt_files_elsewhere *elsewhere);

/* Open and close the files of a module, between gt_elfutils_enter and gt_elfutils_leave. */
void gt_files_open(struct gt_files *files, const struct gt_module *module);
void gt_files_close(struct gt_files *files);

/* Whether a mapped file has changed since it was opened: then its image must not be read. */
bool gt_files_have_changed(const struct gt_files *files);

/* The image with DWARF, or NULL. */
struct gt_image *gt_files_dwarf(struct gt_files *files);
