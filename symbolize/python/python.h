/*
 * Addresses for Python functions, which have none: each of their lines gets an address beyond all
 * code, which stands for it in stacks. The names are copied while their code object is alive. A
 * function stays known as long as the process lives, so the number of functions is bounded.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gt_sym_frame;

/* The addresses of Python lines begin here. */
#define GT_PYTHON_PCS (1ull << 62)

/* Characters as Python keeps them: 1, 2 or 4 bytes each. */
struct gt_python_text {
    const void *at;
    size_t length; /* characters */
    unsigned width;
};

enum gt_python_lines {
    GT_PYTHON_STEPS,    /* 3.9: steps of code and line (co_lnotab) */
    GT_PYTHON_PAIRS,    /* 3.10: length of code and its line (co_linetable) */
    GT_PYTHON_LOCATIONS /* since 3.11: entries of variable length */
};

/*
 * The line of the instruction at byte `at` (negative: the function begins), of a function whose
 * first line is `first`. 0: it has none.
 */
uint32_t gt_python_line(enum gt_python_lines how, const uint8_t *table, size_t size, uint32_t first,
                        int64_t at);

/* Writes the text as UTF-8, as much as fits into `size` bytes including the final zero. */
void gt_python_write(const struct gt_python_text *text, char *to, size_t size);

/* The address for a line of a function, as a return address. 0: there is no room. Any context. */
uint64_t gt_python_pc(struct gt_python_text function, struct gt_python_text file, uint32_t line);

/* The function and line at such an address, or at one below it. The strings live forever. Any
 * context. */
bool gt_python_name(uint64_t pc, struct gt_sym_frame *frame);
