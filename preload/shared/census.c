/* See census.h. */
#include "census.h"

#include "options.h"

#include "encoder/base/hash.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/shm.h>

#define MAGIC 0x796c696d61667467u /* "gtfamily" */

enum { ROOM = 512 };

static struct counters {
    uint64_t magic;
    _Atomic uint32_t recorded, refused;
    struct made {
        struct gt_maker by;
        uint64_t sum; /* of maker and process: detects that two processes wrote at a time */
    } made[ROOM];
} * family; /* NULL: the number of processes has no limit */

static enum { UNASKED, ADMITTED, REFUSED } answer;

static struct counters *attach(int id)
{
    void *p = shmat(id, NULL, 0);
    return p == (void *)-1 ? NULL : p;
}

/* Attaches the family's page. NULL: the page is gone, or the number belongs to something else. */
static struct counters *join(const char *number)
{
    struct shmid_ds about;
    int id = number ? atoi(number) : -1;
    if (id < 0 || shmctl(id, IPC_STAT, &about) != 0 || about.shm_segsz != sizeof *family)
        return NULL;
    struct counters *found = attach(id);
    if (!found || found->magic == MAGIC)
        return found;
    shmdt(found);
    return NULL;
}

const char *gt_census_begin(mode_t mode)
{
    static char number[16];
    int id = gt_options.max_processes ? shmget(IPC_PRIVATE, sizeof *family, (int)mode) : -1;
    if (id < 0)
        return NULL;
    family = attach(id);
    shmctl(id, IPC_RMID, NULL); /* the kernel removes it once no process has it attached */
    if (!family)
        return NULL;
    family->magic = MAGIC;
    snprintf(number, sizeof number, "%d", id);
    return number;
}

const char *gt_census_open(mode_t mode)
{
    family = gt_options.max_processes ? join(getenv(GT_CENSUS_VARIABLE)) : NULL;
    return family ? NULL : gt_census_begin(mode);
}

bool gt_census_is_open(void)
{
    return family;
}

bool gt_census_admit(void)
{
    if (!family || answer != UNASKED)
        return answer != REFUSED;
    answer = ADMITTED;
    if (atomic_fetch_add(&family->recorded, 1) < gt_options.max_processes)
        return true;
    atomic_fetch_sub(&family->recorded, 1);
    atomic_fetch_add(&family->refused, 1);
    answer = REFUSED;
    return false;
}

void gt_census_withdraw(void)
{
    if (family && answer != UNASKED)
        atomic_fetch_sub(answer == ADMITTED ? &family->recorded : &family->refused, 1);
    answer = UNASKED;
}

uint32_t gt_census_refused(void)
{
    return family ? atomic_load(&family->refused) : 0;
}

static uint64_t sum_of(pid_t process, const struct gt_maker *by)
{
    uint64_t sum = gt_hash_mix(gt_hash_mix(1, (uint64_t)process), by->process);
    return gt_hash_mix(gt_hash_mix(sum, by->thread), by->counter);
}

void gt_census_note_maker(pid_t process, const struct gt_maker *by)
{
    if (family)
        family->made[process % ROOM] = (struct made){*by, sum_of(process, by)};
}

bool gt_census_take_maker(pid_t process, struct gt_maker *by)
{
    struct made *made = family ? &family->made[process % ROOM] : NULL;
    *by = made ? made->by : (struct gt_maker){0};
    if (!by->thread || made->sum != sum_of(process, by))
        return false;
    *made = (struct made){.sum = 0};
    return true;
}

void gt_census_after_fork(void)
{
    answer = UNASKED;
}
