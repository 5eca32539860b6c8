/*
 * What `gotrace doctor` checks: one function for each thing, in a table. A check looks, and says
 * what works, what does not, and the command that mends it.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

enum gt_health {
    GT_HEALTH_OK,
    GT_HEALTH_LIMITED, /* something works less well, or not for everything */
    GT_HEALTH_MISSING, /* it does not work */
    GT_HEALTH_UNASKED, /* it does not apply: nothing is printed */
};

struct gt_check {
    enum gt_health health;
    char says[2 * PATH_MAX + 512];
    char mend[PATH_MAX + 512]; /* a command, or what to do; "": nothing */
};

struct gt_check_row {
    const char *name;
    void (*look)(struct gt_check *check);
    bool vital; /* GT_HEALTH_MISSING: no recording would be complete, exit status 1 */
};

/* The checks of this system and of a program; each table ends with a row without a name. */
extern const struct gt_check_row gt_system_checks[], gt_program_checks[];

/* The program that gt_program_checks looks at, or a process by its number. Before them. */
void gt_program_checks_of(const char *program);

/* Whether the process can be recorded. target: what gt_target_look says of the file it runs. */
struct gt_target;
void gt_process_look(struct gt_check *check, int pid, const struct gt_target *target);

/* Fill in a check. gt_mend is for health other than GT_HEALTH_OK. */
void gt_found(struct gt_check *check, enum gt_health health, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void gt_mend(struct gt_check *check, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Mends by a package: the command of the package manager that is here, as this user types it. */
void gt_mend_by_package(struct gt_check *check, const char *debian, const char *fedora);

/* libdw, which lines of code come from, and how to mend that it is not there. */
bool gt_has_libdw(void);
void gt_mend_libdw(struct gt_check *check);

/* "sudo ", or "" for root. */
const char *gt_as_root(void);
