/*
 * Finds thread pools in which each worker, within a task, waits for another task of its own pool.
 * No worker is left to execute that task, whichever other threads the process has. cycles.c calls
 * this.
 *
 * It knows std::packaged_task only: its future becomes ready when a thread executes the task, and
 * in no other way. A promise may be kept by any thread, for any reason.
 *
 * No type information says which object is a queue. So words that may be addresses are followed
 * from object to object, as a conservative garbage collector does. A worker waits for its own pool
 * if both are true:
 *
 *   1. The task can be reached from the worker's outermost frames, where its loop has the queue.
 *      Or another such worker executes the task, and has its address on the stack.
 *   2. No other thread can reach the task, or has its address on the stack.
 *
 * The first thread usually made the pool, and so reaches all of it, but executes no tasks. It
 * counts as another thread if it is in a function of the program in which workers are, too.
 */
#include "pools.h"

#include "holders.h"

#include "encoder/base/glibc.h"
#include "encoder/base/memo.h"
#include "encoder/base/sort.h"
#include "encoder/read/need.h"

#include <stdlib.h>
#include <string.h>

struct region {
    uint64_t lo, hi;
    bool heap;
};

struct pools {
    struct gt_still *still;
    struct region *region; /* where objects can be: not code, no stack but the first thread's */
    size_t regions;
    uint64_t *begin; /* addresses of objects that thread loops refer to, sorted */
    size_t begins;
    uint64_t *task; /* by thread: the task it waits for; 0: none, or it may be executed */
    bool beside;    /* the first thread executes no tasks */
};

/* Following addresses ------------------------------------------------------------------------- */

struct search {
    const struct pools *pools;
    struct gt_memo seen; /* addresses */
    uint64_t *found;     /* the addresses in `seen`, in the order in which they were found */
    size_t n;
};

enum { OBJECTS_MAX = 100000 };

/* The region with that address. NULL: no object can be there. */
static const struct region *region_of(const struct pools *p, uint64_t at)
{
    size_t i = gt_count_up_to(p->region, p->regions, sizeof *p->region, sizeof at, at);
    return i && at < p->region[i - 1].hi ? &p->region[i - 1] : NULL;
}

static void meet(struct search *x, uint64_t word)
{
    if (x->n == OBJECTS_MAX || !region_of(x->pools, word) || !gt_need_new(&x->seen, word))
        return;
    *GT_ADD(x->found, x->n) = word;
}

/*
 * The size of the object at an address. glibc's allocator keeps a block's size before it. Elsewhere
 * the object ends where the next known one begins, or after PART bytes at most.
 */
static size_t size_at(const struct pools *p, uint64_t at)
{
    enum { LEAST = 32, MOST = 1 << 16, PART = 256 };
    const struct region *r = region_of(p, at);
    uint64_t head, left = r->hi - at;
    if (r->heap && at % 16 == 0 && gt_still_peek(p->still, at - sizeof head, &head, sizeof head)) {
        head &= ~(uint64_t)GT_HEAP_HEADER_FLAGS;
        if (head % 16 == 0 && head >= LEAST && head <= MOST)
            return head - sizeof head < left ? head - sizeof head : left;
    }
    size_t next = gt_count_up_to(p->begin, p->begins, sizeof at, sizeof at, at);
    if (next < p->begins && p->begin[next] - at < left)
        left = p->begin[next] - at;
    return left < PART ? left : PART;
}

/* Adds all addresses in an object. */
static void look_at(struct search *x, uint64_t object)
{
    static uint64_t words[1 << 13];
    size_t n = size_at(x->pools, object) / sizeof *words;
    if (!n || !gt_still_peek(x->pools->still, object, words, n * sizeof *words))
        return;
    for (size_t i = 0; i < n; i++)
        meet(x, words[i]);
}

/* Follows the addresses found so far. Stops at `task`, unless that is 0. */
static bool reaches(struct search *x, uint64_t task)
{
    for (size_t i = 0; i < x->n && !gt_memo_find(&x->seen, task); i++)
        look_at(x, x->found[i]);
    return gt_memo_find(&x->seen, task);
}

