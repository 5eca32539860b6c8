/*
 * See gc.h. The collector calls us with its lock held, at times while all other threads are
 * stopped, perhaps inside our own code. So only times are noted until the world runs again.
 */
#include "gc.h"

#include "encoder/base/clock.h"
#include "encoder/thread/events.h"
#include "encoder/thread/room.h"
#include "preload/thread/thread.h"

#include <dlfcn.h>

/* GC_EventType of the collector's gc.h, since 7.6; the other events are not used here. */
enum { GC_START = 0, GC_END = 5, GC_PRE_STOP_WORLD = 6, GC_POST_START_WORLD = 9 };

typedef void (*on_event_fn)(int event);

static on_event_fn program_fn; /* what the program had set before we came */
static struct gt_collection collection;

static void write_collection(void)
{
    struct gt_thread *t = gt_thread_enter();
    if (!t)
        return;
    if (gt_writer_pin(&t->w)) {
        gt_ev_gc(&t->w, &collection);
        gt_writer_unpin(&t->w);
    }
    gt_thread_leave(t);
}

/*
 * The pause under way. An incremental collection stops the world often: the last pause stands for
 * all beyond the limit.
 */
static struct gt_pause *this_pause(void)
{
    uint32_t last = GT_PAUSES_MAX - 1;
    return &collection.pause[collection.pauses < last ? collection.pauses : last];
}

static void on_event(int event)
{
    if (event == GC_START)
        collection = (struct gt_collection){.begin = gt_clock_now()};
    else if (event == GC_PRE_STOP_WORLD)
        this_pause()->begin = gt_clock_now();
    else if (event == GC_POST_START_WORLD) {
        this_pause()->end = gt_clock_now();
        collection.pauses += collection.pauses < GT_PAUSES_MAX;
    } else if (event == GC_END && collection.begin) {
        collection.end = gt_clock_now();
        write_collection();
    }
    if (program_fn)
        program_fn(event);
}

void gt_gc_init(void)
{
    on_event_fn (*get)(void) =
        (on_event_fn(*)(void))dlsym(RTLD_DEFAULT, "GC_get_on_collection_event");
    void (*set)(on_event_fn) =
        (void (*)(on_event_fn))dlsym(RTLD_DEFAULT, "GC_set_on_collection_event");
    if (!get || !set)
        return;
    program_fn = get();
    set(on_event);
}
