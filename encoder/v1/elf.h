/*
 * Names for Go 1.5's traces, whose stacks are addresses only. The reader asks `go tool addr2line
 * PROGRAM`, which knows the line tables that Go's linker makes and no others. So beside the trace
 * goes a small ELF file with such a table: a function of its own for each frame, at addresses that
 * stand for nothing else. Drain side only.
 */
#ifndef GT_V1_ELF_H
#define GT_V1_ELF_H

#include "encoder/frames.h"

/* For a file; from open to close no era of strings and stacks may begin. */
void gt_v1_elf_open(void);
void gt_v1_elf_close(void);

/* The address that stands for this frame. */
uint64_t gt_v1_elf_pc(struct gt_named_frame *frame);

/* That which the next new frame gets. */
uint64_t gt_v1_elf_next_pc(void);

/* The number of an address in the line table, from 1 on; 0: it has no such address. */
uint32_t gt_v1_elf_entry(uint64_t pc);

/* The frame at an address that the former returned, or NULL. */
struct gt_named_frame *gt_v1_elf_frame(uint64_t pc);

/* The address of a stack's leaf; 0: none was set. */
void gt_v1_elf_set_leaf(uint32_t stack_id, struct gt_named_frame *frame);
uint64_t gt_v1_elf_leaf(uint32_t stack_id);

/* Replaces the file beside the trace if there are new frames. 0 or -errno. */
int gt_v1_elf_write(void);

#endif
