/*
 * Functions of Python, which have no addresses: each of their lines gets one here, beyond all code,
 * under which a stack keeps it. The names are copied while their code object is alive; a function
 * is known for as long as the process, so there is room for a bounded number of them.
 */
#ifndef GT_PYTHON_H
#define GT_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gt_sym_frame;

/* Addresses of them are from here on. */
#define GT_PYTHON_PCS (1ull << 62)

/* Characters as Python keeps them: 1, 2 or 4 bytes each. */
struct gt_python_text {
    const void *at;
    size_t length; /* characters */
    unsigned width;
};

enum gt_python_lines {
    GT_PYTHON_STEPS,    /* 3.9: where lines begin */
    GT_PYTHON_PAIRS,    /* 3.10: how much code is of which */
    GT_PYTHON_LOCATIONS /* since 3.11: entries of variable length */
};

/*
 * The line of the instruction at byte `at` (negative: the function begins), of a function whose
 * first line is `first`. 0: it has none.
 */
uint32_t gt_python_line(enum gt_python_lines how, const uint8_t *table, size_t size, uint32_t first,
                        int64_t at);

/* As UTF-8, as much as fits into `size` bytes with its end. */
void gt_python_write(const struct gt_python_text *text, char *to, size_t size);

/* The address, as a return address, of that line of a function. 0: there is no room. Any context.
 */
uint64_t gt_python_pc(struct gt_python_text function, struct gt_python_text file, uint32_t line);

/* What is at such an address, or one below it; its strings live forever. Any context. */
bool gt_python_name(uint64_t pc, struct gt_sym_frame *frame);

#endif
