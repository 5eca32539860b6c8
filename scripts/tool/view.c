/*
 * `gotrace view`: finds a Go whose tool reads this trace, and runs it in the foreground on a port
 * that is free. Of what is too large for the viewer it shows a part.
 */
#include "scripts/tool/rewrite/busiest.h"
#include "scripts/tool/report/reading.h"
#include "scripts/tool/rewrite/rewrite.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <glob.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ANY = INT_MAX };
enum { EVENTS_MAX = 1000000 }; /* that the viewer is quick with */

/* Go 1.23 and later do not read what is older than go1.11. */
static int last_reader(const struct gt_format *format)
{
    return format->v1 && format->minor < 11 ? 22 : ANY;
}

static sigset_t signals; /* blocked when we were started */

/* Starts argv with its output of descriptor `fd` in the stream; in a group of its own or ours. */
static FILE *start(char *const argv[], int fd, bool own_group, pid_t *pid)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0 || (*pid = fork()) < 0)
        gt_fail(GT_EXIT_FAILED, "%s", strerror(errno));
    if (*pid == 0) {
        if (own_group)
            setpgid(0, 0);
        dup2(ends[1], fd);
        sigprocmask(SIG_SETMASK, &signals, NULL);
        execv(argv[0], argv);
        _exit(GT_EXIT_NOT_FOUND);
    }
    if (own_group)
        setpgid(*pid, *pid); /* whoever of both comes first */
    close(ends[1]);
    return fdopen(ends[0], "r");
}

/* Finding Go --------------------------------------------------------------------------------- */

struct search {
    int least, most;
    char best[PATH_MAX];
    int minor;       /* of the best; 0: none yet */
    char seen[1024]; /* those that will not do, for the message */
};

/* N of go1.N, or 0. */
static int minor_of(const char *go)
{
    char line[256] = "";
    int minor = 0;
    pid_t pid;
    FILE *out = start((char *const[]){(char *)go, "version", NULL}, 1, false, &pid);
    if (fgets(line, sizeof line, out))
        sscanf(line, "go version go1.%d", &minor);
    fclose(out);
    waitpid(pid, NULL, 0);
    return minor;
}

static void consider(struct search *s, const char *go)
{
    int minor = access(go, X_OK) == 0 ? minor_of(go) : 0;
    size_t n = strlen(s->seen);
    if (!minor)
        return;
    if (minor >= s->least && minor <= s->most && minor > s->minor) {
        snprintf(s->best, sizeof s->best, "%s", go);
        s->minor = minor;
    }
    snprintf(s->seen + n, sizeof s->seen - n, "%s%s (1.%d)", n ? ", " : "", go, minor);
}

static void consider_path(struct search *s)
{
    char go[PATH_MAX];
    const char *dirs = getenv("PATH");
    for (const char *d = dirs ? dirs : "", *next; d; d = next) {
        size_t n = strcspn(d, ":");
        next = d[n] ? d + n + 1 : NULL;
        snprintf(go, sizeof go, "%.*s/go", (int)n, d);
        if (n)
            consider(s, go);
    }
}

static void find_go(struct search *s)
{
    static const char *const places[] = {"/usr/local/go/bin/go", "/usr/lib/go-1.*/bin/go",
                                         "/usr/lib/go/bin/go", "~/sdk/go1.*/bin/go"};
    consider_path(s);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        glob_t found = {0};
        if (glob(places[i], GLOB_TILDE, NULL, &found) == 0) {
            for (size_t k = 0; k < found.gl_pathc; k++)
                consider(s, found.gl_pathv[k]);
        }
        globfree(&found);
    }
}

static void explain(const char *trace, const struct gt_format *format, const struct search *s)
{
    static const char none[] = "no Go (install one: a package of yours, or https://go.dev/dl)";
    char range[64];
    snprintf(range, sizeof range, s->most == ANY ? "Go 1.%d or later" : "Go 1.%d to 1.%d", s->least,
             s->most);
    gt_say("%s is a %s trace, which %s reads; here is %s", trace, format->name, range,
           *s->seen ? s->seen : none);
    gt_fail(GT_EXIT_FAILED,
            "without it: gotrace export --to=perfetto %s, for ui.perfetto.dev; --to=firefox, for "
            "profiler.firefox.com; --to=flame, a picture for any browser; or gotrace top %s",
            trace, trace);
}

/* Running it --------------------------------------------------------------------------------- */

static volatile sig_atomic_t viewer, ended;

