/*
 * Whether a symbol of Rust's v0 mangling (RFC 2603) is complete, and small after its back
 * references are expanded. In a damaged name a back reference may lead into itself, or each may
 * double the text that it repeats, so that a hundred characters mean work for years. Demanglers
 * follow such references without end, or until the stack overflows.
 *
 * Any context: no memory, a bounded number of steps and of stack.
 */
#pragma once

#include <stdbool.h>

/* symbol begins with "_R". false: the caller should show the mangled name. */
bool gt_rust_name_is_small(const char *symbol);
