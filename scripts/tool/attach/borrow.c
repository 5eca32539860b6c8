/*
 * See borrow.h. Once the thread's registers lead to the stub, the thread finds its own way back
 * (stub.h). Before that only code is changed, in a place that no thread executes. As long as this
 * command lives, it puts the thread back itself, so that the thread notices nothing. It does so in
 * a stop in which the kernel has yet to decide how the interrupted call goes on.
 */
#include "borrow.h"

#include "choose.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#define STOP_PATIENCE_NS UINT64_C(5000000000) /* the machine may be busy */
#define STUB_PATIENCE_NS UINT64_C(10000000000)

enum { CALL_STOP = SIGTRAP | 0x80 }; /* PTRACE_O_TRACESYSGOOD */

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/*
 * Waits until the thread stops; its status, 0: it did not stop within that time, or it has ended.
 * Sleeps until SIGCHLD, which is held as all signals are: on a busy machine a thread that sleeps
 * gets a CPU sooner than one that polls.
 */
static int await_stop(pid_t tid, uint64_t patience)
{
    sigset_t stopped;
    sigemptyset(&stopped);
    sigaddset(&stopped, SIGCHLD);
    for (uint64_t begin = now(); now() - begin < patience;) {
        int status;
        pid_t r = waitpid(tid, &status, __WALL | WNOHANG);
        if (r == tid)
            return WIFSTOPPED(status) ? status : 0;
        if (r < 0 && errno != EINTR)
            return 0;
        sigtimedwait(&stopped, NULL, &(struct timespec){.tv_nsec = 1000000});
    }
    return 0;
}

static bool is_event(int status)
{
    return status >> 16 == PTRACE_EVENT_STOP && WSTOPSIG(status) == SIGTRAP;
}

static bool get(pid_t tid, struct user_regs_struct *r)
{
    struct iovec place = {r, sizeof *r};
    return ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &place) == 0 && place.iov_len == sizeof *r;
}

static bool put(pid_t tid, struct user_regs_struct *r)
{
    struct iovec place = {r, sizeof *r};
    return ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &place) == 0;
}

static bool write_code(pid_t tid, uint64_t at, const uint64_t *words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (ptrace(PTRACE_POKEDATA, tid, at + 8 * i, words[i]) != 0)
            return false;
    }
    return true;
}

/* The stub's code with its constants; *words: its size. */
static uint64_t *make_code(const struct gt_stub_constants *constants, size_t *words)
{
    size_t size;
    const void *code = gt_stub_code(&size);
    *words = (size + 7) / 8;
    uint64_t *made = calloc(*words, 8);
    if (made) {
        memcpy(made, code, size);
        memcpy((char *)made + gt_stub_constants_at, constants, sizeof *constants);
    }
    return made;
}

/* Runs the stub from system call to system call. false: it did not get to its last one. */
static bool run_stub(pid_t tid, uint64_t last, struct user_regs_struct *r)
{
    for (uint64_t begin = now(); now() - begin < STUB_PATIENCE_NS;) {
        if (ptrace(PTRACE_SYSCALL, tid, 0, 0) != 0)
            return false;
        int status = await_stop(tid, STUB_PATIENCE_NS);
        if (!status || !get(tid, r))
            return false;
        if (WSTOPSIG(status) == CALL_STOP && gt_registers_pc(r) == last)
            return true;
        if (WSTOPSIG(status) != CALL_STOP && status >> 16 == 0)
            return false; /* a signal though all are held: the stub has faulted */
    }
    return false;
}

struct visit {
    pid_t tid;
    struct user_regs_struct found; /* registers to put back */
    uint64_t mask, code;
    struct gt_borrowing *out;
};

/* Stops the thread by request: such a stop comes before the thread takes any signal. */
static bool stop_anew(const struct visit *v)
{
    pid_t tid = v->tid;
    ptrace(PTRACE_SETSIGMASK, tid, sizeof v->mask, &v->mask);
    if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) != 0)
        return false;
    for (int i = 0; i < 4; i++) {
        if (ptrace(PTRACE_CONT, tid, 0, 0) != 0)
            return false;
        int status = await_stop(tid, STUB_PATIENCE_NS);
        if (!status || is_event(status))
            return status;
    }
    return false;
}

