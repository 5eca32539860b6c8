/*
 * Translates PCs into functions, files and lines. Needs a recorded module map (modules.h); knows
 * nothing of traces.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct gt_sym_frame {
    const char *func, *file;
    uint32_t line; /* 0: unknown */
};

struct gt_symbolizer;

/* Never NULL. Without elfutils, names come from symbol tables; without memory, names are "?". */
struct gt_symbolizer *gt_symbolizer_new(void);

/*
 * Finds the frames at pc: the innermost inlined function first, the function that has a symbol
 * last. Returns their number, 1 to max. One thread at a time.
 * - is_call: pc is a return address, and the frames are those of the call before it.
 * - Names are demangled. Without a symbol they are "module+0xoffset", or "0x…" outside all modules.
 * - `file` is the source file, else the module's path, else "".
 * - Strings live until the next call. As long as no module is unloaded, names and files in modules
 *   live until gt_symbolizer_free.
 */
int gt_symbolize(struct gt_symbolizer *s, uint64_t epoch, uint64_t pc, bool is_call,
                 struct gt_sym_frame *out, int max);

/*
 * The name of the variable around an address, and the offset in it; NULL: none. *which
 * distinguishes it from other variables of that name.
 * - For a library's static variable, it has the library's name.
 * - For one of several in a module, it has the source file, or the address there.
 * - For a unique name, it is "".
 *
 * Strings live as long as those of gt_symbolize. One thread at a time.
 */
const char *gt_symbolize_variable(struct gt_symbolizer *s, uint64_t epoch, uint64_t address,
                                  uint64_t *offset, const char **which);

/*
 * Whether a file was found for the module at the address: its own, or one for debuggers. debug:
 * only one with debug information counts.
 */
bool gt_symbolize_has_files(struct gt_symbolizer *s, uint64_t epoch, uint64_t address, bool debug);

/*
 * Reads all that look-ups in the loaded modules may need: files may be out of reach from now on.
 * For callers that may call gt_symbolize.
 */
void gt_symbolize_hold(struct gt_symbolizer *s);

/* Loads the libraries that the first gt_symbolize would load. Not in signal handlers. */
void gt_symbolize_prepare(void);

void gt_symbolizer_free(struct gt_symbolizer *s);
