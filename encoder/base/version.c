/* See version.h. The Makefile reads the changelog. */
#include "version.h"

const char gt_version[] = GT_VERSION;
