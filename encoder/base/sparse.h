/*
 * Tables of which a short run touches a page, or none: at the end of .bss, since the link sorts by
 * names of sections (lld does not). Between them each small variable would have a page of its own,
 * which costs a process some microseconds to touch.
 *
 *     static struct entry table[4096] GT_SPARSE;
 */
#ifndef GT_SPARSE_H
#define GT_SPARSE_H

#define GT_SPARSE __attribute__((section(".bss.sparse")))

#endif
