/* See still.h. */
#include "still.h"

#include "encoder/read/need.h"

#include <string.h>

const char *const gt_state_names[] = {"running", "waiting", "stopped", "uninterruptible"};
const char *const gt_wait_names[] = {"none",       "mutex", "rwlock", "cond",  "semaphore",
                                     "barrier",    "once",  "join",   "futex", "poll",
                                     "descriptor", "sleep", "child",  "call"};

void *gt_more(void *array, size_t n, size_t bytes)
{
    if ((n & (n - 1)) == 0) /* else there is room up to the next power of two */
        array = gt_need(realloc(array, (n ? 2 * n : 1) * bytes));
    memset((char *)array + n * bytes, 0, bytes);
    return array;
}

bool gt_still_read(const struct gt_still *s, uint64_t at, void *to, size_t size)
{
    static size_t last; /* most reads are of the same stack as the one before */
    for (size_t n = 0; n < s->pieces; n++) {
        size_t i = n ? n - (n <= last) : last < s->pieces ? last : 0;
        const struct gt_piece *p = &s->piece[i];
        if (at >= p->at && at - p->at < p->size && size <= p->size - (at - p->at)) {
            memcpy(to, p->bytes + (at - p->at), size);
            last = i;
            return true;
        }
    }
    return false;
}

const struct gt_mapping *gt_still_mapping(const struct gt_still *s, uint64_t at)
{
    for (size_t i = 0; i < s->mappings; i++) {
        if (at >= s->mapping[i].lo && at < s->mapping[i].hi)
            return &s->mapping[i];
    }
    return NULL;
}

const struct gt_task *gt_still_own(const struct gt_still *s, pid_t own)
{
    for (size_t i = 0; i < s->tasks; i++) {
        if (s->task[i].own == own)
            return &s->task[i];
    }
    return NULL;
}

const struct gt_task *gt_still_task(const struct gt_still *s, pid_t tid)
{
    for (size_t i = 0; i < s->tasks; i++) {
        if (s->task[i].tid == tid)
            return &s->task[i];
    }
    return NULL;
}
