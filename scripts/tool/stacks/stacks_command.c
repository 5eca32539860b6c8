/*
 * `gotrace stacks`: what each thread does and waits for, in a running program, a core file, or a
 * killed program's black box.
 */
#include "recent.h"
#include "visit.h"

#include "scripts/tool/recover/recover.h"
#include "scripts/tool/report/nameless.h"
#include "scripts/tool/fold.h"
#include "scripts/tool/help.h"
#include "scripts/tool/tool.h"

#include "encoder/read/need.h"
#include "encoder/base/printable.h"
#include "encoder/base/path.h"

#include <ctype.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { EXIT_DEADLOCK = 3 };

static struct {
    bool json, verbose;
    unsigned last; /* number of waits to show for each thread; 0: no flight recorder is asked */
} options;

/* Text --------------------------------------------------------------------------------------- */

/*
 * Prints text from the traced program, made printable: it must not look like a line of the report.
 */
static void print_foreign(FILE *out, const char *before, const char *text, const char *after)
{
    size_t n = strlen(text);
    char *copy = memcpy(gt_need(malloc(n + 1)), text, n + 1);
    gt_make_printable(copy, n);
    fprintf(out, "%s%s%s", before, copy, after);
    free(copy);
}

static void print_thread(FILE *out, const struct gt_still_thread *t)
{
    fprintf(out, "%d", t->tid);
    print_foreign(out, " (", t->name, ")");
}

/*
 * Prints the readers of a rwlock. The lock does not name them; the stacks do, but not for certain.
 */
static void print_readers(FILE *out, const struct gt_still *s, const struct gt_thread_wait *w)
{
    fprintf(out, ", held by %u reader%s", w->readers, w->readers == 1 ? "" : "s");
    for (size_t i = 0; i < w->reading; i++) {
        fputs(i                ? ", "
              : w->reading > 1 ? ", which may be threads "
                               : ", which may be thread ",
              out);
        print_thread(out, gt_still_task(s, w->reader[i]));
    }
}

/* The process that holds it, and what is known of its threads. */
static void print_process(FILE *out, const struct gt_still *s, const struct gt_thread_wait *w)
{
    char name[17] = "";
    bool own = w->process == s->pid;
    gt_read_name(w->process, name);
    fputs(w->left_to ? ", taken by " : ", held by ", out);
    fprintf(out, own ? "this process" : "process %d", w->process);
    if (!own)
        print_foreign(out, " (", name, ")");
    pid_t tid = w->suspect ? w->suspect : w->owned == GT_OWNER_THREAD ? w->owner : 0;
    if (!tid)
        return;
    fputs(own && w->suspect ? ": it may be thread " : ", which waits for thread ", out);
    print_thread(out, gt_still_task(s, tid));
}

static void print_owner(FILE *out, const struct gt_still *s, const struct gt_thread_wait *w)
{
    static const char *const gone[] = {
        [GT_OWNER_ENDED] = "has ended",
        [GT_OWNER_FOREIGN] = "is none of this process's",
        [GT_OWNER_LEFT] = "is the parent's, and held the lock at the fork",
        [GT_OWNER_FORKED] = "has ended, or is from before the fork",
    };
    const struct gt_still_thread *t =
        w->owned == GT_OWNER_THREAD ? gt_still_task(s, w->owner) : NULL;
    const char *does = w->kind == GT_WAIT_JOIN ? "" : "held by ";
    if (w->readers)
        print_readers(out, s, w);
    else if (w->process && t)
        print_process(out, s, w);
    else if (!t && gone[w->owned])
        fprintf(out, ", held by thread %d, which %s", w->owner, gone[w->owned]);
    if (w->readers || !t || w->process)
        return;
    fprintf(out, "%s %sthread ", *does ? "," : "", does);
    print_thread(out, t);
}

