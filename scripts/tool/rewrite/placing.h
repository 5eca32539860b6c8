/*
 * Addresses of code in a merged trace. Processes may have different code at one address, but in a
 * trace an address means one thing. So a module whose addresses another process's module has is
 * shown elsewhere, as is a module that took another's place in one process
 * (symbolize/elf/modules.h).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* A module of a trace. */
struct gt_placed {
    uint64_t lo, hi;         /* its addresses in the source */
    uint64_t away;           /* added to them: where it is shown */
    const char *description; /* as of gt_modules_describe, with the addresses shown */
};

/* The modules of a trace. */
struct gt_placing {
    struct gt_placed *at;
    size_t n;
};

/* Adds a module, unless it is known. Copies the text; ignores a text that describes no module. */
void gt_placing_add(struct gt_placing *placing, const char *description);

/* The last added module that has the address; NULL: there is none. */
const struct gt_placed *gt_placing_find(const struct gt_placing *placing, uint64_t pc);

/* Frees what is known of a trace. The places where its modules are shown stay taken. */
void gt_placing_free(struct gt_placing *placing);
