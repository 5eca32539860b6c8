/* gotrace.h for the library, which defines and exports the functions that programs declare weak. */
#pragma once

#include "real.h"

#define GOTRACE_LIBRARY
#define GOTRACE_WEAK GT_EXPORT
#include "preload/gotrace.h"
