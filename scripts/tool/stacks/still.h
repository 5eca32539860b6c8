/*
 * A process as it stood: its threads with their registers, each as of one moment, and of its memory
 * what was copied then. stop.c makes it of a running one, core.c of a core file, gone.c of a black
 * box; loaded.c, unwinding.c and waits.c work out the rest when the process runs on.
 */
#ifndef GT_STILL_H
#define GT_STILL_H

#include "registers.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct gt_place {
    uint64_t pc;
    const char *function, *file, *module; /* file "": not known */
    uint32_t line;                        /* 0: not known */
    bool inlined;                         /* into the next one */
};

enum gt_state { GT_RUNS, GT_WAITS, GT_HELD, GT_UNSTOPPABLE };

enum gt_wait_kind {
    GT_WAIT_NONE,
    GT_WAIT_MUTEX,
    GT_WAIT_RWLOCK,
    GT_WAIT_COND,
    GT_WAIT_SEMAPHORE,
    GT_WAIT_BARRIER,
    GT_WAIT_ONCE,
    GT_WAIT_JOIN,
    GT_WAIT_STDIO,
    GT_WAIT_GIL,
    GT_WAIT_FUTURE,
    GT_WAIT_FUTEX,
    GT_WAIT_POLL,
    GT_WAIT_DESCRIPTOR,
    GT_WAIT_SLEEP,
    GT_WAIT_CHILD,
    GT_WAIT_CALL
};

/*
 * Who holds a lock, or is joined. ENDED: no thread of the process has that id any more. LEFT: a
 * thread of the parent's that did not come along when it forked. FORKED: one of these, or the one
 * that forked, which is the first thread now.
 */
enum gt_owner {
    GT_OWNER_UNKNOWN,
    GT_OWNER_THREAD,
    GT_OWNER_ENDED,
    GT_OWNER_FOREIGN,
    GT_OWNER_LEFT,
    GT_OWNER_FORKED
};

struct gt_fd {
    int number;
    char what[192]; /* "": not known */
};

struct gt_wait {
    enum gt_wait_kind kind;
    const char *call; /* the system call; NULL: it has no name here */
    long number;      /* of that */
    uint64_t address; /* of a lock, or of the futex */
    char name[256];   /* what is there, "": no symbol */
    enum gt_owner owned;
    pid_t owner;      /* as the kernel calls it for us, if it is known to be a thread */
    uint32_t readers; /* who hold a rwlock */
    bool timed;       /* it ends by itself: after `ns`, if that is known and not 0 */
    bool left;        /* `ns` is what is left of a sleep that does not say how long it is in all */
    uint64_t ns;
    bool certain; /* the owner, and that only it can end the wait */
    bool within;  /* only some thread of the process can end it */
    bool refused; /* waits for ever: the kernel has said EDEADLK or ESRCH to glibc */
    struct gt_fd *fd;
    size_t fds;
    pid_t child; /* 0 and less as of waitpid(2) */
};

struct gt_task {
    pid_t tid, own; /* as the kernel calls it for us, and for the process itself */
    char name[17];
    enum gt_state state;
    int signal;     /* on its way to the thread */
    bool arrived;   /* its registers and its stack are of one moment */
    bool by_call;   /* it was not stopped: of its registers only those of the call are known */
    bool has_frame; /* but the frame pointer is known, too */
    struct gt_call before; /* seen before it was stopped */
    struct gt_call call;   /* in progress, at the moment that all of this is of */
    struct user_regs_struct registers;
    size_t piece, pieces; /* what was copied for it, its stack first */
    bool done, gone;      /* it has been visited; it has ended before that */
    bool asked;           /* to stop */
    bool ran;             /* seen to run, at first with so much CPU time, after so many sleeps */
    uint64_t cpu;
    long sleeps;
    struct gt_place *frame;
    size_t frames;
    bool cut;     /* the stack is longer than what is shown */
    bool unknown; /* and nothing tells how it goes on: code that was made at run time, mostly */
    struct gt_wait wait;
    bool stuck; /* confirmed */
};

struct gt_mapping {
    uint64_t lo, hi, offset;
    const char *path;        /* "": of no file */
    bool readable, writable; /* as long as the process runs */
};

struct gt_piece {
    uint64_t at;
    size_t size;
    const uint8_t *bytes;
};

struct gt_deadlock {
    const char *kind; /* "cycle", "ended", "refused", "all" */
    size_t *task;     /* indices */
    size_t tasks;
};

