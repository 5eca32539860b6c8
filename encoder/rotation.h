/*
 * A recording as several files, one after the other: when the one that is written is old or large
 * enough, and which ones there are, of which only the newest may be kept. Drain side only, but for
 * what says otherwise.
 */
#ifndef GT_ROTATION_H
#define GT_ROTATION_H

#include <stdbool.h>
#include <stdint.h>

struct gt_rotation_config {
    uint64_t ns;    /* the age of a file; 0: any */
    uint64_t bytes; /* its size, about; 0: any */
    uint32_t keep;  /* so many, with the one that is written; 0: all */
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

/* When the next file is due by the clock; 0: never, or none is written. Any thread. */
uint64_t gt_rotation_due_ns(void);

/* Whether that, or so many bytes are more than a file is to have. */
bool gt_rotation_is_due(uint64_t now, uint64_t bytes);

/* From here on another file is written; or the same, as no other could be made. */
void gt_rotation_next(uint64_t now, uint64_t bytes);

/* A file is whole, and closed. It has this name, and perhaps another one beside it. */
void gt_rotation_note(const char *path, uint64_t bytes);

/* There is another file: removes the oldest if they are more than are kept. */
void gt_rotation_trim(void);

/* The recording is over. */
void gt_rotation_end(void);

/* Of the recording's files, but for the one that is written. Any thread. */
struct gt_rotation_files {
    uint32_t n, removed;
    uint64_t bytes;     /* of all */
    const char *oldest; /* that is there; "": none */
};
struct gt_rotation_files gt_rotation_files(void);

/* In a forked child: the files are the parent's. */
void gt_rotation_after_fork(void);

#endif
