/*
 * `gotrace view`: finds a Go whose `go tool trace` reads this trace, and runs it in the foreground
 * on a free port. Shows a part of a trace that is too large for the viewer.
 */
#include "scripts/tool/go.h"
#include "scripts/tool/help.h"
#include "scripts/tool/report/reading.h"
#include "scripts/tool/rewrite/busiest.h"
#include "scripts/tool/rewrite/part.h"
#include "scripts/tool/target.h"
#include "scripts/tool/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EVENTS_MAX = 1000000 }; /* more events make the viewer slow */

/* Go 1.23 and later do not read formats older than go1.11. */
static int last_reader(const struct gt_format *format)
{
    return format->v1 && format->minor < 11 ? 22 : GT_GO_ANY;
}

static sigset_t signals; /* the signals blocked when we were started */

/* Starts the viewer in a process group of its own; returns a stream of its messages. */
static FILE *start(char *const argv[], pid_t *pid)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0 || (*pid = fork()) < 0)
        gt_fail(GT_EXIT_FAILED, "%s", strerror(errno));
    if (*pid == 0) {
        setpgid(0, 0);
        dup2(ends[1], STDERR_FILENO);
        sigprocmask(SIG_SETMASK, &signals, NULL);
        setenv("BROWSER", "true", 1); /* we open the page: see open_browser */
        execv(argv[0], argv);
        _exit(GT_EXIT_NOT_FOUND);
    }
    setpgid(*pid, *pid); /* parent and child both do it, so it is done in time */
    close(ends[1]);
    return fdopen(ends[0], "r");
}

/* Messages ------------------------------------------------------------------------------------ */

static void explain(const char *trace, const struct gt_format *format, const struct gt_go *s)
{
    static const char none[] = "no Go (install one: a package of yours, or https://go.dev/dl)";
    char range[64];
    snprintf(range, sizeof range, s->most == GT_GO_ANY ? "Go 1.%d or later" : "Go 1.%d to 1.%d",
             s->least, s->most);
    gt_say("%s is a %s trace, which %s reads; here is %s", trace, format->name, range,
           *s->seen ? s->seen : none);
    gt_fail(GT_EXIT_FAILED,
            "without it: gotrace export --to=perfetto %s, for ui.perfetto.dev; --to=firefox, for "
            "profiler.firefox.com; --to=flame, a picture for any browser; or gotrace top %s",
            gt_to_type(trace), gt_to_type(trace));
}

/* Running the viewer ------------------------------------------------------------------------- */

static volatile sig_atomic_t viewer, ended;

static void end_viewer(int sig)
{
    (void)sig;
    ended = 1;
    kill(-viewer, SIGTERM);
}

static char first_page[128]; /* empty: the list of pages */
static bool no_browser;

/*
 * Opens the page in a browser. Go's tool is kept from that: it opens the list of pages, and from Go
 * 1.27 on hands the browser an address without "http://".
 */
static void open_browser(const char *url)
{
    static const char *const browsers[] = {"xdg-open", "google-chrome", "chromium", "firefox"};
    const char *chosen = getenv("BROWSER");
    if (no_browser || fork() != 0)
        return;
    sigprocmask(SIG_SETMASK, &signals, NULL);
    setpgid(0, 0);
    if (chosen && *chosen)
        execlp(chosen, chosen, url, NULL);
    else if (getenv("DISPLAY") || getenv("WAYLAND_DISPLAY")) /* others draw on the terminal */
        for (size_t i = 0; i < sizeof browsers / sizeof *browsers; i++)
            execlp(browsers[i], browsers[i], url, NULL);
    _exit(GT_EXIT_NOT_FOUND);
}

/* address: what the tool says. Where it listens on all addresses, "[::]" stands for the host. */
static void announce(const char *address)
{
    static const char every[] = "http://[::]";
    char url[512];
    bool is_every = strncmp(address, every, sizeof every - 1) == 0;
    address += is_every ? sizeof every - 1 : 0;
    snprintf(url, sizeof url, "%s%.*s%s", is_every ? "http://localhost" : "",
             (int)strcspn(address, "\n"), address, first_page);
    puts(url);
    fflush(stdout);
    gt_say("Ctrl-C ends the viewer");
    open_browser(url);
}

/* Passes on the tool's messages, with our own line in place of its line about the address. */
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

/* Runs the viewer in a process group of its own: `go` passes no signal on to the tool it runs. */
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
    sigprocmask(SIG_BLOCK, &these, NULL); /* until end_viewer knows the viewer's group */
    FILE *errors = start(argv, &pid);
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
    puts("usage: gotrace view [options] TRACE\n"
         "\n"
         "Starts `go tool trace`, prints the address of the viewer and opens it in a\n"
         "browser. Ctrl-C ends it. Of a trace with more than a million events it shows\n"
         "the second with the most events.\n"
         "\n"
         "  --go=PROGRAM    the go command (default: the newest here that reads the trace)\n"
         "  --http=ADDRESS  where to listen, as HOST:PORT or :PORT (default: a free port);\n"
         "                  without HOST only this machine can open the page\n"
         "  --no-browser    print the address only\n"
         "  --from=TIME     show only events after TIME: 1.5s or 200ms from the beginning\n"
         "                  of the trace; -200ms: from its end (default: the beginning)\n"
         "  --to=TIME       show only events before TIME (default: the end)\n"
         "  --at=TIME       open the timeline at TIME, with a mark\n"
         "  --whole         show all events, however many\n"
         "  -h, --help      print this");
    exit(0);
}

