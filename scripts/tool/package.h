/*
 * Which package of the distribution a file is of, by dpkg or rpm, and where its debug symbols come
 * from.
 */
#pragma once

#include <stdbool.h>

/* The package's name, valid until the next call; "": not known, or the file is not on this machine.
 */
const char *gt_package_of(const char *path);

/* That with the file's debug symbols: "memcached-dbgsym"; else as gt_package_of. */
const char *gt_debug_package_of(const char *path);

/*
 * The archive that apt's sources need for packages called -dbgsym: "debian-debug, suite
 * bookworm-debug"; "": apt has it, or none is needed. Valid until the next call.
 */
const char *gt_debug_source(void);

/* Debug symbol servers, as a shell sets them from the files that the distribution's package has. */
#define GT_DEBUGINFOD_FILES "/etc/debuginfod/*.urls"
#define GT_DEBUGINFOD_URLS "DEBUGINFOD_URLS=\"$(cat " GT_DEBUGINFOD_FILES ")\""
bool gt_has_debuginfod_urls(void);

/*
 * What a shell is to put before a command that asks debug symbol servers: those that the
 * distribution's package names, or a word in their place; "": $DEBUGINFOD_URLS is set.
 */
const char *gt_debuginfod_setting(void);
