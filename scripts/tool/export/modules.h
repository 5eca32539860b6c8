/* Which file the code at an address of a trace was loaded from, where the trace says so. */
#ifndef GT_EXPORT_MODULES_H
#define GT_EXPORT_MODULES_H

#include "encoder/read/trace.h"
#include "symbolize/modules.h"

/* Those that the trace has told of up to now. Zeros to begin with. */
struct gt_export_modules {
    struct gt_export_module {
        struct gt_module its; /* path: where it lay; lo, hi: its addresses in the trace */
        uint64_t id;          /* counts from 1, in the order in which they were told */
    } * at;                   /* by address */
    size_t n, room, told;
};

/* The one that the address is in, or NULL; valid until the next call. */
const struct gt_export_module *gt_export_module_at(struct gt_export_modules *modules,
                                                   const struct gt_trace *trace, uint64_t pc);

#endif