static void end_viewer(int sig)
{
    (void)sig;
    ended = 1;
    kill(-viewer, SIGTERM);
}

/* What is shown first: "": the tool's list of pages, which it opens itself. */
static struct {
    char page[128];
    const char *browser; /* else what opens it, or NULL */
} first;

static void open_browser(const char *url)
{
    if (!first.browser || fork() != 0)
        return;
    sigprocmask(SIG_SETMASK, &signals, NULL);
    setpgid(0, 0);
    execlp(first.browser, first.browser, url, NULL);
    _exit(GT_EXIT_NOT_FOUND);
}

static void announce(const char *address)
{
    char url[512];
    snprintf(url, sizeof url, "%.*s%s", (int)strcspn(address, "\n"), address, first.page);
    puts(url);
    fflush(stdout);
    gt_say("Ctrl-C ends the viewer");
    open_browser(url);
}

/* What the tool says, but for its own line about the address: ours. */
static void relay(FILE *from)
{
    static const char listening[] = "listening on ";
    char line[4096];
    while (fgets(line, sizeof line, from)) {
        const char *url = strstr(line, listening);
        if (url && strstr(url, "http://"))
            announce(url + strlen(listening));
        else if (!ended)
            fputs(line, stderr);
    }
}

/* In a group of its own: `go` does not pass a signal on to the tool that it runs. */
static int run(char *const argv[])
{
    struct sigaction act = {.sa_handler = end_viewer};
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    sigset_t these;
    pid_t pid;
    int status;
    sigemptyset(&these);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        sigaddset(&these, ends[i]);
    sigprocmask(SIG_BLOCK, &these, NULL); /* until it is known whom to end */
    FILE *errors = start(argv, 2, true, &pid);
    viewer = pid;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        sigaction(ends[i], &act, NULL);
    sigprocmask(SIG_SETMASK, &signals, NULL);
    relay(errors);
    TEMP_FAILURE_RETRY(waitpid(pid, &status, 0));
    return ended ? 0 : WIFEXITED(status) ? WEXITSTATUS(status) : GT_EXIT_FAILED;
}

static void help(void)
{
    puts(
        "usage: gotrace view [options] TRACE\n\n"
        "Runs `go tool trace` of a Go that reads the trace, prints the viewer's address and opens\n"
        "it in a browser. Ctrl-C ends it. Of a trace with more than a million events it shows the\n"
        "second in which most happens.\n\n"
        "  --go=PROGRAM     the Go to use; otherwise the newest here that reads the trace\n"
        "  --http=ADDRESS   where to listen; otherwise a free port of this host only\n"
        "  --no-browser     only print the address\n"
        "  --from=TIME      show only what is after that: 1.5s, 200ms since the trace began; with\n"
        "                   a minus, before its end\n"
        "  --to=TIME        and before that\n"
        "  --at=TIME        begin with the timeline, and that time marked\n"
        "  --whole          show all, however much it is");
    exit(0);
}

/* A part ------------------------------------------------------------------------------------- */

static struct {
    struct gt_rewrite its;
    bool wanted, whole;
    uint64_t at; /* or GT_WHEREVER */
    char directory[PATH_MAX], file[PATH_MAX + 64];
} part = {.its.to = UINT64_MAX, .at = GT_WHEREVER};

static void remove_part(void)
{
    char names[PATH_MAX + 80];
    snprintf(names, sizeof names, "%s.elf", part.file);
    unlink(names);
    unlink(part.file);
    rmdir(part.directory);
}

/* The trace, or a file with a part of it where that is wanted, or all would be too much. */
static char *choose_part(char *trace)
{
    const char *directory = getenv("TMPDIR");
    if (!part.wanted && !part.whole) {
        part.wanted = gt_busiest(trace, EVENTS_MAX, part.at, &part.its.from, &part.its.to);
        if (part.wanted)
            gt_say("%s has more events than the viewer can show: this is %s to %s of it%s; --from "
                   "and --to choose another part, --whole shows all",
                   trace, gt_duration(part.its.from), gt_duration(part.its.to),
                   part.at == GT_WHEREVER ? ", where most happens" : "");
    }
    if (!part.wanted)
        return trace;
    snprintf(part.directory, sizeof part.directory, "%s/gotrace-XXXXXX",
             directory && *directory ? directory : "/tmp");
    if (!mkdtemp(part.directory))
        gt_fail(GT_EXIT_FAILED, "%s: %s", part.directory, strerror(errno));
    const char *name = strrchr(trace, '/');
    snprintf(part.file, sizeof part.file, "%s/%.60s", part.directory, name ? name + 1 : trace);
    atexit(remove_part);
    part.its.input = trace;
    part.its.output = part.file;
    gt_rewrite(&part.its);
    return part.file;
}