static void meet_stack(struct search *x, const struct gt_still_thread *t, uint64_t from,
                       uint64_t to)
{
    uint64_t word;
    gt_still_prefer(t);
    for (uint64_t at = from & ~(sizeof word - 1);
         at < to && gt_still_read(x->pools->still, at, &word, sizeof word); at += sizeof word)
        meet(x, word);
}

static void end_search(struct search *x)
{
    gt_memo_free(&x->seen);
    free(x->found);
}

/* Threads -------------------------------------------------------------------------------------- */

/* Functions that start threads; a thread's loop is called by them. */
static bool is_of_libc(const struct gt_place *f)
{
    const char *name = gt_still_plain(f->function);
    return strstr(f->module, "/libc.so") || strstr(f->module, "/libpthread") ||
           strncmp(name, "clone", 5) == 0 || strncmp(name, "start", 5) == 0 ||
           strncmp(name, "libc_start", 10) == 0;
}

/* Index of the outermost frames that start the thread. */
static size_t beginning_of(const struct gt_still_thread *t)
{
    size_t i = t->frames;
    while (i > 0 && is_of_libc(&t->frame[i - 1]))
        i--;
    return i;
}

/* Adds all addresses in the thread's registers and on its stack, up to the program's frames. */
static void meet_all(struct search *x, const struct gt_still_thread *t)
{
    uint64_t words[GT_DWARF_REGISTERS];
    unsigned n = gt_registers_dwarf(&t->registers, words);
    for (unsigned i = 0; i < n && !t->by_call; i++)
        meet(x, words[i]);
    uint64_t end = gt_frame_begins(x->pools->still, t, beginning_of(t));
    meet_stack(x, t, gt_registers_sp(&t->registers), end ? end : UINT64_MAX);
}

/*
 * Adds the addresses in the thread's outermost function. Registers that its callee saved are on the
 * other side of the return address.
 */
static void meet_loop(struct search *x, const struct gt_still_thread *t)
{
    enum { KEPT = 64 };
    size_t end = beginning_of(t);
    uint64_t sp = gt_registers_sp(&t->registers);
    uint64_t from = end && !t->cut ? gt_frame_begins(x->pools->still, t, end - 1) : 0;
    if (from)
        meet_stack(x, t, from - sp > KEPT ? from - KEPT : sp,
                   gt_frame_begins(x->pools->still, t, end));
}

/*
 * Whether the stack refers to the task: a thread that executes a packaged task has an address
 * inside its state there.
 */
static bool has_on_stack(const struct gt_still *s, const struct gt_still_thread *t, uint64_t task)
{
    enum { STATE = 64 };
    uint64_t word;
    gt_still_prefer(t);
    for (uint64_t at = gt_registers_sp(&t->registers); gt_still_read(s, at, &word, sizeof word);
         at += sizeof word) {
        if (word - task < STATE)
            return true;
    }
    return false;
}

/*
 * Whether a future's state is that of a packaged task. Its virtual table tells, by the name of the
 * type that it points to. A core file has no constants: there the table's own name tells.
 */
static bool is_packaged(const struct gt_still *s, uint64_t state)
{
    static const char type[] = "NSt13__future_base11_Task_state";
    uint64_t table, info, name;
    char text[sizeof type + 1] = "", symbol[256];
    if (!gt_still_peek(s, state, &table, sizeof table))
        return false;
    gt_unwind_symbol(table, symbol, sizeof symbol);
    if (strstr(symbol, "__future_base::_Task_state<") || strstr(symbol, type))
        return true;
    return gt_still_peek(s, table - sizeof info, &info, sizeof info) &&
           gt_still_peek(s, info + sizeof name, &name, sizeof name) &&
           gt_still_peek(s, name, text, sizeof type) &&
           strncmp(text + (*text == '*'), type, sizeof type - 1) == 0;
}

/* The packaged task that a thread waits for. 0: none, or the wait has a timeout. */
static uint64_t task_of(const struct gt_still *s, const struct gt_still_thread *t)
{
    enum { FUTEX = 16 }; /* in std::__future_base::_State_baseV2 */
    uint64_t state = t->wait.address - FUTEX;
    return t->wait.kind == GT_WAIT_FUTURE && t->wait.within && is_packaged(s, state) ? state : 0;
}