static void print_lock(FILE *out, const struct gt_still *s, const struct gt_thread_wait *w)
{
    static const char *const what[] = {
        [GT_WAIT_MUTEX] = "mutex",      [GT_WAIT_RWLOCK] = "rwlock",
        [GT_WAIT_COND] = "condition",   [GT_WAIT_SEMAPHORE] = "semaphore",
        [GT_WAIT_BARRIER] = "barrier",  [GT_WAIT_ONCE] = "once",
        [GT_WAIT_JOIN] = "the end of",  [GT_WAIT_STDIO] = "stdio's lock",
        [GT_WAIT_GIL] = "Python's GIL", [GT_WAIT_FUTURE] = "future",
        [GT_WAIT_FUTEX] = "futex",
    };
    fputs(what[w->kind], out);
    if (w->kind != GT_WAIT_JOIN || w->owned == GT_OWNER_UNKNOWN) {
        if (*w->name)
            print_foreign(out, " ", w->name, "");
        if (w->address)
            fprintf(out, *w->name ? " (0x%llx)" : " 0x%llx", (unsigned long long)w->address);
    }
    print_owner(out, s, w);
    if (w->refused)
        fputs("; the kernel has refused it, so for ever", out);
}

static void print_fds(FILE *out, const struct gt_still *s, const struct gt_thread_wait *w)
{
    fputs(w->call, out);
    for (size_t i = 0; i < w->fds; i++) {
        fprintf(out, "%s fd %d", i ? "," : "", w->fd[i].number);
        if (*w->fd[i].what)
            print_foreign(out, " (", w->fd[i].what, ")");
    }
    if (w->process)
        print_process(out, s, w);
}

static void print_wait(FILE *out, const struct gt_still *s, const struct gt_still_thread *t)
{
    const struct gt_thread_wait *w = &t->wait;
    if (w->kind == GT_WAIT_NONE) {
        fputs(gt_state_names[t->state], out);
        return;
    }
    if (t->state != GT_WAITS)
        fprintf(out, "%s, ", gt_state_names[t->state]);
    fputs(w->kind >= GT_WAIT_POLL && w->kind != GT_WAIT_CHILD ? "in " : "waits for ", out);
    if (w->kind <= GT_WAIT_FUTEX)
        print_lock(out, s, w);
    else if (w->fds)
        print_fds(out, s, w);
    else if (w->kind == GT_WAIT_CHILD && w->child > 0)
        fprintf(out, "child %d", w->child);
    else if (w->kind == GT_WAIT_CHILD)
        fputs("any child", out);
    else if (w->call)
        fputs(w->call, out);
    else
        fprintf(out, "system call %ld", w->number);
    if (w->ns)
        fprintf(out, w->left ? ", at most %s left" : ", for %s", gt_duration(w->ns));
    else if (w->timed)
        fputs(", until its timeout", out);
}

static void print_stack(FILE *out, const struct gt_still_thread *t)
{
    for (size_t i = 0; i < t->frames; i++) {
        const struct gt_place *f = &t->frame[i];
        print_foreign(out, "    ", f->function, "");
        if (f->line) {
            print_foreign(out, " (", gt_path_name(f->file), "");
            fprintf(out, ":%u)", f->line);
        } else if (*f->module && !strstr(f->function, "+0x")) {
            print_foreign(out, " (", gt_path_name(f->module), ")");
        }
        fputs("\n", out);
    }
    if (t->cut)
        fputs(t->unknown ? "    ... (nothing tells how it goes on)\n" : "    ...\n", out);
}

/* What a thread does, as text. Threads that do the same have equal texts. */
static char *text_of(const struct gt_still *s, const struct gt_still_thread *t)
{
    char *text;
    size_t size;
    FILE *out = gt_need(open_memstream(&text, &size));
    print_wait(out, s, t);
    fputs("\n", out);
    print_stack(out, t);
    if (options.last)
        gt_recent_print(out, t->tid);
    fclose(out);
    return gt_need(text);
}

