/*
 * Whether a symbol of Rust's v0 mangling (RFC 2603) is whole, and small once its back references
 * are followed. Those of a damaged name lead into themselves, or each doubles what it repeats, so
 * that a hundred characters are work for years; demanglers follow them without end or until the
 * stack is.
 *
 * Any context: no memory, a bounded number of steps and of stack.
 */
#ifndef GT_RUST_NAME_H
#define GT_RUST_NAME_H

#include <stdbool.h>

/* false: to be shown as it is; `symbol` begins with "_R". */
bool gt_rust_name_is_small(const char *symbol);

#endif