static bool is_of_program(const struct gt_place *f)
{
    return !is_of_libc(f) && strncmp(f->function, "std::", 5) != 0 &&
           !strstr(f->module, "/libstdc++") && !strstr(f->module, "/libgotrace");
}

static bool stands_in(const struct gt_still_thread *t, const struct gt_place *f)
{
    for (size_t i = 0; i < t->frames; i++) {
        if (strcmp(t->frame[i].function, f->function) == 0)
            return true;
    }
    return false;
}

/* Whether the thread is in no function of the program in which waiting workers are. */
static bool is_beside(const struct pools *p, const struct gt_still_thread *t)
{
    for (size_t i = 0; i < t->frames; i++) {
        for (size_t k = 0; is_of_program(&t->frame[i]) && k < p->still->tasks; k++) {
            if (p->task[k] && &p->still->task[k] != t &&
                stands_in(&p->still->task[k], &t->frame[i]))
                return false;
        }
    }
    return true;
}

/* Whom it waits for --------------------------------------------------------------------------- */

static bool is_first(const struct pools *p, size_t i)
{
    return p->still->task[i].tid == p->still->pid;
}

/* Whether another waiting worker executes the task that thread i waits for. */
static bool is_executed(const struct pools *p, size_t i)
{
    for (size_t k = 0; k < p->still->tasks; k++) {
        if (k != i && p->task[k] && p->task[k] != p->task[i] &&
            has_on_stack(p->still, &p->still->task[k], p->task[i]))
            return true;
    }
    return false;
}

static bool is_in_own_queue(const struct pools *p, size_t i)
{
    struct search x = {.pools = p};
    meet_loop(&x, &p->still->task[i]);
    bool found = reaches(&x, p->task[i]);
    end_search(&x);
    return found;
}

/*
 * Whether the thread may execute tasks if it goes on. Our own thread executes none of the
 * program's.
 */
static bool may_execute(const struct pools *p, size_t i)
{
    return !p->task[i] && !gt_is_our_thread(&p->still->task[i]) && !(p->beside && is_first(p, i));
}

/*
 * Whether nothing tells where the thread can go on. It has not begun yet; or it is in a worker's
 * function and was not stopped: what leads to its queue may be in a register, which is not known.
 */
static bool is_open(const struct pools *p, const struct gt_still_thread *t)
{
    const char *innermost = gt_still_plain(t->frames ? t->frame[0].function : "clone");
    return strncmp(innermost, "clone", 5) == 0 || (t->by_call && !is_beside(p, t));
}

/*
 * Adds all that threads which may execute tasks can reach. False: that is more than can be
 * followed, or not known.
 */
static bool meet_others(struct search *x)
{
    const struct pools *p = x->pools;
    for (size_t i = 0; i < p->still->tasks; i++) {
        const struct gt_still_thread *t = &p->still->task[i];
        if (may_execute(p, i) && is_open(p, t))
            return false;
        if (may_execute(p, i))
            meet_all(x, t);
    }
    reaches(x, 0);
    return x->n < OBJECTS_MAX;
}

static bool is_on_others_stack(const struct pools *p, uint64_t task)
{
    for (size_t i = 0; i < p->still->tasks; i++) {
        if (!p->task[i] && has_on_stack(p->still, &p->still->task[i], task))
            return true;
    }
    return false;
}

/* Removes the threads whose task another thread may execute. Returns whether there were any. */
static bool take_out(struct pools *p)
{
    struct search x = {.pools = p};
    bool all = meet_others(&x), any = false;
    for (size_t i = 0; i < p->still->tasks; i++) {
        uint64_t task = p->task[i];
        if (!task || (all && !gt_memo_find(&x.seen, task) && !is_on_others_stack(p, task) &&
                      (is_executed(p, i) || is_in_own_queue(p, i))))
            continue;
        p->task[i] = 0;
        any = true;
    }
    end_search(&x);
    return any;
}

