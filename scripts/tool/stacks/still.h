/*
 * A picture of a process: its threads with their registers, each as of one moment, and the memory
 * that was copied at that moment. stop.c makes it of a running process, core.c of a core file,
 * gone.c of a black box. loaded.c, unwinding.c and waits.c work out the rest while the process runs
 * on.
 */
#pragma once

#include "registers.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct gt_place {
    uint64_t pc, sp;                      /* sp: the stack pointer there; 0: not known */
    const char *function, *file, *module; /* file "": not known */
    uint32_t line;                        /* 0: not known */
    bool inlined;                         /* into the next frame */
    bool python; /* a function of Python: the interpreter's own function executes it there */
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
 * The state of a lock's holder, or of a joined thread. ENDED: no thread of the process has that id
 * any more. LEFT: the id of a parent's thread that the fork did not copy. FORKED: ended, left, or
 * the thread that forked, which is the first thread now: not known which.
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

struct gt_thread_wait {
    enum gt_wait_kind kind;
    const char *call; /* the system call; NULL: it has no name here */
    long number;      /* number of the system call */
    uint64_t address; /* of the lock or futex */
    char name[256];   /* of the variable there; "": no symbol */
    enum gt_owner owned;
    pid_t owner;      /* its tid in our PID namespace, if it is known to be a thread */
    uint32_t readers; /* number of readers that hold a rwlock */
    pid_t *reader;    /* threads that may be these readers, as many */
    size_t reading;   /* 0: not known */
    pid_t process;    /* the process that holds it, if only that, or another one, is known */
    bool left_to;     /* that process took it, and has left it to a process that is not known */
    pid_t suspect;    /* the thread of this process that may hold it for the process; 0: none */
    bool timed;       /* it times out: after `ns`, if that is known and not 0 */
    bool left;        /* `ns` is the rest of a sleep whose full length is not known */
    uint64_t ns;
    bool certain; /* the owner, and that only the owner can end the wait */
    bool within;  /* only some thread of the process can end it */
    bool refused; /* for ever: the kernel returned EDEADLK or ESRCH to glibc */
    struct gt_fd *fd;
    size_t fds;
    pid_t child; /* as in waitpid(2): may be 0 or less */
};

struct gt_still_thread {
    pid_t tid, own; /* its id for us, and for the process (PID namespaces) */
    char name[17];
    enum gt_state state;
    int signal;     /* on its way to the thread */
    bool arrived;   /* its registers and its stack are of one moment */
    bool by_call;   /* it was not stopped: of its registers only those of its call are known */
    bool has_frame; /* and the frame pointer */
    struct gt_system_call before; /* the call it was in before it was stopped */
    struct gt_system_call call;   /* in progress at the moment of this picture */
    struct user_regs_struct registers;
    size_t piece, pieces; /* copied for it, its stack first */
    uint64_t python;      /* Python's state of it; 0: it executes no Python */
    bool done, gone;      /* it has been visited; it had ended by then */
    bool asked;           /* asked to stop */
    bool ran;             /* seen to run; at first with this CPU time and sleeps */
    uint64_t cpu;
    long sleeps;
    struct gt_place *frame;
    size_t frames;
    bool cut;     /* the stack is longer than what is shown */
    bool unknown; /* and its rest is unknown: mostly code made at run time */
    struct gt_thread_wait wait;
    bool stuck; /* confirmed as a part of a deadlock */
};

struct gt_mapping {
    uint64_t lo, hi, offset;
    const char *path;        /* "": of no file */
    bool readable, writable; /* while the process runs */
};

struct gt_memory_piece {
    uint64_t at;
    size_t size;
    const uint8_t *bytes;
};

struct gt_deadlock {
    const char *kind; /* "cycle", "ended", "refused", "pool", "all" */
    size_t *task;     /* indices in gt_still.task */
    size_t tasks;
};

