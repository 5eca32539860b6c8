/* calls.c with the functions for large files: pread64, open64 and so on. */
#define _FILE_OFFSET_BITS 64
#include "calls.c"