struct gt_still {
    pid_t pid;   /* 0: of a core file that does not tell */
    pid_t alive; /* the thread by which /proc tells of files: of the first, not when it has ended */
    int root, exe; /* its files, open: it may end; -1: not to be had. Not of a core file */
    int memory;    /* the same of its memory */
    char name[17];
    const char *core, *program; /* NULL: none was named */
    bool foreign;               /* it numbers its threads otherwise: a PID namespace */
    bool forked;                /* and has executed nothing since */
    bool told;                  /* owners are those of when the waits began */
    uint64_t stopped_ns;        /* the longest that one of its threads was */
    uint64_t vdso;              /* where that begins */
    struct gt_task *task;
    struct gt_mapping *mapping;
    struct gt_piece *piece;
    struct gt_deadlock *deadlock;
    size_t tasks, mappings, pieces, deadlocks;
};

/* One more of an array's items, zeroed; what pointed into it is not valid any more. */
#define GT_MORE(array, n) ((array) = gt_more((array), (n), sizeof *(array)), &(array)[(n)++])
void *gt_more(void *array, size_t n, size_t bytes);

/* What was copied of the process's memory; false: not all of that was. Of what was copied twice,
 * at different times, it is what was copied for the task that was preferred last. */
void gt_still_prefer(const struct gt_task *task);
bool gt_still_read(const struct gt_still *still, uint64_t at, void *to, size_t size);

/* The same, and what was not copied as it is now, if the process is there. */
bool gt_still_peek(const struct gt_still *still, uint64_t at, void *to, size_t size);

const struct gt_mapping *gt_still_mapping(const struct gt_still *still, uint64_t at);

/* A thread's id, before the word that joins of it wait for: struct pthread of glibc 2.43. */
enum { GT_JOINED_ID = 856 };

/* By the id that the process itself has for it; NULL: it has no such thread. */
const struct gt_task *gt_still_own(const struct gt_still *still, pid_t own);
const struct gt_task *gt_still_task(const struct gt_still *still, pid_t tid);

/*
 * stop.c: looks at a process's threads, one after the other; ends with a message if it cannot. What
 * it says of different threads is of different moments: see confirm.c.
 */
void gt_stop(struct gt_still *still, pid_t pid);

/* visit.c: the call that a thread, which runs on, sleeps in; none, too, if nothing tells. */
struct gt_call gt_call_of(pid_t tid);
bool gt_call_is_same(const struct gt_call *a, const struct gt_call *b);

/* How often a thread has gone to sleep. */
long gt_sleeps_of(pid_t tid);

/* While a thread stands still no other's turn comes before the calling one's, if we may. */
void gt_hurry(bool yes);

/* confirm.c: leaves only those deadlocks whose threads all wait at one moment, now. */
void gt_confirm_deadlocks(struct gt_still *still);

/* core.c: from a core file; ends with a message when it is none. */
void gt_core_open(struct gt_still *still, const char *path);

/* gone.c: from a black box, with stacks; last: as of gt_recent_read. Ends with a message likewise.
 */
void gt_gone_open(struct gt_still *still, const char *path, unsigned last);

/* unwinding.c: the stacks of all tasks; false: there is no libdw. */
bool gt_unwind(struct gt_still *still);

/* made.c: what a running process has made at run time, and what it calls that at an address. */
void gt_made_read(pid_t pid);
struct gt_sym_frame;
bool gt_made_name(uint64_t pc, struct gt_sym_frame *frame);

/* The symbol around an address of data, "name" or "name+12", in `name`; "": there is none. */
void gt_unwind_symbol(uint64_t address, char *name, size_t size);

/* waits.c: what each task waits for. Needs its frames. */
void gt_find_waits(struct gt_still *still);
void gt_find_wait(const struct gt_still *still, struct gt_task *task);

/* cycles.c: who can never go on. Needs the waits. */
void gt_find_deadlocks(struct gt_still *still);

/* forked.c: who has a lock by an id that no thread of the process has. */
enum { GT_FORKED = 0x40 }; /* PF_FORKNOEXEC of the kernel's, among the flags of a process */
bool gt_is_forked(pid_t pid);
enum gt_owner gt_forked_owner(const struct gt_still *still, pid_t own);

/* descriptors.c: what a descriptor of a process is. */
void gt_describe_fd(pid_t pid, struct gt_fd *fd);

/* Adds those that an epoll descriptor watches. */
void gt_add_watched(pid_t pid, int epoll, struct gt_wait *wait);

/* stacks_json.c */
void gt_stacks_json(const struct gt_still *still);

extern const char *const gt_state_names[], *const gt_wait_names[];

#endif
