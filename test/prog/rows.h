/*
 * Programs that are a table: one row for each way to wait. `PROG ROW…` runs these rows, `PROG` all
 * timed ones, `PROG --list` prints the rows, each with its kind. The table ends with an empty row.
 *
 * A row starts its threads one after the other, each once the one before sleeps in the kernel (or
 * spins), then computes for HOLD and ends their waits. It prints for each wait a line of truth,
 *   <leaf> <waiter tid> <waker tid> <ns from call to return> <ns it had to wait> <class> <start>
 * all by our own clock. A waker of 0: no thread of this process ended it. The ns it had to wait:
 * from when the row saw the thread asleep until it woke it; never more than the ns from call to
 * return. And a line for each thread that is the same in every run: result <row> <index of the
 * thread> <result> <errno> A row that this machine cannot do prints `skip <row>: <reason>` instead.
 *
 * `PROG --cancel ROW…`, or `PROG --cancel`, all timed ones: instead of ending the wait, cancels
 * the thread. Prints what became of it, which is the same in every run:
 *   result <row> cancelled
 *   result <row> waits on        it is asleep as before, until its wait was ended
 */
#pragma once

#include "truth.h"

#define HOLD (25 * MS)
#define TIMEOUT (15 * MS) /* of rows that end by themselves */

enum kind {
    TIMED,   /* waits for a known time */
    COUNTED, /* cannot be made to wait: how often and where is known */
    QUIET,   /* does not wait */
    SPECIAL, /* one that a test of its own runs */
};

struct row {
    const char *name, *hook; /* hook: the function that the trace must name */
    void (*before)(void);
    long (*call)(void);    /* the wait, and nothing else that the trace would show */
    void (*wake)(void);    /* ends the waits; NULL: they end by themselves, after TIMEOUT */
    void (*release)(void); /* what the threads do when their wait is over */
    void (*after)(void);
    void (*around)(void (*body)(void)); /* calls body; the waits end when it has returned */
    int threads;                        /* 0: one */
    int rounds;                         /* the same again, with new threads; 0: one */
    const char *class; /* sync, cond, network, sleep, syscall: what the trace is to say */
    enum kind kind;
    int foreign;   /* no thread of ours ends the wait, though `wake` brings it about */
    int spins;     /* waits without sleeping */
    int at_futex;  /* though it is a call, a thread of it may wait at a futex */
    int no_cancel; /* not for --cancel: libc, or the other process of the row, does not survive it
                    */
};

struct note {
    uint64_t start, end, arranged;
};

/* One thread of a row. A row may change what it does and who wakes it. */
struct party {
    pthread_t thread;
    _Atomic int tid;
    int index;
    int waker;
    const char *class, *hook;
    uint64_t start, asleep, woken;
    _Atomic uint64_t end;
    long result;
    int error;
    int notes; /* the waits of a row that has several; else it is the whole call */
    struct note note[16];
};

static const struct row *row;
static struct party parties[8];
static _Thread_local struct party *self;
static int main_tid;
static const char *skipped; /* why this machine cannot do this row; set by `before` */

#define EXPECT(what) ((what) ? (void)0 : failed(#what, __FILE__, __LINE__))

static inline void failed(const char *what, const char *file, int line)
{
    fprintf(stderr, "%s:%d: row %s: not so: %s (errno %d)\n", file, line, row ? row->name : "-",
            what, errno);
    abort();
}

/* The wait begins only here: what came before was preparing it. */
static inline void starting(void)
{
    self->start = now();
}

/* One of several waits of this thread is over. */
static inline void noted(uint64_t start, uint64_t arranged)
{
    uint64_t end = now();
    EXPECT(self->notes < 16);
    self->note[self->notes++] = (struct note){start, end, arranged};
}

static inline void ended(void *party)
{
    ((struct party *)party)->end = now();
}

static inline void *party_main(void *arg)
{
    self = arg;
    pthread_cleanup_push(ended, self); /* for the rows that cancel */
    self->tid = tid();
    errno = 0;
    starting();
    self->result = row->call();
    self->end = now();
    self->error = errno;
    pthread_cleanup_pop(0);
    if (row->release)
        row->release();
    return NULL;
}

/* Has used the CPU: waits in a loop, and has been seen waiting when this is over. */
static inline void until_spinning(struct party *p)
{
    clockid_t clock;
    struct timespec ts;
    EXPECT(pthread_getcpuclockid(p->thread, &clock) == 0);
    uint64_t used, limit = 0;
    do {
        clock_gettime(clock, &ts);
        used = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
        if (!limit && p->tid)
            limit = used + MS;
    } while (!limit || used < limit);
}

