/*
 * What the page says of waits for descriptors whose waker no event names: the wakers that are
 * guessed (handed.h), and the waits on the path of which nobody knows the waker.
 */
#pragma once

#include "page.h"

/*
 * "The waker of 40 waits in read <- refill (a.c:29) is a guess from their end times: feeder."; of
 * the place with most of them. NULL: no waker is guessed. Returns new memory.
 */
char *gt_wakers_guessed(struct gt_why *why);

/*
 * Finds the waits for input on the path of which nobody knows the waker, if they are a considerable
 * part of it and other threads did something: then one of these may set the pace. Fills
 * why->unknown. After the survey.
 */
void gt_wakers_find_unknown(struct gt_why *why);

/* "Nobody is known to end the 40 waits in read <- refill (a.c:29): …"; NULL, or new memory. */
char *gt_wakers_unknown(const struct gt_why *why);
