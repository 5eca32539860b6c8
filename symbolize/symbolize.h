/*
 * PCs to functions, files and lines. Needs a recorded module map (modules.h); knows nothing of
 * traces.
 */
#ifndef GT_SYMBOLIZE_H
#define GT_SYMBOLIZE_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * longjmp, reached through a pointer as gt_syscall is: a hook of it would take our jump, in a
 * thread of the program's, for one out of our code.
 */
extern void (*gt_symbolize_jump)(jmp_buf env, int value);

struct gt_sym_frame {
    const char *func, *file;
    uint32_t line; /* 0: unknown */
};

struct gt_symbolizer;

/* Never NULL. Without elfutils names are those of symbols, without memory "?". */
struct gt_symbolizer *gt_symbolizer_new(void);

/*
 * The frames at pc: innermost inlined function first, the function that has a symbol last. is_call:
 * pc is a return address, what counts is the call before it. Returns their number, 1 to max. Names
 * are demangled; without a symbol "module+0xoffset", or "0x…" outside all modules. file is the
 * source file, else the module's path, else "". Strings live until the next call, and, where
 * no module has been unloaded, names and files in modules until gt_symbolizer_free. One thread at a
 * time.
 */
int gt_symbolize(struct gt_symbolizer *s, uint64_t epoch, uint64_t pc, bool is_call,
                 struct gt_sym_frame *out, int max);

/*
 * The variable around an address, and how far from its beginning that is; or NULL. *which: what
 * tells it from others of its name: of a static one of a library that; of several in the module the
 * source file, or the address there; "": nothing has to. As gt_symbolize.
 */
const char *gt_symbolize_variable(struct gt_symbolizer *s, uint64_t epoch, uint64_t address,
                                  uint64_t *offset, const char **which);

/* Whether the module that is there has been found in a file, of its own or for debuggers. */
bool gt_symbolize_has_files(struct gt_symbolizer *s, uint64_t epoch, uint64_t address);

/* Loads what the first gt_symbolize would load. Not in signal handlers. */
void gt_symbolize_prepare(void);

/*
 * Reads all that could be asked for of the modules that are loaded: files may be out of reach from
 * now on. Where gt_symbolize may be called.
 */
void gt_symbolize_hold(struct gt_symbolizer *s);

/* From now on nothing is loaded: the process may die holding malloc's or the loader's lock. */
void gt_symbolize_freeze(void);

void gt_symbolizer_free(struct gt_symbolizer *s);

/*
 * Around a fork, the end in parent and child: nobody is in the middle of loading elfutils, with
 * locks of the loader that in the child would be held for ever. false: it takes longer than a
 * second; then there must be no end. Any thread.
 */
bool gt_symbolize_fork_begin(void);
void gt_symbolize_fork_end(void);

#endif
