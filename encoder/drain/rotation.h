/*
 * A recording as several files, one after the other. Decides when the current file is old or large
 * enough, and knows which files there are; it may keep only the newest ones. Drain side only, but
 * for what says otherwise.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct gt_rotation_config {
    uint64_t ns;    /* the age of a file; 0: no limit */
    uint64_t bytes; /* its size, about; 0: no limit */
    uint32_t keep;  /* how many files to keep, with the current one; 0: all */
};

static inline bool gt_rotation_is_wanted(const struct gt_rotation_config *config)
{
    return config->ns || config->bytes;
}

/* All 0: there is one file. */
void gt_rotation_init(const struct gt_rotation_config *config);
bool gt_rotation_is_on(void);

/* A recording begins. now: CLOCK_MONOTONIC. */
void gt_rotation_begin(uint64_t now);

/* When the next file is due by the clock; 0: never, or no file is written. Any thread. */
uint64_t gt_rotation_due_ns(void);

/* Whether the next file is due: by the clock, or because the current one has so many bytes. */
bool gt_rotation_is_due(uint64_t now, uint64_t bytes);

/*
 * From here on another file is written; or the current one still, because no other could be made.
 */
void gt_rotation_next(uint64_t now, uint64_t bytes);

/* A file is complete and closed. It has this path; a second file may be beside it. */
void gt_rotation_note(const char *path, uint64_t bytes);

/* Another file was created: removes the oldest files beyond the number to keep. */
void gt_rotation_trim(void);

/* The recording is over. */
void gt_rotation_end(void);

/* The recording's files, without the current one. Any thread. */
struct gt_rotation_files {
    uint32_t n, removed;
    uint64_t bytes;     /* of all these files */
    const char *oldest; /* the oldest that was not removed; "": none */
};
struct gt_rotation_files gt_rotation_files(void);

/* In a forked child: the files belong to the parent. */
void gt_rotation_after_fork(void);
