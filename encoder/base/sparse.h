/*
 * Puts a table to the end of .bss or .data, since the linker sorts by section names (lld does not).
 * It is for tables of which a short run touches one page or none. Such tables between small
 * variables would leave each variable a page of its own. To touch a page costs a process some
 * microseconds.
 *
 *     static struct entry table[4096] GT_SPARSE;
 *
 * Tables of a megabyte or more come last. The kernel has a page table for every 2 MiB in which a
 * page was touched, and each fork copies these page tables.
 */
#pragma once

#define GT_SPARSE __attribute__((section(".bss.sparse")))
#define GT_SPARSE_LARGE __attribute__((section(".bss.sparse_large")))
#define GT_SPARSE_DATA __attribute__((section(".data.sparse"))) /* not zero at the start */
