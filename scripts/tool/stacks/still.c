/* See still.h. */
#include "still.h"

#include <string.h>
#include <unistd.h>

const char *const gt_state_names[] = {"running", "waiting", "stopped", "uninterruptible"};
const char *const gt_wait_names[] = {
    "none", "mutex",  "rwlock", "cond", "semaphore",  "barrier", "once",  "join", "stdio",
    "gil",  "future", "futex",  "poll", "descriptor", "sleep",   "child", "call"};

static size_t first; /* where searches begin: most reads are from the last piece */

void gt_still_prefer(const struct gt_still_thread *task)
{
    first = task->piece;
}

bool gt_still_read(const struct gt_still *s, uint64_t at, void *to, size_t size)
{
    size_t from = first < s->pieces ? first : 0;
    for (size_t n = 0; n < s->pieces; n++) {
        size_t i = from + n < s->pieces ? from + n : from + n - s->pieces;
        const struct gt_memory_piece *p = &s->piece[i];
        if (at >= p->at && at - p->at < p->size && size <= p->size - (at - p->at)) {
            memcpy(to, p->bytes + (at - p->at), size);
            return true;
        }
    }
    return false;
}

bool gt_still_peek(const struct gt_still *s, uint64_t at, void *to, size_t size)
{
    bool live = !s->core && s->memory >= 0;
    return (live && pread(s->memory, to, size, (off_t)at) == (ssize_t)size) ||
           gt_still_read(s, at, to, size);
}

const struct gt_mapping *gt_still_mapping(const struct gt_still *s, uint64_t at)
{
    for (size_t i = 0; i < s->mappings; i++) {
        if (at >= s->mapping[i].lo && at < s->mapping[i].hi)
            return &s->mapping[i];
    }
    return NULL;
}

const struct gt_still_thread *gt_still_own(const struct gt_still *s, pid_t own)
{
    for (size_t i = 0; i < s->tasks; i++) {
        if (s->task[i].own == own)
            return &s->task[i];
    }
    return NULL;
}

const struct gt_still_thread *gt_still_task(const struct gt_still *s, pid_t tid)
{
    for (size_t i = 0; i < s->tasks; i++) {
        if (s->task[i].tid == tid)
            return &s->task[i];
    }
    return NULL;
}

const char *gt_still_plain(const char *function)
{
    static const char internal[] = "GI_"; /* where libc has debug symbols */
    function += strspn(function, "_");
    if (strncmp(function, internal, sizeof internal - 1) == 0)
        function += sizeof internal - 1;
    return function + strspn(function, "_");
}
