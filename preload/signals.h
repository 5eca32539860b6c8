/* Signals that the tracer handles. */
#ifndef GT_SIGNALS_H
#define GT_SIGNALS_H

/* Constructor: takes GOTRACE_SIGNAL. */
void gt_signals_init(void);

#endif