/* Prints all threads that do the same in the same place. */
static void print_group(const struct gt_still *s, char **texts, size_t first)
{
    char *text;
    size_t size, n = 0;
    FILE *out = gt_need(open_memstream(&text, &size));
    for (size_t i = first; i < s->tasks; i++)
        n += texts[i] && strcmp(texts[i], texts[first]) == 0;
    if (n > 1)
        fprintf(out, "%zu threads, ", n);
    const char *same = texts[first];
    for (size_t i = first, shown = 0; i < s->tasks; i++) {
        if (!texts[i] || strcmp(texts[i], same) != 0)
            continue;
        fputs(shown++ ? ", " : "thread ", out);
        print_thread(out, &s->task[i]);
        if (i != first)
            texts[i] = NULL;
    }
    fprintf(out, ": %s", same);
    texts[first] = NULL;
    fclose(out);
    puts(text);
    free(text);
}

static bool leads_elsewhere(const struct gt_still *s, const struct gt_deadlock *d)
{
    bool elsewhere = false;
    for (size_t i = 0; i < d->tasks; i++) {
        pid_t process = s->task[d->task[i]].wait.process;
        elsewhere |= process && process != s->pid;
    }
    return elsewhere;
}

static void print_deadlock(const struct gt_still *s, const struct gt_deadlock *d, char **texts)
{
    if (strcmp(d->kind, "all") == 0)
        printf("DEADLOCK: none of the %zu threads can go on: only another one could wake each",
               d->tasks);
    else if (strcmp(d->kind, "pool") == 0)
        printf("DEADLOCK: all workers wait for their own pool: %zu thread%s, for tasks that only "
               "%s could execute",
               d->tasks, d->tasks == 1 ? "" : "s", d->tasks == 1 ? "it" : "they");
    else if (strcmp(d->kind, "cycle") != 0)
        printf("DEADLOCK: a thread waits for what nobody will give back");
    else if (leads_elsewhere(s, d))
        printf("DEADLOCK: %zu thread%s and other processes wait for each other", d->tasks,
               d->tasks == 1 ? "" : "s");
    else if (d->tasks == 1)
        printf("DEADLOCK: a thread waits for itself");
    else
        printf("DEADLOCK: %zu threads wait for each other", d->tasks);
    puts(s->told ? ", by who had the locks when they began to" : "");
    for (size_t i = 0; i < d->tasks && strcmp(d->kind, "all") != 0; i++) {
        char *alone[1] = {texts[d->task[i]]};
        struct gt_still one = *s;
        one.task += d->task[i];
        one.tasks = 1;
        if (alone[0])
            print_group(&one, alone, 0);
        texts[d->task[i]] = NULL;
    }
}

static void print_head(const struct gt_still *s)
{
    if (s->core)
        print_foreign(stdout, "", s->core, ": ");
    printf("process %d", s->pid);
    print_foreign(stdout, " (", s->name, ")");
    printf(", %zu thread%s", s->tasks, s->tasks == 1 ? "" : "s");
    if (options.verbose && !s->core)
        printf(", none stopped for more than %s", gt_duration(s->stopped_ns));
    puts("\n");
}

static void explain_nameless(const struct gt_still *s)
{
    struct gt_nameless these = {0};
    for (const struct gt_still_thread *t = s->task; t < s->task + s->tasks; t++) {
        for (size_t i = 0; i < t->frames; i++)
            gt_nameless_add(&these, t->frame[i].function, t->frame[i].module, 1);
    }
    gt_nameless_print(&these, "frames above are", NULL);
}

static void print_all(const struct gt_still *s)
{
    char **texts = gt_need(calloc(s->tasks + 1, sizeof *texts));
    print_head(s);
    for (size_t i = 0; i < s->tasks; i++)
        texts[i] = text_of(s, &s->task[i]);
    for (size_t i = 0; i < s->deadlocks; i++)
        print_deadlock(s, &s->deadlock[i], texts);
    for (size_t i = 0; i < s->tasks; i++) {
        if (texts[i])
            print_group(s, texts, i);
    }
    explain_nameless(s);
}

