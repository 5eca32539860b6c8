/* See roles.h. */
#include "roles.h"

#include "call_places.h"

#include <stddef.h>
#include <string.h>

enum gt_role gt_role_of(const char *call)
{
    static const struct {
        const char *begins;
        enum gt_role role;
    } roles[] = {
        {"pthread_cond_", GT_ROLE_CONDITION},
        {"cnd_", GT_ROLE_CONDITION},
        {"sem_", GT_ROLE_SEMAPHORE},
        {"pthread_barrier_", GT_ROLE_BARRIER},
        {"futex", GT_ROLE_FUTEX},
        {"pthread_join", GT_ROLE_JOIN},
        {"pthread_tryjoin_", GT_ROLE_JOIN},
        {"pthread_timedjoin_", GT_ROLE_JOIN},
        {"pthread_clockjoin_", GT_ROLE_JOIN},
        {"thrd_join", GT_ROLE_JOIN},
    };
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        if (strncmp(call, roles[i].begins, strlen(roles[i].begins)) == 0)
            return roles[i].role;
    }
    return GT_ROLE_OTHER;
}

static bool is_one_of(const char *const *names, const char *call)
{
    while (*names && strcmp(*names, call) != 0)
        names++;
    return *names;
}

bool gt_waits_for_child(const char *call)
{
    static const char *const names[] = {"wait", "wait3", "wait4", "waitpid", "waitid", NULL};
    return is_one_of(names, call);
}

bool gt_waits_for_signal(enum gt_kind kind, const char *call)
{
    static const char *const names[] = {"sigwait",    "sigwaitinfo", "sigtimedwait",
                                        "sigsuspend", "pause",       NULL};
    static const char *const polls[] = {"poll", "ppoll", "select", "pselect", NULL};
    return is_one_of(names, call) ||
           (kind == GT_SYSCALL && gt_begins_with(call + strspn(call, "_"), polls));
}

bool gt_is_poll(const char *call)
{
    static const char *const names[] = {"poll", "ppoll", "select", "pselect", "epoll_", NULL};
    return gt_begins_with(call + strspn(call, "_"), names);
}

bool gt_is_read(const char *call)
{
    static const char *const names[] = {"read", "recv", NULL};
    return gt_begins_with(call + strspn(call, "_"), names);
}

bool gt_is_accept(const char *call)
{
    static const char *const names[] = {"accept", NULL};
    return gt_begins_with(call + strspn(call, "_"), names);
}

bool gt_is_connect(const char *call)
{
    return strcmp(call, "connect") == 0;
}

bool gt_is_for_clients(const char *call)
{
    return gt_is_accept(call) || strcmp(call, "bind") == 0;
}

bool gt_begins_at_condition(const struct gt_span *span)
{
    return span->wanted && !span->again && gt_role_of(gt_leaf_of(span->stack)) == GT_ROLE_CONDITION;
}

bool gt_is_for_token(const struct gt_span *span)
{
    return gt_wanted_is_held(span->wanted) &&
           gt_role_of(gt_leaf_of(span->stack)) == GT_ROLE_SEMAPHORE;
}