/* A part ------------------------------------------------------------------------------------- */

static struct gt_shown_part part = {.its.to = UINT64_MAX};
static uint64_t at = GT_WHEREVER; /* the time of --at */

/* The trace; or a file with a part of it, if that is wanted or the trace is too large. */
static char *choose_part(char *trace)
{
    if (!part.wanted && !part.whole) {
        part.wanted = gt_busiest(trace, EVENTS_MAX, at, &part.its.from, &part.its.to);
        if (part.wanted)
            gt_say("%s has more events than the viewer can show: this is %s to %s of it%s; --from "
                   "and --to choose another part, --whole shows all",
                   trace, gt_duration(part.its.from), gt_duration(part.its.to),
                   at == GT_WHEREVER ? ", where most happens" : "");
    }
    if (!part.wanted)
        return trace;
    part.its.input = trace;
    gt_part_make(&part.its);
    return (char *)(uintptr_t)part.its.output;
}

/* Chooses the page with time `at` marked. The viewer counts ms from the beginning of what it shows;
 * a mark must have a length. */
static void choose_page(struct gt_trace *trace)
{
    static const struct gt_audience nobody;
    uint64_t from = part.its.from, to = part.its.to;
    if (!part.wanted || to == UINT64_MAX) {
        gt_trace_read(trace, &nobody);
        to = trace->ns;
    }
    if (at < from || at > to)
        gt_fail(GT_EXIT_USAGE, "view: --at=%s is not shown: the part is from %s to %s",
                gt_duration(at), gt_duration(from), gt_duration(to));
    double ms = (double)(at - from) / 1e6;
    snprintf(first_page, sizeof first_page, "/trace?view=thread#%.6f:%.6f", ms,
             ms + (double)(to - from) / 1e9);
}

/* Go's tool shows its profiles as pictures that Graphviz draws. */
static void look_for_graphviz(void)
{
    char path[PATH_MAX];
    if (gt_target_find("dot", path) != 0)
        gt_say("the viewer's profile pages need Graphviz's dot, which is not here: install the "
               "package graphviz");
}

int gt_command_view(int argc, char **argv)
{
    static const struct option longs[] = {{"go", required_argument, NULL, 'g'},
                                          {"http", required_argument, NULL, 'a'},
                                          {"no-browser", no_argument, NULL, 'n'},
                                          {"at", required_argument, NULL, 'i'},
                                          {"help", no_argument, NULL, 'h'},
                                          GT_PART_OPTIONS,
                                          {0}};
    const char *go = NULL, *address = ":0"; /* 0: the tool takes a free port */
    char listen[256], program[PATH_MAX + 80];
    for (int c; (c = gt_option(argc, argv, "nh", longs)) != -1;) {
        switch (c) {
        case 'g': go = optarg; break;
        case 'a': address = optarg; break;
        case 'n': no_browser = true; break;
        case 'i': at = gt_read_time("--at", optarg, NULL); break;
        case 'h': help(); break;
        default:
            if (!gt_part_option(&part, c, optarg))
                return GT_EXIT_USAGE;
        }
    }
    gt_need_one_trace(argc, argv, "TRACE");
    gt_part_check(&part, "view");
    sigprocmask(SIG_SETMASK, NULL, &signals);
    char *trace = argv[optind];
    struct gt_trace opened;
    gt_open_trace(&opened, trace);
    const struct gt_format *format = opened.format;
    struct gt_go search = {.least = format->minor, .most = last_reader(format)};
    setenv("GOTOOLCHAIN", "local", 1); /* a Go must not download another Go */
    if (go)
        gt_go_consider(&search, go);
    else
        gt_go_find(&search);
    if (!search.minor)
        explain(trace, format, &search);
    trace = choose_part(trace);
    if (at != GT_WHEREVER)
        choose_page(&opened);
    const char *shown = trace == argv[optind] && opened.named ? opened.named : trace;
    /* Without a host Go 1.27 would listen on this machine only, earlier ones on all addresses. */
    snprintf(listen, sizeof listen, "-http=%s%s", *address == ':' ? "127.0.0.1" : "", address);
    snprintf(program, sizeof program, "%s.elf", trace);
    bool no_names = gt_v1_global_order(format);
    if (no_names && access(program, R_OK) != 0)
        gt_fail(GT_EXIT_FAILED, "%s: %s; a go1.5 trace needs it for names", program,
                strerror(errno));
    look_for_graphviz();
    gt_say("reading %s with %s (Go 1.%d)", trace, search.best, search.minor);
    return run(
        no_names
            ? (char *const[]){search.best, "tool", "trace", listen, program, (char *)shown, NULL}
            : (char *const[]){search.best, "tool", "trace", listen, (char *)shown, NULL});
}
