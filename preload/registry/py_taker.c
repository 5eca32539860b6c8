/* See py_taker.h. */
#include "py_taker.h"

#include "encoder/base/sparse.h"

_Atomic uint64_t gt_py_takers[GT_PY_TAKERS] GT_SPARSE;
