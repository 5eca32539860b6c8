/* See choose.h. */
#include "choose.h"

#include "encoder/base/path.h"
#include "encoder/read/need.h"
#include "scripts/tool/stacks/system_calls.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Parts of names of libc's functions in which a thread may hold such a lock. */
static const char *const of_libc[] = {
    "alloc",  "free",   "tcache",      "dl_",
    "dlopen", "dlsym",  "dlclose",     "dlmopen",
    "dlinfo", "dladdr", "dlvsym",      "fork",
    "spawn",  "system", "popen",       "pthread_create",
    "thrd_",  "exit",   "abort",       "clone",
    "setxid", "tls",    "pthread_key", "lll_lock_wait_private",
};

/* Parts of names of other modules' functions that may be an allocator's. */
static const char *const of_others[] = {
    "malloc",       "calloc",          "realloc", "memalign", "aligned_alloc",
    "operator new", "operator delete", "je_",     "mi_",      "arena"};

static const char *const modules[] = {"ld-linux", "ld.so", "alloc", "libgc.so"};

static bool has_any(const char *text, const char *const *parts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strstr(text, parts[i]))
            return true;
    }
    return false;
}

static bool is_in_libc(const struct gt_place *f)
{
    return strncmp(gt_path_name(f->module), "libc.so", 7) == 0;
}

/* Whether the stack is known to its bottom, which is libc's start of a thread, or _start. */
static bool has_bottom(const struct gt_still_thread *t)
{
    const struct gt_place *last = &t->frame[t->frames - 1];
    return is_in_libc(last) || strcmp(last->function, "_start") == 0 ||
           (t->frames > 1 && is_in_libc(last - 1) && strstr(last[-1].function, "libc_start"));
}

#define HAS_ANY(text, parts) has_any(text, parts, sizeof parts / sizeof *parts)

static bool may_hold_locks(const struct gt_place *f)
{
    return HAS_ANY(gt_path_name(f->module), modules) || strcmp(f->function, "free") == 0 ||
           (is_in_libc(f) ? HAS_ANY(f->function, of_libc) : HAS_ANY(f->function, of_others));
}

static bool is_ordinary(const struct gt_still_thread *t)
{
    if (!t->frames || t->unknown || t->cut || !has_bottom(t))
        return false;
    for (size_t i = 0; i + 1 < t->frames; i++) {
        if (may_hold_locks(&t->frame[i]))
            return false;
    }
    return true;
}

/*
 * Whether the thread waits in a call, or sleeps on in one, that can be made again. A call that may
 * have done a part of its work cannot. Event loops wait with a timeout, and take EINTR for its end.
 */
static bool is_patient(const struct gt_still *still, pid_t tid, const struct gt_system_call *call)
{
    const struct gt_call_row *row = gt_call_row(call->number);
    return row && (row->class != GT_CALL_OTHER || call->number == SYS_restart_syscall) &&
           gt_call_again(still, tid, call) != GT_AGAIN_NOT;
}

/* Whether an allocator could wait in that call, for a lock. */
static bool is_of_locks(long number)
{
    const struct gt_call_row *row = gt_call_row(number);
    return !row || row->class == GT_CALL_FUTEX || row->class == GT_CALL_SLEEP;
}

static bool has_timeout(const struct gt_call_row *row, const struct gt_system_call *call)
{
    if (row->timeout < 0)
        return false;
    uint64_t value = call->argument[row->timeout & ~GT_CALL_MS];
    return row->timeout & GT_CALL_MS ? (int32_t)value >= 0 : value != 0;
}

/* Higher for a thread whose call may last long, and for the main thread, which has the program's
 * own scheduling. */
static int rank(const struct gt_still *s, const struct gt_still_thread *t)
{
    bool timed =
        t->call.number == SYS_restart_syscall || has_timeout(gt_call_row(t->call.number), &t->call);
    bool anew = gt_call_again(s, t->tid, &t->call) == GT_AGAIN_ANEW;
    return (timed ? 0 : 2) - (anew ? 2 : 0) + (t->tid == s->pid);
}