/* All ------------------------------------------------------------------------------------------ */

/* The end of the stack frames in which libgotrace, if it is loaded, makes the thread wait. */
static uint64_t end_of_wait(const struct gt_still *s, const struct gt_still_thread *t)
{
    uint64_t sp = gt_registers_sp(&t->registers), end = 0;
    for (size_t i = 0; i + 1 < t->frames; i++) {
        if (strstr(t->frame[i].module, "/libgotrace"))
            end = gt_frame_begins(s, t, i + 1);
    }
    return end ? end : sp;
}

/*
 * Adds a region where objects can be. A stack belongs to its thread alone; only the first thread's
 * may have objects of others.
 */
static void add_region(struct pools *p, const struct gt_mapping *m)
{
    static const char *const system[] = {"/libc.so", "/libstdc++",  "/libpthread",
                                         "/ld-",     "/libgotrace", "[v"};
    struct region r = {m->lo, m->hi, !*m->path || strcmp(m->path, "[heap]") == 0};
    bool good = m->readable && m->writable;
    for (size_t i = 0; i < sizeof system / sizeof *system; i++)
        good &= !strstr(m->path, system[i]);
    for (size_t i = 0; good && i < p->still->tasks; i++) {
        uint64_t sp = gt_registers_sp(&p->still->task[i].registers);
        if (sp < m->lo || sp >= m->hi)
            continue;
        good = is_first(p, i);
        r = (struct region){end_of_wait(p->still, &p->still->task[i]), m->hi, false};
    }
    if (good)
        *GT_ADD(p->region, p->regions) = r;
}

static int by_address(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Finds the regions. A core file lists only mapped files, but contains all writable memory. */
static void find_regions(struct pools *p)
{
    const struct gt_still *s = p->still;
    for (size_t i = 0; i < s->mappings && !s->core; i++)
        add_region(p, &s->mapping[i]);
    for (size_t i = 0; i < s->pieces && s->core; i++) {
        const struct gt_memory_piece *piece = &s->piece[i];
        const struct gt_mapping *m = gt_still_mapping(s, piece->at);
        add_region(p, &(struct gt_mapping){.lo = piece->at,
                                           .hi = piece->at + piece->size,
                                           .path = m ? m->path : "",
                                           .readable = true,
                                           .writable = true});
    }
    qsort(p->region, p->regions, sizeof *p->region, by_address);
}

/*
 * Finds objects that thread loops refer to, and what those point to: a thread's own object has its
 * pool's address.
 */
static void find_begins(struct pools *p)
{
    struct search x = {.pools = p};
    for (size_t i = 0; i < p->still->tasks; i++)
        meet_loop(&x, &p->still->task[i]);
    for (size_t i = 0, n = x.n; i < n; i++)
        look_at(&x, x.found[i]);
    qsort(x.found, x.n, sizeof *x.found, by_address);
    p->begin = x.found;
    p->begins = x.n;
    gt_memo_free(&x.seen);
}

static void tell(const struct pools *p)
{
    struct gt_deadlock *d = NULL;
    for (size_t i = 0; i < p->still->tasks; i++) {
        if (!p->task[i] || (p->beside && is_first(p, i)))
            continue;
        if (!d)
            d = GT_ADD(p->still->deadlock, p->still->deadlocks);
        d->kind = "pool";
        *GT_ADD(d->task, d->tasks) = i;
    }
}

void gt_find_pools(struct gt_still *s)
{
    struct pools p = {.still = s, .beside = true};
    bool any = false;
    p.task = gt_need(calloc(s->tasks + 1, sizeof *p.task));
    for (size_t i = 0; i < s->tasks; i++)
        any |= (p.task[i] = task_of(s, &s->task[i])) != 0;
    for (size_t i = 0; any && i < s->tasks; i++) {
        if (is_first(&p, i))
            p.beside = is_beside(&p, &s->task[i]);
    }
    if (any) {
        find_regions(&p);
        find_begins(&p);
        while (take_out(&p))
            ;
        tell(&p);
    }
    free(p.region);
    free(p.begin);
    free(p.task);
}
