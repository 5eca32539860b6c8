/*
 * How long many waits took: percentiles, exact to 1 %, and how many there are of each power of ten.
 * `gotrace top` and `gotrace why` show them. Memory is some 16 bytes for each 1 % that occurs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Powers of ten: less than 1 us, less than 10 us, and so on; 10 s and more. */
enum { GT_DECADES = 9 };

struct gt_length_class {
    uint64_t index, count;
};

struct gt_lengths {
    struct gt_length_class *at; /* the shortest first */
    size_t n, last;             /* last: the class that was used last */
    uint64_t count, longest;
    uint64_t decade[GT_DECADES];
};

void gt_lengths_add(struct gt_lengths *lengths, uint64_t ns);
void gt_lengths_join(struct gt_lengths *to, const struct gt_lengths *from);

/* The length that so many thousandths of all are shorter than. */
uint64_t gt_lengths_percentile(const struct gt_lengths *lengths, uint64_t per_thousand);

/*
 * The long ones: 20 times the median and 1 ms or more. Returns how many there are; *ns: their time
 * together, *least: the shortest of them.
 */
uint64_t gt_lengths_long(const struct gt_lengths *lengths, uint64_t *ns, uint64_t *least);

/* The least length of that power of ten, in ns. */
uint64_t gt_lengths_decade(size_t decade);

/*
 * A bar for each power of ten, together nine characters: the highest for the one with most waits.
 * Valid until the next call.
 */
const char *gt_lengths_bars(const struct gt_lengths *lengths);

/* One bar: as high as `value` is, as a part of `most`. utf8: the terminal shows UTF-8. */
const char *gt_bar(double value, double most, bool utf8);
bool gt_bars_are_utf8(void);
