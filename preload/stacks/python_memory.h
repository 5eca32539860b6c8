/*
 * Reading the interpreter's memory, in the process itself. For python_stack.c, which has the
 * variables, python_names.c and gil.c.
 */
#pragma once

#include "code_layouts.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

enum { GT_PYTHON_PAGE = 4096, GT_PYTHON_PAGES = 1024 };

/* The calling thread walks another thread's frames, which may be gone before the walk is over. */
extern __thread bool gt_python_of_other __attribute__((tls_model("initial-exec")));

extern _Atomic uintptr_t gt_python_readable[GT_PYTHON_PAGES];

/*
 * Whether memory can be read. For a thread's own frames the kernel is asked once for each page:
 * that memory is in use. Python may free another thread's memory when it ends, so the kernel is
 * asked each time.
 */
bool gt_python_can_read_slow(uintptr_t at, size_t size);

static inline _Atomic uintptr_t *gt_python_slot(uintptr_t page)
{
    return &gt_python_readable[page / GT_PYTHON_PAGE % GT_PYTHON_PAGES];
}

static inline bool gt_python_can_read(uintptr_t at, size_t size)
{
    uintptr_t page = at & ~(uintptr_t)(GT_PYTHON_PAGE - 1);
    bool known = page && at - page <= GT_PYTHON_PAGE - size && size <= GT_PYTHON_PAGE &&
                 atomic_load_explicit(gt_python_slot(page), memory_order_relaxed) == page;
    return (__builtin_expect(known, 1) && !gt_python_of_other) || gt_python_can_read_slow(at, size);
}

static inline const void *gt_python_at(uintptr_t at, size_t size)
{
    (void)size;
    return (const void *)at;
}

#include "symbolize/python/with_blocks.h"

/*
 * The innermost function of Python that a thread, the caller, executes, and its first local
 * variable.
 */
struct gt_python_innermost {
    const struct gt_python_layout *layout;
    struct gt_python_text function, file;
    uintptr_t local;
};
bool gt_python_find_innermost(uintptr_t thread, struct gt_python_innermost *found);

/*
 * The address that stands for a function, or for the function of a method; 0: the object is
 * neither. file: where the function is.
 */
uint64_t gt_python_function(uintptr_t object, struct gt_python_text *file);