struct gt_still {
    pid_t pid;   /* 0: a core file that does not tell */
    pid_t alive; /* the thread whose /proc entry shows its files: the first, unless it has ended */
    int root, exe; /* its root and executable, open; -1: not available, as in a core file */
    int memory;    /* its memory, open; -1 as above */
    char name[17];
    const char *core, *program; /* NULL: none was named */
    bool foreign;               /* it is in another PID namespace, with other thread ids */
    bool forked;                /* and has not called execve since */
    bool told;                  /* owners are as of when the waits began */
    uint64_t stopped_ns;        /* the longest that any of its threads was stopped */
    uint64_t vdso;              /* address of the vDSO */
    struct gt_still_thread *task;
    struct gt_mapping *mapping;
    struct gt_memory_piece *piece;
    struct gt_deadlock *deadlock;
    size_t tasks, mappings, pieces, deadlocks;
};

/*
 * Reads from the copied memory. False: not all of it was copied. Of memory that was copied twice,
 * at different times, it reads the copy made for the task that was preferred last.
 */
void gt_still_prefer(const struct gt_still_thread *task);
bool gt_still_read(const struct gt_still *still, uint64_t at, void *to, size_t size);

/* Reads memory as it is now if the process runs, else from the copy. */
bool gt_still_peek(const struct gt_still *still, uint64_t at, void *to, size_t size);

const struct gt_mapping *gt_still_mapping(const struct gt_still *still, uint64_t at);

/* The thread with that id in the process's own PID namespace; or in ours. NULL: none. */
const struct gt_still_thread *gt_still_own(const struct gt_still *still, pid_t own);
const struct gt_still_thread *gt_still_task(const struct gt_still *still, pid_t tid);

/*
 * stop.c: visits the threads of a process one after the other. What it finds about different
 * threads is of different moments: see confirm.c. Ends with a message if it cannot.
 */
void gt_stop(struct gt_still *still, pid_t pid);

/*
 * visit.c: the call that a thread sleeps in, found without stopping it; GT_CALL_NONE if nothing
 * tells.
 */
struct gt_system_call gt_call_of(pid_t tid);
bool gt_call_is_same(const struct gt_system_call *a, const struct gt_system_call *b);

/* How often the thread has gone to sleep. */
long gt_sleeps_of(pid_t tid);

/* If permitted, makes the calling thread run before all others while a thread is stopped. */
void gt_hurry(bool yes);

/* confirm.c: keeps only deadlocks whose threads all wait at one moment, now. */
void gt_confirm_deadlocks(struct gt_still *still);

/* core.c: makes the picture of a core file. Ends with a message if the file is none. */
void gt_core_open(struct gt_still *still, const char *path);

/*
 * gone.c: makes the picture of a black box, with stacks. last: see gt_recent_read_box. Ends with a
 * message if the file is none.
 */
void gt_gone_open(struct gt_still *still, const char *path, unsigned last);

/* unwinding.c: finds the stacks of all threads. False: libdw is not installed. */
bool gt_unwind(struct gt_still *still);

/*
 * made_names.c: reads the names of code that a running process made at run time; and returns the
 * name at an address.
 */
void gt_made_read(pid_t pid);
struct gt_sym_frame;
bool gt_made_name(uint64_t pc, struct gt_sym_frame *frame);

/* Stores the symbol around a data address, "name" or "name+12", in `name`; "": there is none. */
void gt_unwind_symbol(uint64_t address, char *name, size_t size);

/* waits.c: finds what all threads, or one, wait for. Needs their stacks. */
void gt_find_waits(struct gt_still *still);
void gt_find_wait(const struct gt_still *still, struct gt_still_thread *task);

/* cycles.c: finds the threads that can never go on. Needs the waits of all threads. */
void gt_find_deadlocks(struct gt_still *still);

/* forked.c: the holder of a lock whose owner id no thread of the process has. */
enum { GT_FORKED = 0x40 }; /* PF_FORKNOEXEC, a kernel flag of a process */
bool gt_is_forked(pid_t pid);
enum gt_owner gt_forked_owner(const struct gt_still *still, pid_t own);

/* descriptors.c: describes a descriptor of a process. */
void gt_describe_fd(pid_t pid, struct gt_fd *fd);

/* Adds the descriptors that an epoll descriptor watches. */
void gt_add_watched(pid_t pid, int epoll, struct gt_thread_wait *wait);

/* stacks_json.c */
void gt_stacks_json(const struct gt_still *still);

extern const char *const gt_state_names[], *const gt_wait_names[];

/* The function's name without what libc puts before it: clone3 of __GI___clone3. Part of it. */
const char *gt_still_plain(const char *function);
