/*
 * Copies memory of a running process: the beginnings of its files and, for each thread, its stack
 * and what its call's arguments point to. stop.c and visit.c call this, and confirm.c again for
 * some threads.
 */
#include "python_threads.h"
#include "system_calls.h"
#include "visit.h"

#include "scripts/tool/alone.h"

#include "encoder/base/glibc.h"
#include "encoder/base/libc.h"
#include "encoder/read/need.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { STACK_MAX = 256 << 10, HEAD = 4096 };

void gt_copy(struct gt_still *s, uint64_t at, size_t size)
{
    uint8_t *bytes = gt_need(malloc(size));
    ssize_t n = pread(s->memory, bytes, size, (off_t)at);
    if (n <= 0) {
        free(bytes);
        return;
    }
    *GT_ADD(s->piece, s->pieces) = (struct gt_memory_piece){at, (size_t)n, bytes};
}

/* The process -----------------------------------------------------------------------------------
 */

static void free_mappings(struct gt_still *s)
{
    for (size_t i = 0; i < s->mappings; i++)
        free((char *)s->mapping[i].path);
    free(s->mapping);
    s->mapping = NULL;
    s->mappings = 0;
}

static void read_maps(struct gt_still *s)
{
    char line[PATH_MAX + 128], rights[8];
    FILE *f = gt_open_proc(s->alive, "maps");
    if (!f)
        return;
    free_mappings(s);
    while (fgets(line, sizeof line, f)) {
        unsigned long lo, hi, offset;
        int path = 0;
        line[strcspn(line, "\n")] = 0;
        if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %n", &lo, &hi, rights, &offset, &path) < 4)
            continue;
        struct gt_mapping *m = GT_ADD(s->mapping, s->mappings);
        *m = (struct gt_mapping){lo,
                                 hi,
                                 offset,
                                 gt_need(strdup(path ? line + path : "")),
                                 rights[0] == 'r',
                                 rights[1] == 'w'};
        if (strcmp(m->path, "[vdso]") == 0)
            s->vdso = lo;
    }
    fclose(f);
}

/* Copies the beginnings of mapped files: loaded.c identifies the program's files by them. */
static void copy_heads(struct gt_still *s)
{
    for (size_t i = 0; i < s->mappings; i++) {
        const struct gt_mapping *m = &s->mapping[i];
        if (m->lo == s->vdso)
            gt_copy(s, m->lo, m->hi - m->lo);
        else if (m->readable && m->offset == 0 && m->path[0] == '/')
            gt_copy(s, m->lo, HEAD);
    }
}

static int open_of(pid_t tid, const char *name, int how)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", tid, name);
    return open(path, how | O_CLOEXEC);
}

int gt_copy_open(struct gt_still *s)
{
    s->memory = open_of(s->alive, "mem", O_RDONLY);
    int error = s->memory < 0 ? errno : 0;
    s->root = open_of(s->alive, "root", O_PATH);
    s->exe = open_of(s->alive, "exe", O_PATH);
    read_maps(s);
    copy_heads(s);
    gt_python_open(s);
    s->forked = gt_is_forked(s->pid);
    return error ? error : s->pieces ? 0 : ESRCH;
}

void gt_copy_close(struct gt_still *s)
{
    const int fds[] = {s->memory, s->root, s->exe};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
    for (size_t i = 0; i < s->pieces; i++)
        free((uint8_t *)s->piece[i].bytes);
    free(s->piece);
    free(s->task);
    free_mappings(s);
    s->piece = NULL;
    s->task = NULL;
    s->pieces = s->tasks = 0;
    s->memory = s->root = s->exe = -1;
}

/* A program that is no longer executed has no memory: reading it returns nothing. */
bool gt_copy_is_same(const struct gt_still *s)
{
    char c;
    return s->pieces && pread(s->memory, &c, 1, (off_t)s->piece[0].at) == 1;
}

/* Its threads ------------------------------------------------------------------------------------
 */

/* What the arguments of calls point to: `size` bytes, from `before` bytes before the address. */
static const struct {
    const char *call;
    int argument, before, size;
} pointed[] = {
    {"futex", 0, 64, 128},         {"futex", 0, GT_TCB_STATE, 4}, {"futex", 3, 0, 16},
    {"poll", 0, 0, 512},           {"ppoll", 0, 0, 512},          {"ppoll", 2, 0, 16},
    {"select", 1, 0, 128},         {"select", 2, 0, 128},         {"select", 3, 0, 128},
    {"pselect6", 1, 0, 128},       {"pselect6", 2, 0, 128},       {"pselect6", 3, 0, 128},
    {"nanosleep", 0, 0, 16},       {"clock_nanosleep", 2, 0, 16}, {"restart_syscall", 0, 64, 576},
    {"restart_syscall", 2, 0, 16},
};

