/*
 * Functions of glibc and of the kernel's vDSO, found in their own symbol tables. A program, or
 * another preload, may define a function of the same name, which then takes the place of libc's for
 * everybody who calls it by name.
 *
 * All of these take no lock and no memory, call nothing by name, and may be called by any thread at
 * any time, also before our constructor.
 */
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * libc's own function, in the version that a reference without version means: none that we use has
 * changed its interface. NULL: this libc has no function of that name.
 */
void *gt_libc_function(const char *name);

/* libc.so.6, by its name: the program may define any of its functions. NULL: our library does not
 * need it, or cannot be found. */
const struct link_map *gt_libc_map(void);

/* Whether the address is in a library of glibc: libc.so.6, ld.so, and before 2.34 four more. */
bool gt_libc_has(const void *address);

/* The entry of the kernel's auxiliary vector, by libc's own getauxval. 0: there is none. */
unsigned long gt_libc_auxval(unsigned long type);

/* A function of the vDSO. NULL: the kernel gave the process none. */
void *gt_libc_vdso_function(const char *name);
