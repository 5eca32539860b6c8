/* See roles.h. */
#include "roles.h"

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
