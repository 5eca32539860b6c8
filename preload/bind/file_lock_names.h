/*
 * Names of locks on files: "flock /var/lock/app", "fcntl /var/db/data+4096" (GT_FLOCK, GT_FCNTL).
 * The address of a name stands for the lock where addresses of locks do (encoder/thread/held.h).
 * All processes give a lock the same name, as long as they see the file at the same path. Any
 * context.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The path of the open file fd. false: it is not known, or does not fit. errno is kept. */
bool gt_file_path(int fd, char *path, size_t size);

/*
 * The name of the lock on the open file fd. whole: of flock(2); else of the record that begins at
 * `start`. NULL: the file's path is not known, or there are too many names. errno is kept.
 */
const char *gt_file_lock_name(int fd, bool whole, int64_t start);

/* The position in the open file, where lockf's records begin; a negative number: not known. */
int64_t gt_file_lock_position(int fd);

/* The name at an address; NULL: there is none. */
const char *gt_file_lock_name_at(uint64_t address);

/* From now on nothing is asked for: the program's seccomp filter would end the process. */
void gt_file_lock_names_forbid(void);
