/*
 * The program's code at addresses in a trace, from the files that the trace names, if they are
 * still there and of that build.
 */
#pragma once

#include "encoder/read/trace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Code around an address. */
struct gt_code {
    uint8_t at[256];
    size_t size, pc;  /* pc: index of the address's byte */
    unsigned machine; /* EM_X86_64, … */
};

/* Reads the code around the address. false: it is not known. */
bool gt_program_code(const struct gt_trace *trace, uint64_t address, struct gt_code *code);