/* The command -------------------------------------------------------------------------------- */

static void help(void)
{
    puts("usage: gotrace stacks [--json] [--last=N] [--verbose] PID|CORE|BOX [EXECUTABLE]\n"
         "\n"
         "Prints what each thread of a program does: what it waits for, the holder, and\n"
         "its stack. Deadlocks come first, and make the exit status 3. The program\n"
         "needs no library, and is not changed.\n"
         "\n"
         "  PID         a running process\n"
         "  CORE        a core file; one whose name is a number: ./NAME\n"
         "  BOX         what a killed program left that ran with --live, t.out.live:\n"
         "              what its threads did when they wrote the last time\n"
         "  EXECUTABLE  the program's file, if it is not where it was\n"
         "\n"
         "  --json      print JSON: gotrace-json(5)\n"
         "  --last=N    also the last N waits and calls of each thread, and since when it\n"
         "              has been where it is; needs the library in the program, and its\n"
         "              flight recorder (gotrace --ring)\n"
         "  --verbose   also how long a thread was stopped at most\n"
         "  -h, --help  print this");
    exit(0);
}

static unsigned read_last(const char *text)
{
    enum { MOST = 1000 };
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    if (*end || *text < '1' || *text > '9' || n > MOST)
        gt_fail(GT_EXIT_USAGE, "stacks: --last=%s: how many waits? 1 to %d", text, MOST);
    return (unsigned)n;
}

static pid_t read_pid(const char *text)
{
    unsigned long n = strtoul(text, NULL, 10);
    if (!*text)
        gt_fail(GT_EXIT_USAGE, "stacks needs one process or core file: gotrace stacks PID");
    if (!n || n > INT_MAX)
        gt_fail(GT_EXIT_FAILED, "there is no process %s", text);
    return (pid_t)n;
}

static void read_options(int argc, char **argv)
{
    static const struct option longs[] = {{"json", no_argument, NULL, 'j'},
                                          {"verbose", no_argument, NULL, 'v'},
                                          {"last", required_argument, NULL, 'l'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    for (int c; (c = gt_option(argc, argv, "vh", longs)) != -1;) {
        switch (c) {
        case 'j': options.json = true; break;
        case 'v': options.verbose = true; break;
        case 'l': options.last = read_last(optarg); break;
        case 'h': help(); break;
        default: exit(GT_EXIT_USAGE);
        }
    }
    if (argc - optind < 1 || argc - optind > 2)
        gt_fail(GT_EXIT_USAGE, "stacks needs one process or core file: gotrace stacks PID");
}

int gt_command_stacks(int argc, char **argv)
{
    struct gt_still still = {0};
    read_options(argc, argv);
    if (!options.json)
        gt_fold_output();
    const char *what = argv[optind];
    still.program = argv[optind + 1];
    bool is_file = what[strspn(what, "0123456789")], gone = is_file && gt_is_box(what);
    if (gone)
        gt_gone_open(&still, what, options.last);
    else if (is_file)
        gt_core_open(&still, what);
    else
        gt_stop(&still, read_pid(what));
    if (options.last && !still.core)
        gt_recent_read(still.pid, options.last);
    if (!gone && !gt_unwind(&still))
        gt_fail(GT_EXIT_FAILED, "stacks needs libdw.so.1, which is not here: install the package "
                                "libdw1 (Debian, Ubuntu) or elfutils-libs (Fedora)");
    if (!gone)
        gt_find_waits(&still);
    gt_find_deadlocks(&still);
    if (!still.core && !gone)
        gt_confirm_deadlocks(&still);
    if (options.json)
        gt_stacks_json(&still);
    else
        print_all(&still);
    return still.deadlocks ? EXIT_DEADLOCK : 0;
}
