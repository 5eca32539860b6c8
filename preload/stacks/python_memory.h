/*
 * Reading the interpreter's memory, where anything may not be as it has to be: for python.c, which
 * has the variables, and python_names.c.
 */
#ifndef GT_PYTHON_MEMORY_H
#define GT_PYTHON_MEMORY_H

#include "layouts.h"
#include "python_layouts.h"

#include <stdatomic.h>
#include <stddef.h>

enum { GT_PYTHON_TYPE = 8, GT_PYTHON_SIZE = 16 }; /* in an object */
enum { GT_PYTHON_PAGE = 4096, GT_PYTHON_PAGES = 1024 };

/* The caller walks another thread's frames, which may have gone before it is back. */
extern __thread bool gt_python_of_other __attribute__((tls_model("initial-exec")));

extern _Atomic uintptr_t gt_python_readable[GT_PYTHON_PAGES];

/*
 * The kernel is asked for each page once: what a thread follows of its own is in use. What is
 * another one's may be given back when Python ends: asked each time.
 */
static inline bool gt_python_can_read_page(uintptr_t page)
{
    _Atomic uintptr_t *slot = &gt_python_readable[page / GT_PYTHON_PAGE % GT_PYTHON_PAGES];
    if (!gt_python_of_other && atomic_load_explicit(slot, memory_order_relaxed) == page)
        return true;
    if (!gt_page_readable(page))
        return false;
    atomic_store_explicit(slot, page, memory_order_relaxed);
    return true;
}

static inline bool gt_python_can_read(uintptr_t at, size_t size)
{
    uintptr_t page = at & ~(uintptr_t)(GT_PYTHON_PAGE - 1), end = at + size;
    bool can = at >= GT_PYTHON_PAGE && end >= at && end <= UINTPTR_MAX - GT_PYTHON_PAGE;
    for (; can && page < end; page += GT_PYTHON_PAGE)
        can = gt_python_can_read_page(page);
    return can;
}

static inline uintptr_t gt_python_word(uintptr_t at)
{
    return *(const uintptr_t *)at;
}

static inline bool gt_python_read_word(uintptr_t at, uintptr_t *word)
{
    bool can = at % sizeof *word == 0 && gt_python_can_read(at, sizeof *word);
    if (can)
        *word = gt_python_word(at);
    return can;
}

static inline bool gt_python_is_object(uintptr_t at, uintptr_t type, size_t size)
{
    return at % sizeof(uintptr_t) == 0 && gt_python_can_read(at, size) &&
           gt_python_word(at + GT_PYTHON_TYPE) == type;
}

/* A string's characters, where it is one. */
bool gt_python_read_text(uintptr_t at, struct gt_python_text *text);

/* The innermost function of Python that a thread executes, which calls; its first local variable.
 */
struct gt_python_innermost {
    const struct gt_python_layout *layout;
    struct gt_python_text function, file;
    uintptr_t local;
};
bool gt_python_find_innermost(uintptr_t thread, struct gt_python_innermost *found);

#endif