/* A page with that time marked. The viewer counts ms from where it begins; a mark has a length. */
static void choose_page(struct gt_trace *trace)
{
    static const struct gt_audience nobody;
    uint64_t from = part.its.from, to = part.its.to;
    if (!part.wanted || to == UINT64_MAX) {
        gt_trace_read(trace, &nobody);
        to = trace->ns;
    }
    if (part.at < from || part.at > to)
        gt_fail(GT_EXIT_USAGE, "view: what is shown ends before --at=%s, or begins after it",
                gt_duration(part.at));
    double ms = (double)(part.at - from) / 1e6;
    snprintf(first.page, sizeof first.page, "/trace?view=thread#%.6f:%.6f", ms,
             ms + (double)(to - from) / 1e9);
}

/* Go's tool opens its list of pages itself: not where another one is wanted, or none. */
static void choose_browser(bool none)
{
    const char *browser = getenv("BROWSER");
    if (none || *first.page)
        setenv("BROWSER", "true", 1);
    if (!none && *first.page)
        first.browser = browser && *browser ? strdup(browser) : "xdg-open";
}

int gt_command_view(int argc, char **argv)
{
    static const struct option longs[] = {{"go", required_argument, NULL, 'g'},
                                          {"http", required_argument, NULL, 'a'},
                                          {"no-browser", no_argument, NULL, 'n'},
                                          {"from", required_argument, NULL, 'f'},
                                          {"to", required_argument, NULL, 't'},
                                          {"whole", no_argument, NULL, 'w'},
                                          {"at", required_argument, NULL, 'i'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    const char *go = NULL, *address = "127.0.0.1:0"; /* 0: the tool takes a free one */
    char listen[256], program[PATH_MAX + 80];
    bool no_browser = false;
    for (int c; (c = getopt_long(argc, argv, "nh", longs, NULL)) != -1;) {
        switch (c) {
        case 'g': go = optarg; break;
        case 'a': address = optarg; break;
        case 'n': no_browser = true; break;
        case 'f':
            part.wanted = true;
            part.its.from = gt_read_time("--from", optarg, &part.its.from_end);
            break;
        case 't':
            part.wanted = true;
            part.its.to = gt_read_time("--to", optarg, &part.its.to_before_end);
            break;
        case 'i': part.at = gt_read_time("--at", optarg, NULL); break;
        case 'w': part.whole = true; break;
        case 'h': help(); break;
        default: return GT_EXIT_USAGE;
        }
    }
    if (optind + 1 != argc)
        gt_fail(GT_EXIT_USAGE, "view: which trace? One");
    if (part.wanted && part.whole)
        gt_fail(GT_EXIT_USAGE, "view: --whole, or --from and --to");
    sigprocmask(SIG_SETMASK, NULL, &signals);
    char *trace = argv[optind];
    struct gt_trace opened;
    gt_open_trace(&opened, trace);
    const struct gt_format *format = opened.format;
    struct search search = {.least = format->minor, .most = last_reader(format)};
    setenv("GOTOOLCHAIN", "local", 1); /* never let one Go fetch another */
    if (go)
        consider(&search, go);
    else
        find_go(&search);
    if (!search.minor)
        explain(trace, format, &search);
    trace = choose_part(trace);
    if (part.at != GT_WHEREVER)
        choose_page(&opened);
    choose_browser(no_browser);
    const char *shown = trace == argv[optind] && opened.named ? opened.named : trace;
    snprintf(listen, sizeof listen, "-http=%s", address);
    snprintf(program, sizeof program, "%s.elf", trace);
    bool no_names = gt_v1_global_order(format);
    if (no_names && access(program, R_OK) != 0)
        gt_fail(GT_EXIT_FAILED, "%s: %s; a go1.5 trace needs it for names", program,
                strerror(errno));
    gt_say("reading %s with %s (Go 1.%d)", trace, search.best, search.minor);
    return run(
        no_names
            ? (char *const[]){search.best, "tool", "trace", listen, program, (char *)shown, NULL}
            : (char *const[]){search.best, "tool", "trace", listen, (char *)shown, NULL});
}
