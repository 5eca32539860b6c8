/* gotrace.h as the library sees it, which defines and exports what others declare weak. */
#ifndef GT_EXPORTED_H
#define GT_EXPORTED_H

#include "real.h"

#define GOTRACE_LIBRARY
#define GOTRACE_WEAK GT_EXPORT
#include "gotrace.h"

#endif
