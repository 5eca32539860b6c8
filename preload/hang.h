/*
 * GOTRACE_HANG: threads that have waited for each other for so long, or for who has ended, are told
 * of on standard error, once; and with a flight recorder what led there becomes a file.
 */
#ifndef GT_HANG_H
#define GT_HANG_H

/* Whether there are any by now. Drain side, about once a second. */
void gt_hang_look(void);

#endif
