/*
 * Of several traces that are put together: who ended waits at what processes share. In its own
 * trace such a wait ends by itself; its waker, in another one, has left a log (encoder/held.h). All
 * of them are looked through for that before they are put together, and only what is certain is
 * kept:
 *
 * - a mutex or read-write lock: who let somebody in last before the wait was over, for nobody can
 *   have had it then, as far as all who take it are there;
 * - all others: nobody else has let anybody in there during the wait, and either it was the only
 *   one there, or all were let in.
 *
 * And that was just before: a wait that goes on after it ends by somebody of whom there is no
 * trace. For pipes, sockets and eventfds see streams.h.
 */
#ifndef GT_WAKING_H
#define GT_WAKING_H

#include "aligning.h"
#include "rewriting.h"

/* A thread that could run does not take longer to, or it is not known that it could. */
enum { GT_AT_ONCE_NS = 20000000 };

/* A log of a waker's, or the beginning of a call, and whose wait that ended. */
struct gt_woken {
    uint64_t ns, by; /* in the waker's trace: when, since it began; the goroutine */
    struct gt_everybody *const *whose;
    uint64_t g; /* of that trace */
};

/* Those of one trace, by time. */
struct gt_wakings {
    struct gt_woken *at;
    size_t n, room;
    size_t next; /* for who tells its events: not over yet */
};

/* A trace of those. */
struct gt_waking_in {
    const struct gt_aligned *aligned;
    struct gt_everybody **all; /* will be there when its events are told */
    struct gt_wakings wakings; /* set */
};

/* Takes 32 bytes for each beginning and end of a wait, and each log. */
void gt_waking_find(struct gt_waking_in *in, size_t n);

#endif
