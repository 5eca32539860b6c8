/*
 * GDB's interface for code that is made at run time: a list of ELF files in memory, each of which
 * names functions. The process reads its own list while its threads may change it, so the contents
 * are checked as those of any file. One thread at a time.
 */
#pragma once

#include "made.h"

struct gt_gdb_jit {
    uint64_t descriptor; /* address of GDB's descriptor; 0: not found */
    uint64_t seen;       /* hash of the list as it was read last; 0: empty */
};

/* Looks for GDB's descriptor in the dynamic symbols of all modules. Takes the loader's lock. */
bool gt_gdb_jit_find(struct gt_gdb_jit *jit);

/*
 * Reads the list if it has changed. false: the list is changing now, or is too long to be read each
 * time, so the code is not known.
 */
bool gt_gdb_jit_read(struct gt_gdb_jit *jit, struct gt_made_functions *made, uint64_t now_ns);
