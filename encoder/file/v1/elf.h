/*
 * Names for Go 1.5's traces, whose stacks are addresses only. The reader asks `go tool addr2line
 * PROGRAM`, which knows only the line tables that Go's linker makes. So a small ELF file with such
 * a table goes beside the trace. Each frame is a function of its own there, at an address that
 * stands for nothing else. Drain side only.
 */
#pragma once

#include "encoder/file/frames.h"

/* Begins and ends a file's table; in between no era of strings and stacks may begin. */
void gt_v1_elf_open(void);
void gt_v1_elf_close(void);

/* Returns the address that stands for the frame. */
uint64_t gt_v1_elf_pc(struct gt_named_frame *frame);

/* The address that the next new frame gets. */
uint64_t gt_v1_elf_next_pc(void);

/* The number of an address in the line table, from 1 on; 0: the table does not have it. */
uint32_t gt_v1_elf_entry(uint64_t pc);

/* The frame at an address that gt_v1_elf_pc returned, or NULL. */
struct gt_named_frame *gt_v1_elf_frame(uint64_t pc);

/* Sets and returns the address of a stack's leaf; 0: none was set. */
void gt_v1_elf_set_leaf(uint32_t stack_id, struct gt_named_frame *frame);
uint64_t gt_v1_elf_leaf(uint32_t stack_id);

/* Replaces the file beside the trace if there are new frames. 0 or -errno. */
int gt_v1_elf_write(void);
