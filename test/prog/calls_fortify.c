/* calls.c with the functions that check their buffers: __read_chk, __open_2 and so on. */
#undef _FORTIFY_SOURCE
#define _FORTIFY_SOURCE 2
#include "calls.c"
