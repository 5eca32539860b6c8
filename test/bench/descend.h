/*
 * A deep stack to measure on: descend.c's frames are all the same, descend.cc's hardly any two.
 */
#ifndef GT_BENCH_DESCEND_H
#define GT_BENCH_DESCEND_H

#ifdef __cplusplus
extern "C" {
#endif

/* Calls then(arg) so that `depth` frames, at least one, stand between its and the caller's. */
void descend(int depth, void (*then)(const void *arg), const void *arg);

#ifdef __cplusplus
}
#endif

#endif
