/* Finds the file that the code at an address of a trace was loaded from, if the trace says so. */
#pragma once

#include "encoder/read/trace.h"
#include "symbolize/elf/modules.h"

/* The modules that the trace has described so far. Zero-initialised. */
struct gt_export_modules {
    struct gt_export_module {
        struct gt_module its; /* path: on the recorded host; lo, hi: its addresses in the trace */
        uint64_t id;          /* counts from 1, in the order of the descriptions */
    } * at;                   /* by address */
    size_t n, told;
};

/* The module of the address, or NULL; valid until the next call. */
const struct gt_export_module *gt_export_module_at(struct gt_export_modules *modules,
                                                   const struct gt_trace *trace, uint64_t pc);
