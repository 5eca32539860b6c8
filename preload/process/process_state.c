/* See process_state.h. */
#include "process_state.h"

#include "encoder/base/libc.h"

#include <sys/syscall.h>

struct gt_process gt_process;

bool gt_process_is_ours(void)
{
    return gt_process.pid && gt_syscall(SYS_getpid) == gt_process.pid;
}

bool gt_process_had_threads(void)
{
    return atomic_load(&gt_process.drain_started);
}

bool gt_process_is_followed(void)
{
    return gt_process.pid != 0;
}

bool gt_process_is_left_alone(void)
{
    return gt_process.started && !gt_process.pid;
}

bool gt_process_has_ended(void)
{
    return atomic_load(&gt_process.ended) || !gt_process_is_ours();
}
