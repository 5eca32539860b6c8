/* See recent.h. The recorder writes a file, as for `gotrace snapshot`. It is read and removed. */
#include "recent.h"

#include "encoder/base/path.h"
#include "scripts/tool/json.h"
#include "scripts/tool/names/later.h"
#include "scripts/tool/report/call_places.h"
#include "scripts/tool/report/reading.h"
#include "scripts/tool/tool.h"

#include "encoder/read/need.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
    unsigned last; /* number of waits of each thread */
    struct gt_trace trace;
    struct gt_threads threads;
    struct gt_memo by_tid;   /* → struct recent */
    struct gt_memo given_up; /* by lock: see gt_recent_given_up */
} all;

/* A ring with a thread's last waits and calls. */
struct recent {
    const struct gt_thread_state *thread; /* the last thread with that tid */
    uint64_t n;
    struct past {
        struct gt_span span;
        const struct gt_lock_state *lock; /* the lock waited for; or NULL */
    } past[];
};

static struct recent *recent_of(uint64_t tid)
{
    uint64_t *slot = gt_need(gt_memo_at(&all.by_tid, tid));
    if (!*slot)
        *slot =
            (uintptr_t)gt_need(calloc(1, sizeof(struct recent) + all.last * sizeof(struct past)));
    return (void *)(uintptr_t)*slot;
}

static void add(void *arg, const struct gt_span *span)
{
    (void)arg;
    if (span->ended && span->wanted && span->wanted->lock) {
        uint64_t *over = gt_need(gt_memo_at(&all.given_up, (uintptr_t)span->wanted->lock));
        *over = span->from + span->ns;
    }
    if (!all.last || span->thread->thread == GT_NO_THREAD)
        return;
    struct recent *r = recent_of(span->thread->thread);
    r->thread = span->thread;
    if (span->ended && span->kind != GT_RUNNING && span->kind != GT_SCHED)
        r->past[r->n++ % all.last] = (struct past){*span, span->wanted ? span->wanted->lock : NULL};
}

/* Makes a directory in which the program can write, whichever user it runs as. */
static void make_directory(char *directory, pid_t pid)
{
    char proc[64];
    struct stat st;
    snprintf(proc, sizeof proc, "/proc/%d", pid);
    if (!mkdtemp(directory))
        gt_fail(GT_EXIT_FAILED, "cannot make %s: %s", directory, strerror(errno));
    if (stat(proc, &st) == 0 && geteuid() == 0 && chown(directory, st.st_uid, st.st_gid) != 0)
        gt_fail(GT_EXIT_FAILED, "cannot give %s away: %s", directory, strerror(errno));
}

/* Runs `gotrace snapshot`, without its standard output. Returns its status. */
static int take_snapshot(pid_t pid, const char *path)
{
    char number[16];
    int status;
    snprintf(number, sizeof number, "%d", pid);
    char *argv[] = {"snapshot", number, (char *)path, NULL};
    pid_t child = fork();
    if (child == 0) {
        int null = open("/dev/null", O_WRONLY);
        dup2(null, STDOUT_FILENO);
        exit(gt_command_control(3, argv));
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        gt_fail(GT_EXIT_FAILED, "%s", strerror(errno));
    return WIFEXITED(status) ? WEXITSTATUS(status) : GT_EXIT_FAILED;
}

static void read_threads(void)
{
    all.threads = (struct gt_threads){.span = add};
    gt_read_threads(&all.threads, &all.trace);
}

const struct gt_threads *gt_recent_read_box(const char *path, unsigned last)
{
    all.last = last;
    gt_open_trace(&all.trace, path);
    read_threads();
    return &all.threads;
}

uint64_t gt_recent_given_up(const struct gt_lock_state *lock)
{
    return gt_memo_find(&all.given_up, (uintptr_t)lock);
}

void gt_recent_read(pid_t pid, unsigned last)
{
    char directory[] = "/tmp/gotrace-XXXXXX", path[64];
    all.last = last;
    make_directory(directory, pid);
    snprintf(path, sizeof path, "%s/last.out", directory);
    int status = take_snapshot(pid, path);
    const char *why = status ? NULL : gt_trace_open(&all.trace, path);
    unlink(path);
    rmdir(directory);
    if (status)
        exit(status); /* it has printed why */
    if (why)
        gt_fail(GT_EXIT_FAILED, "%s: %s", path, why);
    gt_later_fill_in(&all.trace);
    read_threads();
}

static void print_site(FILE *out, const struct gt_callers *stack)
{
    const struct gt_where *site = gt_site_of(stack);
    fputs(gt_leaf_of(stack), out);
    if (site)
        fprintf(out, " <- %s", site->func);
    if (site && *site->file && site->line)
        fprintf(out, " (%s:%llu)", gt_path_name(site->file), (unsigned long long)site->line);
}

/* NULL: the recorder does not know the thread. */
static const struct recent *find(pid_t tid)
{
    const struct recent *r = (void *)(uintptr_t)gt_memo_find(&all.by_tid, (uint64_t)tid);
    return r && !r->thread->ended ? r : NULL;
}

void gt_recent_print(FILE *out, pid_t tid)
{
    uint64_t now = all.trace.ns;
    const struct recent *r = find(tid);
    if (!r)
        return;
    fprintf(out, "    %s for %s\n", gt_kind_names[gt_kind_of(r->thread)],
            gt_duration(now - r->thread->since));
    for (uint64_t i = r->n; i > 0 && r->n - i < all.last; i--) {
        const struct past *past = &r->past[(i - 1) % all.last];
        const struct gt_span *s = &past->span;
        fprintf(out, "    %s ago: %s for %s: ", gt_duration(now - (s->from + s->ns)),
                gt_kind_names[s->kind], gt_duration(s->ns));
        print_site(out, s->stack);
        if (past->lock)
            fprintf(out, ", %s", past->lock->name);
        fputs("\n", out);
    }
}

static void put_past(const struct past *past)
{
    const struct gt_span *s = &past->span;
    char *place = gt_place_text(gt_leaf_of(s->stack), gt_site_of(s->stack));
    gt_json_open(NULL, '{');
    gt_json_number("ago_ns", all.trace.ns - (s->from + s->ns));
    gt_json_text("kind", gt_kind_names[s->kind]);
    gt_json_number("ns", s->ns);
    gt_json_text("place", place);
    gt_json_text_or_null("lock", past->lock ? past->lock->name : NULL);
    gt_json_close('}');
    free(place);
}

void gt_recent_json(pid_t tid)
{
    const struct recent *r = find(tid);
    if (!all.last)
        return;
    if (!r) {
        gt_json_null("recorded");
        return;
    }
    gt_json_open("recorded", '{');
    gt_json_text("kind", gt_kind_names[gt_kind_of(r->thread)]);
    gt_json_number("ns", all.trace.ns - r->thread->since);
    gt_json_open("last", '[');
    for (uint64_t i = r->n; i > 0 && r->n - i < all.last; i--)
        put_past(&r->past[(i - 1) % all.last]);
    gt_json_close(']');
    gt_json_close('}');
}
