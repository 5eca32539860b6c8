/*
 * The commands of `gotrace start|stop|snapshot|attach|detach`, and gotrace_start, gotrace_stop and
 * gotrace_snapshot of gotrace.h.
 */
#include "commands.h"

#include "attach.h"

#include "encoder/drain/drain.h"
#include "encoder/drain/recording.h"
#include "preload/bind/exported.h"
#include "preload/life/process_start.h"
#include "preload/process/attach_state.h"
#include "preload/shared/control_page.h"
#include "preload/shared/options.h"
#include "preload/thread/heap_slots.h"
#include "preload/thread/sampler.h"
#include "preload/thread/thread.h"

/* Prepares for CPU samples. hz: the rate, rewritten in digits. text: where samples are possible, if
 * not here. */
static int prepare_samples(char *hz, char *text)
{
    uint32_t n = 0;
    if (!gt_options_hz(hz, &n) || !n)
        return -EINVAL;
    const char *where = gt_sampler_prepare();
    snprintf(hz, PATH_MAX, "%u", n);
    snprintf(text, PATH_MAX, "%s", where ? where : "");
    return where ? -EOPNOTSUPP : 0;
}

int gt_command_execute(uint32_t command, char *path, char *text, bool alone)
{
    if (command == GT_CONTROL_ATTACH && !alone)
        return gt_attach_again(*path ? path : NULL);
    if (command == GT_CONTROL_DETACH && !alone) {
        gt_drain_execute(GT_DRAIN_STOP, NULL);
        return gt_attach_undo();
    }
    bool starts = command == GT_DRAIN_START || command == GT_DRAIN_SAMPLE;
    if (!starts && command != GT_DRAIN_STOP && command != GT_DRAIN_SNAPSHOT)
        return -EINVAL;
    if (starts && gt_attach_is_undone())
        return -ENOTCONN;
    int error = command == GT_DRAIN_SAMPLE ? prepare_samples(path, text) : 0;
    if (error)
        return error;
    if (command == GT_DRAIN_STOP && gt_recording() && gt_recording_end_samples()) {
        strcpy(text, "no more CPU samples; recording goes on");
        return 0;
    }
    if (!alone || gt_recording())
        return gt_drain_execute(command, *path ? path : NULL);
    if (!starts)
        return -EALREADY;
    return gt_process_begin(true) ? gt_drain_command(command, path) : -ENAMETOOLONG;
}

/* Executes a command for gotrace.h. 0 or an errno. Inside the guard, so that a signal handler
 * cannot start another command meanwhile. */
static int command(enum gt_drain_command what, const char *path)
{
    struct gt_thread *t = gt_thread_enter();
    if (!t)
        return gt_recording() ? EBUSY : ESHUTDOWN;
    GT_OWN_WORK(own);
    int r = -gt_drain_command(what, path);
    gt_thread_leave(t);
    return r;
}

int gotrace_start(void)
{
    return command(GT_DRAIN_START, NULL);
}

int gotrace_stop(void)
{
    return command(GT_DRAIN_STOP, NULL);
}

int gotrace_snapshot(const char *path)
{
    return command(GT_DRAIN_SNAPSHOT, path);
}
