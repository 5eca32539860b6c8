/* See system_calls.h. */
#include "system_calls.h"

#include "still.h"

#include "encoder/base/libc.h"

#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct gt_call_row rows[] = {
#define GT_ROW(name, class, timeout, again) \
    {SYS_##name, #name, GT_CALL_##class, timeout, GT_AGAIN_##again},
#include "system_calls.def"
#undef GT_ROW
};

enum { ROWS = sizeof rows / sizeof *rows };

const struct gt_call_row *gt_call_row(long number)
{
    for (int i = 0; i < ROWS; i++) {
        if (rows[i].number == number)
            return &rows[i];
    }
    return NULL;
}

const struct gt_call_row *gt_call_named(const char *name)
{
    for (int i = 0; i < ROWS; i++) {
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    }
    return NULL;
}

/* Whether the descriptor is a pipe: there only a reader that has got nothing yet waits. */
static bool is_pipe(int tid, int fd)
{
    char path[64], what[8];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", tid, fd);
    return readlink(path, what, sizeof what) >= 5 && memcmp(what, "pipe:", 5) == 0;
}

static bool has_timeout(const struct gt_call_row *row, const struct gt_system_call *call)
{
    if (row->timeout < 0)
        return false;
    uint64_t value = call->argument[row->timeout & ~GT_CALL_MS];
    return row->timeout & GT_CALL_MS ? (int)value >= 0 : value != 0;
}

/*
 * Whether the address is in the frame of libc's own function, as in sleep(3): all return addresses
 * below it are libc's. A stale return address into the program makes the answer false.
 */
static bool is_of_libc(const struct gt_still *still, const struct gt_system_call *call, uint64_t at)
{
    enum { WORDS = 64 }; /* more than such a function has */
    uint64_t words[WORDS], n = (at - call->sp) / sizeof *words;
    const struct gt_mapping *libc = gt_still_mapping(still, call->pc), *m;
    const char *name = libc ? strrchr(libc->path, '/') : NULL;
    bool known = at >= call->sp && n < WORDS && name && strncmp(name, "/libc.so", 8) == 0 &&
                 pread(still->memory, words, n * sizeof *words, (off_t)call->sp) ==
                     (ssize_t)(n * sizeof *words);
    for (uint64_t i = 0; known && i < n; i++) {
        m = gt_still_mapping(still, words[i]);
        known = !m || m->writable || strcmp(m->path, libc->path) == 0;
    }
    return known;
}

/* Whether the kernel writes the rest of a sleep to memory, which the caller may then sleep. */
static bool tells_rest(const struct gt_still *still, const struct gt_call_row *row,
                       const struct gt_system_call *call)
{
    uint64_t rest = row->class == GT_CALL_SLEEP ? call->argument[row->timeout + 1] : 0;
    return rest && !(rest == call->argument[row->timeout] && is_of_libc(still, call, rest));
}

static bool wants_all(const struct gt_system_call *call)
{
    return (call->number == SYS_recvfrom && call->argument[3] & MSG_WAITALL) ||
           (call->number == SYS_recvmsg && call->argument[2] & MSG_WAITALL);
}

/*
 * Whether a thread waits for a futex word that has changed by now. Its wake-up is on its way, or
 * was lost. If the call were repeated it would end, and with it the hang that the user wants to
 * see.
 */
static bool has_changed(const struct gt_still *still, const struct gt_system_call *call)
{
    static const unsigned waits =
        1u << FUTEX_WAIT | 1u << FUTEX_WAIT_BITSET | 1u << FUTEX_WAIT_REQUEUE_PI;
    uint32_t word;
    return call->number == SYS_futex && waits >> (call->argument[1] & FUTEX_CMD_MASK & 31) & 1 &&
           (pread(still->memory, &word, sizeof word, (off_t)call->argument[0]) != sizeof word ||
            word != (uint32_t)call->argument[2]);
}

enum gt_again gt_call_again(const struct gt_still *still, int tid,
                            const struct gt_system_call *call)
{
    const struct gt_call_row *row = gt_call_row(call->number);
    if (!row || tells_rest(still, row, call) || wants_all(call) || has_changed(still, call))
        return GT_AGAIN_NOT;
    bool timed = has_timeout(row, call);
    bool reads = call->number == SYS_read || call->number == SYS_readv;
    switch (row->again) {
    case GT_AGAIN_LEFT: {
        const struct gt_mapping *m =
            timed ? gt_still_mapping(still, call->argument[row->timeout]) : NULL;
        return !timed || (m && m->writable) ? GT_AGAIN_WHOLE : GT_AGAIN_NOT;
    }
    case GT_AGAIN_FAILS:
        return reads && is_pipe(tid, (int)call->argument[0]) ? GT_AGAIN_WHOLE
               : timed                                       ? GT_AGAIN_ANEW
                                                             : GT_AGAIN_FAILS;
    default: return row->again;
    }
}