static void copy_pointed(struct gt_still *s, const struct gt_still_thread *t)
{
    enum { PAGE = 4096 }; /* if pages are larger, there is no hole here */
    const struct gt_call_row *row = gt_call_row(t->call.number);
    for (size_t i = 0; row && i < sizeof pointed / sizeof *pointed; i++) {
        uint64_t at = t->call.argument[pointed[i].argument];
        if (!at || strcmp(pointed[i].call, row->name) != 0)
            continue;
        size_t pieces = s->pieces, before = (size_t)pointed[i].before;
        size_t size = (size_t)pointed[i].size;
        gt_copy(s, at - before, size);
        if (s->pieces == pieces && at % PAGE < before && size > before)
            gt_copy(s, at, size - before);
    }
}

/*
 * Copies what preserved registers point to: waits.c looks there for a lock that the kernel has
 * refused.
 */
static void copy_refused(struct gt_still *s, const struct gt_still_thread *t)
{
    uint64_t saved[GT_SAVED_REGISTERS], sp = gt_registers_sp(&t->registers);
    unsigned n = gt_registers_saved(&t->registers, saved);
    if (t->call.number != SYS_futex || t->call.argument[0] - sp > 4096)
        return;
    for (unsigned i = 0; i < n; i++)
        gt_copy(s, saved[i] - 16, 56);
}

/* The mapping of a stack. Threads may have been created after the maps were read. */
static const struct gt_mapping *stack_of(struct gt_still *s, uint64_t sp)
{
    const struct gt_mapping *m = gt_still_mapping(s, sp);
    if (!m && sp) {
        read_maps(s);
        m = gt_still_mapping(s, sp);
    }
    return m;
}

static bool has_id(const uint8_t *bytes, pid_t own)
{
    for (size_t i = 0; i < GT_TCB_HAS_ID; i += sizeof own) {
        if (memcmp(bytes + i, &own, sizeof own) == 0)
            return true;
    }
    return false;
}

/* Whether libc's data of the thread is in these bytes, which were read from `at`. */
static bool find_thread(struct gt_still_thread *t, uint64_t at, const uint8_t *bytes, size_t size)
{
    struct gt_tcb_head head;
    size_t i = -at % GT_TCB_ALIGNED;
    for (; i + GT_TCB_HAS_ID <= size; i += GT_TCB_ALIGNED) {
        memcpy(&head, bytes + i, sizeof head);
        if (head.tcb == at + i && has_id(bytes + i, t->own) &&
            gt_registers_set_thread(&t->registers, at + i, &head))
            return true;
    }
    return false;
}

/*
 * Finds libc's data of a thread that was not stopped, as its registers do not tell. The data is
 * beside the thread's stack. The first thread's is in a small mapping that the loader made, or in
 * the heap of a static program.
 */
static void look_for_thread(const struct gt_still *s, struct gt_still_thread *t)
{
    enum { MOST = 1 << 18 };
    const struct gt_memory_piece *stack = t->pieces ? &s->piece[t->piece] : NULL;
    if (!stack || find_thread(t, stack->at, stack->bytes, stack->size) || t->tid != s->pid)
        return;
    uint8_t *bytes = gt_need(malloc(MOST));
    for (size_t i = 0; i < s->mappings; i++) {
        const struct gt_mapping *m = &s->mapping[i];
        if (!m->writable || (*m->path && strcmp(m->path, "[heap]") != 0) ||
            (!*m->path && m->hi - m->lo > MOST))
            continue;
        ssize_t n =
            pread(s->memory, bytes, m->hi - m->lo < MOST ? m->hi - m->lo : MOST, (off_t)m->lo);
        if (n > 0 && find_thread(t, m->lo, bytes, (size_t)n))
            break;
    }
    free(bytes);
}

void gt_copy_task(struct gt_still *s, struct gt_still_thread *t)
{
    uint64_t sp = gt_registers_sp(&t->registers);
    const struct gt_mapping *m = stack_of(s, sp);
    t->piece = s->pieces;
    if (m)
        gt_copy(s, sp, m->hi - sp < STACK_MAX ? m->hi - sp : STACK_MAX);
    copy_pointed(s, t);
    if (!t->by_call)
        copy_refused(s, t);
    t->pieces = s->pieces - t->piece;
    if (t->by_call)
        look_for_thread(s, t);
    gt_python_copy(t);
    t->pieces = s->pieces - t->piece;
}

bool gt_copy_again(const struct gt_still *s, const struct gt_still_thread *t)
{
    bool good = true;
    for (size_t i = t->piece; i < t->piece + t->pieces; i++) {
        const struct gt_memory_piece *p = &s->piece[i];
        good &= pread(s->memory, (uint8_t *)p->bytes, p->size, (off_t)p->at) == (ssize_t)p->size;
    }
    return good;
}
