/*
 * GDB's interface for code that is made at run time: a list of ELF files in memory, each of which
 * names functions. The process reads its own; threads may change it meanwhile, and what is read is
 * checked as any file. One thread at a time.
 */
#ifndef GT_GDB_JIT_H
#define GT_GDB_JIT_H

#include "made.h"

struct gt_gdb_jit {
    uint64_t descriptor; /* where it is; 0: not found */
    uint64_t seen;       /* a hash of what was in the list; 0: nothing */
};

/* Looks for it in the dynamic symbols of all modules. Takes the loader's lock. */
bool gt_gdb_jit_find(struct gt_gdb_jit *jit);

/*
 * Reads what is in the list, if that is not what it was. false: it changes just now, or is too long
 * to be read each time: nobody knows what is made.
 */
bool gt_gdb_jit_read(struct gt_gdb_jit *jit, struct gt_made *made, uint64_t now_ns);

#endif
