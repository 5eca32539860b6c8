/* Names that were meant: for "did you mean …". Any thread; no memory of its own. */
#ifndef GT_SPELLING_H
#define GT_SPELLING_H

/*
 * How many letters must be put in, left out, changed, or swapped with the next one to make b of a.
 * More than 3, or names of more than 40 bytes: GT_SPELLING_FAR.
 */
enum { GT_SPELLING_FAR = 4 };
unsigned gt_spelling_distance(const char *a, const char *b);

#endif