static const struct gt_still *sorting;

static int better(const void *a, const void *b)
{
    return rank(sorting, *(const struct gt_still_thread *const *)b) -
           rank(sorting, *(const struct gt_still_thread *const *)a);
}

size_t gt_choose(const struct gt_still *still, bool own_malloc, const struct gt_still_thread **out)
{
    size_t n = 0;
    for (size_t i = 0; i < still->tasks; i++) {
        const struct gt_still_thread *t = &still->task[i];
        if (t->arrived && t->state == GT_WAITS && t->call.number >= 0 && !t->signal &&
            is_patient(still, t->tid, &t->call) && !(own_malloc && is_of_locks(t->call.number)) &&
            is_ordinary(t))
            out[n++] = t;
    }
    sorting = still;
    qsort(out, n, sizeof *out, better);
    return n;
}

/* Whether `call` is the one that the task was seen in, or another wait made in the same place. */
static bool is_like(const struct gt_still *still, const struct gt_still_thread *task,
                    const struct gt_system_call *call)
{
    return call->pc == gt_registers_pc(&task->registers) &&
           call->sp == gt_registers_sp(&task->registers) && is_patient(still, task->tid, call);
}

bool gt_choose_is_there(const struct gt_still *still, const struct gt_still_thread *task,
                        const struct user_regs_struct *registers)
{
    bool eintr;
    struct gt_system_call none = {.number = GT_CALL_NONE};
    struct gt_system_call call = gt_registers_call(registers, &none, &eintr);
    call.pc = gt_registers_pc(registers);
    call.sp = gt_registers_sp(registers);
    return is_like(still, task, &call);
}

bool gt_choose_may_be_there(const struct gt_still *still, const struct gt_still_thread *task)
{
    struct gt_system_call call = gt_call_of(task->tid);
    if (call.number < 0)
        return access("/proc/self/syscall", F_OK) != 0;
    return is_like(still, task, &call);
}

bool gt_choose_returns(const struct gt_still_thread *t, uint64_t word)
{
    for (size_t i = 0; i < t->frames; i++) {
        if (t->frame[i].pc + 1 == word)
            return true;
    }
    return false;
}

const struct gt_memory_piece *gt_choose_stack(const struct gt_still *s,
                                              const struct gt_still_thread *t)
{
    uint64_t sp = gt_registers_sp(&t->registers);
    for (size_t i = 0; i < s->pieces; i++) {
        if (s->piece[i].at == sp)
            return &s->piece[i];
    }
    return NULL;
}

/* The thread has the same frames if all return addresses are where they were. */
bool gt_choose_again(const struct gt_still *still, const struct gt_still_thread *task, int memory)
{
    const struct gt_memory_piece *then = gt_choose_stack(still, task);
    if (!then)
        return false;
    uint64_t *now = gt_need(malloc(then->size)), word;
    bool same = pread(memory, now, then->size, (off_t)then->at) == (ssize_t)then->size;
    for (size_t i = 0; same && i < then->size / sizeof word; i++) {
        memcpy(&word, then->bytes + i * sizeof word, sizeof word);
        same =
            now[i] == word || (!gt_choose_returns(task, word) && !gt_choose_returns(task, now[i]));
    }
    free(now);
    return same;
}

bool gt_choose_is_in_use(const struct gt_still *still, uint64_t code, size_t size)
{
    for (size_t i = 0; i < still->tasks; i++) {
        const struct gt_still_thread *t = &still->task[i];
        if (gt_registers_pc(&t->registers) - code < size)
            return true;
        const struct gt_memory_piece *stack = gt_choose_stack(still, t);
        for (size_t k = 0; stack && k < stack->size / 8; k++) {
            uint64_t word;
            memcpy(&word, stack->bytes + 8 * k, 8);
            if (word - code < size)
                return true;
        }
    }
    return false;
}
