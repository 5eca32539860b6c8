/* Distances between names, for "did you mean …". Any thread; allocates no memory. */
#pragma once

/*
 * How many letters must be inserted, deleted, changed, or swapped with the next one to turn a into
 * b. GT_SPELLING_FAR: more than 3, or a name has more than 40 bytes.
 */
enum { GT_SPELLING_FAR = 4 };
unsigned gt_spelling_distance(const char *a, const char *b);