static inline void start_party(int i)
{
    struct party *p = &parties[i];
    uint64_t limit = now() + 10000 * MS;
    *p = (struct party){.index = i, .class = row->class, .hook = row->hook};
    /* a call waits for something to happen, not for a thread */
    int calls = *row->class == 'n' || strcmp(row->class, "syscall") == 0;
    int no_futex = calls && !row->at_futex; /* there it would sleep for the library */
    int woken = !calls && !row->foreign;
    p->waker = woken && (row->wake || row->around) ? main_tid : 0;
    EXPECT(pthread_create(&p->thread, NULL, party_main, p) == 0);
    if (row->spins)
        until_spinning(p);
    while (!row->spins && row->kind != QUIET && row->kind != COUNTED) {
        if (p->tid && is_asleep(p->tid) && !(no_futex && is_at_futex(p->tid)))
            break;
        if (p->end && !row->wake) /* its own time was over before we looked */
            break;
        EXPECT(!p->end);
        EXPECT(now() < limit);
        busy(20000);
    }
    p->asleep = now();
}

static inline void scene(void)
{
    int n = row->threads ? row->threads : 1;
    for (int i = 0; i < n; i++)
        start_party(i);
    if (row->wake || row->around)
        busy(HOLD);
    uint64_t woken = now();
    for (int i = 0; i < n; i++)
        parties[i].woken = woken;
    if (row->wake)
        row->wake();
}

static inline int can_be_cancelled(const struct row *r)
{
    return r->kind == TIMED && r->wake && !r->around && !r->spins && !r->no_cancel &&
           r->threads <= 1 && !r->rounds;
}

/* A call that is a cancellation point ends at once; one that has not ended soon is none. */
static inline void cancel_row(const struct row *r)
{
    row = r;
    if (!can_be_cancelled(r)) {
        printf("skip %s: its threads are not to be cancelled\n", r->name);
        return;
    }
    if (r->before)
        r->before();
    if (skipped) {
        printf("skip %s: %s\n", r->name, skipped);
    } else {
        struct party *p = &parties[0];
        start_party(0);
        EXPECT(pthread_cancel(p->thread) == 0);
        uint64_t limit = now() + 2 * HOLD;
        while (!p->end && (now() < limit || !is_asleep(p->tid)))
            busy(20000);
        int cancelled = p->end != 0;
        printf("result %s %s\n", r->name, cancelled ? "cancelled" : "waits on");
        if (!cancelled)
            r->wake();
        pthread_join(p->thread, NULL);
    }
    if (r->after)
        r->after();
    skipped = NULL;
}

static inline void truth_line(const struct party *p, const struct note *t)
{
    if (row->kind != QUIET)
        printf("%s %d %d %llu %llu %s %llu\n", p->hook, p->tid, p->waker,
               (unsigned long long)(t->end - t->start), (unsigned long long)t->arranged, p->class,
               (unsigned long long)t->start);
}

static inline void report(const struct party *p)
{
    uint64_t woken = row->wake || row->around ? p->woken : p->start + TIMEOUT;
    struct note whole = {p->start, p->end, woken > p->asleep ? woken - p->asleep : 0};
    for (int i = 0; i < p->notes; i++)
        truth_line(p, &p->note[i]);
    if (!p->notes)
        truth_line(p, &whole);
    printf("result %s %d %ld %d\n", row->name, p->index, p->result, p->error);
}

static inline void run_row(const struct row *r)
{
    row = r;
    if (r->before)
        r->before();
    if (skipped)
        printf("skip %s: %s\n", r->name, skipped);
    for (int round = 0; !skipped && round < (r->rounds ? r->rounds : 1); round++) {
        if (r->around)
            r->around(scene);
        else
            scene();
        for (int i = 0; i < (r->threads ? r->threads : 1); i++) {
            while (pthread_tryjoin_np(parties[i].thread, NULL) != 0)
                busy(20000);
            report(&parties[i]);
        }
    }
    if (r->after)
        r->after();
    skipped = NULL;
}

static inline int rows_main(const struct row *table, int argc, char **argv)
{
    static const char *const kinds[] = {"timed", "counted", "quiet", "special"};
    static char out[1 << 16];
    setvbuf(stdout, out, _IOFBF, sizeof out); /* nothing is written before the end */
    main_tid = tid();
    for (const struct row *r = table; r->name && argc == 1; r++)
        if (r->kind == TIMED)
            run_row(r);
    int cancel = argc > 1 && strcmp(argv[1], "--cancel") == 0;
    for (const struct row *r = table; r->name && cancel && argc == 2; r++)
        if (r->kind == TIMED)
            cancel_row(r);
    for (int i = 1 + cancel; i < argc; i++) {
        int list = strcmp(argv[i], "--list") == 0, found = list;
        for (const struct row *r = table; r->name; r++) {
            if (list)
                printf("%s %s\n", r->name, kinds[r->kind]);
            else if (strcmp(argv[i], r->name) == 0)
                found = 1, cancel ? cancel_row(r) : run_row(r);
        }
        if (!found) {
            fprintf(stderr, "no row %s\n", argv[i]);
            return 2;
        }
    }
    return 0;
}
