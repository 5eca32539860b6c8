/*
 * A deep stack to measure on: descend.c's frames are equal, descend.cc's hardly any two.
 */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* Calls then(arg) so that `depth` frames, at least one, stand between its and the caller's. */
void descend(int depth, void (*then)(const void *arg), const void *arg);

#ifdef __cplusplus
}
#endif