/*
 * Puts the thread back, the signal mask first: if this command dies before the registers are put
 * back, the stub goes on and restores the mask, too.
 */
static void leave(struct visit *v)
{
    ptrace(PTRACE_SETSIGMASK, v->tid, sizeof v->mask, &v->mask);
    put(v->tid, &v->found);
    ptrace(PTRACE_DETACH, v->tid, 0, 0);
}

static enum gt_borrow execute(struct visit *v, const struct gt_stub_constants *functions)
{
    size_t words;
    uint64_t all = ~UINT64_C(0);
    struct gt_stub_constants constants = *functions;
    constants.mask = v->mask;
    constants.registers = gt_stub_again(&v->found);
    struct user_regs_struct r = gt_stub_entry(&v->found, v->code);
    uint64_t *code = make_code(&constants, &words);
    bool ready = code && write_code(v->tid, v->code, code, words);
    free(code);
    if (!ready || !put(v->tid, &r)) {
        v->out->error = errno;
        leave(v);
        return GT_BORROW_REFUSED;
    }
    ptrace(PTRACE_SETSIGMASK, v->tid, sizeof all, &all);
    bool ran = run_stub(v->tid, v->code + gt_stub_last, &r);
    v->out->pages = ran ? gt_stub_pages_of(&r) : 0;
    if (ran)
        ran = stop_anew(v);
    leave(v);
    return ran && v->out->pages ? GT_BORROW_DONE : GT_BORROW_FAILED;
}

/* Borrows the stopped thread, if it is still where it was seen. */
static enum gt_borrow visit(const struct gt_still *still, const struct gt_still_thread *task,
                            int memory, struct visit *v, const struct gt_stub_constants *functions)
{
    struct gt_system_call none = {.number = -1};
    bool eintr;
    if (!get(v->tid, &v->found) || ptrace(PTRACE_GETSIGMASK, v->tid, sizeof v->mask, &v->mask) != 0)
        return ptrace(PTRACE_DETACH, v->tid, 0, 0), GT_BORROW_MOVED;
    bool there = gt_choose_is_there(still, task, &v->found);
    struct gt_system_call call = gt_registers_call(&v->found, &none, &eintr);
    if (eintr)
        gt_registers_restart(&v->found, &call);
    if (there && gt_choose_again(still, task, memory))
        return execute(v, functions);
    leave(v);
    return there ? GT_BORROW_CHANGED : GT_BORROW_MOVED;
}

enum gt_borrow gt_borrow(const struct gt_still *still, const struct gt_still_thread *task,
                         int memory, uint64_t code, const struct gt_stub_constants *functions,
                         struct gt_borrowing *out)
{
    struct visit v = {.tid = task->tid, .code = code, .out = out};
    *out = (struct gt_borrowing){0};
    if (ptrace(PTRACE_SEIZE, v.tid, 0, PTRACE_O_TRACESYSGOOD) != 0) {
        out->error = errno;
        return errno == ESRCH ? GT_BORROW_MOVED : GT_BORROW_REFUSED;
    }
    uint64_t begin = now();
    ptrace(PTRACE_INTERRUPT, v.tid, 0, 0);
    int status = await_stop(v.tid, STOP_PATIENCE_NS);
    enum gt_borrow result = GT_BORROW_MOVED;
    if (is_event(status))
        result = visit(still, task, memory, &v, functions);
    else if (ptrace(PTRACE_DETACH, v.tid, 0, status && status >> 16 == 0 ? WSTOPSIG(status) : 0) &&
             errno == ESRCH && kill(v.tid, 0) == 0) {
        out->error = ETIMEDOUT; /* the kernel detaches it when this process ends */
        result = GT_BORROW_REFUSED;
    }
    out->paused_ns = now() - begin;
    return result;
}
