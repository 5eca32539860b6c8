/*
 * Runs a program by ptrace(2) and prints, one a line, each system call that it and its descendants
 * make once they have called MARK, and who did: "tracer 3" for a thread named as libgotrace's,
 * "program 3" for others. `spy PROGRAM ARGS...`; ends as the program does.
 */
#include "program.h"
#include "mark.h"

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <linux/ptrace.h>

enum { TASKS = 1024, CALLS = 512 };

struct task {
    pid_t tid, process;
    bool ours, marked, made[CALLS];
};

static struct task tasks[TASKS];
static bool made[2][CALLS]; /* by the program, by the tracer */

static pid_t status_of(pid_t tid, const char *field)
{
    char path[64], line[256];
    int value = 0;
    snprintf(path, sizeof path, "/proc/%d/status", tid);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, field, strlen(field)) == 0)
            value = atoi(line + strlen(field));
    }
    if (file)
        fclose(file);
    return value;
}

static struct task *find(pid_t tid)
{
    for (struct task *t = tasks; t < tasks + TASKS; t++) {
        if (t->tid == tid)
            return t;
    }
    return NULL;
}

static bool is_marked(pid_t process)
{
    for (struct task *t = tasks; t < tasks + TASKS; t++) {
        if (t->tid && t->process == process && t->marked)
            return true;
    }
    return false;
}

/* What a thread did before it was given its name counts, too. */
static void forget(struct task *t)
{
    for (int i = 0; i < CALLS; i++)
        made[t->ours][i] |= t->made[i];
    memset(t, 0, sizeof *t);
}

/* Threads, and processes that were forked, begin as those that made them are. */
static struct task *meet(pid_t tid)
{
    struct task *t = find(0);
    if (!t)
        exit(99);
    pid_t process = status_of(tid, "Tgid:");
    bool marked = is_marked(process) || is_marked(status_of(tid, "PPid:"));
    *t = (struct task){.tid = tid, .process = process, .marked = marked};
    return t;
}

static void mark(pid_t process, bool to)
{
    for (struct task *t = tasks; t < tasks + TASKS; t++) {
        if (t->tid && t->process == process)
            t->marked = to;
    }
}

static bool names_tracer(pid_t tid, uint64_t address)
{
    char name[8] = "";
    struct iovec to = {name, sizeof name}, from = {(void *)(uintptr_t)address, sizeof name};
    return process_vm_readv(tid, &to, 1, &from, 1, 0) == sizeof name &&
           strcmp(name, "gotrace") == 0;
}

static void enter(struct task *t, const struct ptrace_syscall_info *call)
{
    uint64_t number = call->entry.nr;
    if (number == MARK)
        mark(t->process, true);
    if (number == SYS_prctl && call->entry.args[0] == PR_SET_NAME)
        t->ours |= names_tracer(t->tid, call->entry.args[1]);
    if (number < CALLS)
        t->made[number] |= t->marked;
}

/* The other threads are gone. */
static void executed(pid_t process)
{
    for (struct task *t = tasks; t < tasks + TASKS; t++) {
        if (t->tid && t->process == process && t->tid != process)
            forget(t);
    }
    mark(process, false);
}

/* What the thread has stopped for; the signal that it is to get. */
static int stopped(struct task *t, bool fresh, int status)
{
    struct ptrace_syscall_info call;
    int number = WSTOPSIG(status);
    if (number == (SIGTRAP | 0x80)) {
        if (ptrace(PTRACE_GET_SYSCALL_INFO, t->tid, sizeof call, &call) > 0 &&
            call.op == PTRACE_SYSCALL_INFO_ENTRY)
            enter(t, &call);
        return 0;
    }
    if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8))
        executed(t->process);
    return status >> 16 || (fresh && number == SIGSTOP) ? 0 : number;
}

static int watch(pid_t first)
{
    int status, end = 0;
    pid_t tid;
    while ((tid = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR) {
        struct task *t = tid > 0 ? find(tid) : NULL;
        bool fresh = !t;
        if (tid <= 0)
            continue;
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            if (t)
                forget(t);
            end = tid == first ? status : end;
            continue;
        }
        t = t ? t : meet(tid);
        int number = stopped(t, fresh, status);
        ptrace(PTRACE_SYSCALL, tid, 0, number);
    }
    return end;
}

int main(int argc, char **argv)
{
    enum {
        FOLLOW = PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC
    };
    static const char *const who[] = {"program", "tracer"};
    pid_t child = argc > 1 ? fork() : -1;
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        const char *preload = getenv("SPY_PRELOAD"); /* not for us */
        if (preload)
            setenv("LD_PRELOAD", preload, 1);
        execv(argv[1], argv + 1);
        _exit(98);
    }
    if (child < 0 || waitpid(child, NULL, 0) != child ||
        ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL | FOLLOW) !=
            0)
        return 77;
    meet(child);
    ptrace(PTRACE_SYSCALL, child, 0, 0);
    int end = watch(child);
    for (int by = 0; by < 2; by++) {
        for (int i = 0; i < CALLS; i++) {
            if (made[by][i])
                printf("%s %d\n", who[by], i);
        }
    }
    return WIFEXITED(end) ? WEXITSTATUS(end) : 128 + WTERMSIG(end);
}
