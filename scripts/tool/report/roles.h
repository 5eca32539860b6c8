/* What a call waits for, by its name: of those that take no lock. */
#ifndef GT_ROLES_H
#define GT_ROLES_H

enum gt_role {
    GT_ROLE_OTHER,     /* a lock, or a call of the kernel's */
    GT_ROLE_CONDITION, /* a condition variable's signal */
    GT_ROLE_SEMAPHORE,
    GT_ROLE_BARRIER,
    GT_ROLE_FUTEX, /* whatever the program makes of it */
    GT_ROLE_JOIN,  /* the end of a thread */
};

enum gt_role gt_role_of(const char *call);

#endif
