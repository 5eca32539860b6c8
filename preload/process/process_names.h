/*
 * Names of addresses in this process: the library's functions for struct gt_frame_names
 * (encoder/file/frames.h), which struct gt_drain_config passes to the encoder. Drain side only,
 * unless a comment allows other callers.
 */
#pragma once

#include "encoder/file/frames.h"

/* Names the stack's entry `index`. Entry 0 is the number of a hook or the entry of a routine, all
 * others are return addresses. */
int gt_names_resolve(const struct gt_stack *s, uint32_t index, struct gt_frame *out, int max);

/* gt_names_resolve for a text that is read at once: looks up names even if a trace would leave that
 * to its reader (names_later). */
int gt_names_resolve_now(const struct gt_stack *s, uint32_t index, struct gt_frame *out, int max);

/* See gt_frame_names. */
void gt_names_of_time(uint64_t begin_ns, uint64_t end_ns);

/* See gt_place_fn. The name of a function has neither parameters nor a comma. */
const char *gt_names_function(uint64_t address, uint32_t epoch);

/* See gt_lock_name_fn. */
const char *gt_names_lock(uint64_t address, uint32_t epoch, bool shared);

/* The function with its line: see symbolize/phrases.h. */
const char *gt_names_place(uint64_t address, uint32_t epoch);

/* The variable at an address, for a text that is read at once; NULL: there is none. */
const char *gt_names_variable_now(uint64_t address, uint32_t epoch);

/* Reads from all loaded modules what later look-ups may need. */
void gt_names_hold(void);

/* Whether an address belongs to the same code in both epochs. */
bool gt_names_same_code(uint64_t pc, uint32_t one, uint32_t other);

/* Forgets unloaded modules that no stack refers to any more. */
void gt_names_forget(void);

/* Names addresses by offsets in modules only, as long as it is set: the caller may have been
 * interrupted in any code. */
void gt_names_roughly(bool roughly);

/* Called when a signal is ending the process: loads nothing more, and after `ns` looks up no names.
 */
void gt_names_die(uint64_t ns);

/* Called when files may be out of reach from now on. Any thread. */
void gt_names_confine(void);

/* Called in a forked child. */
void gt_names_after_fork(void);
