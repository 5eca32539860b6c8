/*
 * The names of addresses in this process, for the encoder: what drain.h asks of whom it is given.
 * Drain side only, but for what is said to be for others.
 */
#ifndef GT_NAMES_H
#define GT_NAMES_H

#include "encoder/drain.h"

/* Index 0 is the number of a hook, or the entry of a routine; the rest are return addresses. */
int gt_names_resolve(const struct gt_stack *s, uint32_t index, struct gt_frame *out, int max);

/* The same for who reads it at once: names, also where those of traces are looked up later. */
int gt_names_resolve_now(const struct gt_stack *s, uint32_t index, struct gt_frame *out, int max);

/* See of_time of drain.h. */
void gt_names_of_time(uint64_t begin_ns, uint64_t end_ns);

/* See gt_place_fn. Functions are told without parameters, and with no comma. */
const char *gt_names_function(uint64_t address, uint32_t epoch);

/* See gt_lock_name_fn. */
const char *gt_names_lock(uint64_t address, uint32_t epoch, bool shared);

/* The function with its line: see symbolize/phrases.h. */
const char *gt_names_place(uint64_t address, uint32_t epoch);

/* The variable, for who reads it at once; NULL: there is none. */
const char *gt_names_variable_now(uint64_t address, uint32_t epoch);

/* Reads what all modules that are loaded may be asked for. */
void gt_names_hold(void);

/* Whether an address is of the same code in both epochs. */
bool gt_names_same_code(uint64_t pc, uint32_t one, uint32_t other);

/* Modules that are gone, and of which no stack is left, are forgotten. */
void gt_names_forget(void);

/* The caller may be in the middle of anything: offsets in modules will do, until told otherwise. */
void gt_names_roughly(bool roughly);

/* The process dies of a signal: what is not loaded is done without, and after so long all names. */
void gt_names_die(uint64_t ns);

/* Files may be out of reach from now on. Any thread. */
void gt_names_confine(void);

/* In a forked child. */
void gt_names_after_fork(void);

#endif
