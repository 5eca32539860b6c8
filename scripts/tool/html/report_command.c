/*
 * `gotrace report`: a trace as one HTML file, to look at and to hand on. The page contains what
 * other commands of `gotrace` say of the trace, as JSON, and a script that draws it.
 */
#include "part_of_report.h"

#include "encoder/base/path.h"
#include "encoder/base/version.h"
#include "encoder/read/need.h"
#include "scripts/tool/help.h"
#include "scripts/tool/json.h"
#include "scripts/tool/markup.h"
#include "scripts/tool/replacement.h"
#include "scripts/tool/report/reading.h"
#include "scripts/tool/rewrite/busiest.h"
#include "scripts/tool/rewrite/part.h"
#include "scripts/tool/tool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

/* Files that the page contains. */
GT_EMBED(gt_report_body, "scripts/tool/html/report.html");
GT_EMBED(gt_report_style, "scripts/tool/html/report.css");
GT_EMBED(gt_report_script, "scripts/tool/html/report.js");

enum {
    ROWS = 60,              /* of waits and of locks, at most */
    THREADS = 300,          /* rows, at most */
    FLAME_MOST = 400 << 10, /* bytes of a flame graph, at most */
    EVENTS_MOST = 60000000, /* of a larger trace a part is shown */
    LARGE = 128 << 20,      /* bytes: smaller files have fewer events than that */
};

static struct {
    const char *output, *as;
    struct gt_shown_part part; /* its.input: the trace */
    const char *shown;         /* the trace, or a file with the part */
    uint64_t whole_ns;         /* of a part: the length of the trace */
} report = {.part.its.to = UINT64_MAX};

/* Escaping ------------------------------------------------------------------------------------ */

static void put_text(FILE *file, const char *text)
{
    gt_markup_text(file, text, strlen(text));
}

/* Lines stay lines. */
static void put_lines(FILE *file, const char *text)
{
    for (size_t n; n = strcspn(text, "\n"), *text; text += n + (text[n] == '\n')) {
        gt_markup_text(file, text, n);
        if (text[n])
            fputc('\n', file);
    }
}

/* JSON in a script element. A `<` is only in its texts, where it may be written as an escape. */
static void put_json(FILE *file, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '<')
            fputs("\\u003c", file);
        else
            fputc(text[i], file);
    }
}

/* The SVG picture, whose script and style may run in this page only with its nonce. */
static void put_svg(FILE *file, const char *svg, const char *nonce)
{
    static const char *const tags[] = {"<script", "<style"};
    while (*svg) {
        size_t n = 1;
        for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
            n = strncmp(svg, tags[i], strlen(tags[i])) == 0 ? strlen(tags[i]) : n;
        fwrite(svg, 1, n, file);
        if (n > 1)
            fprintf(file, " nonce=\"%s\"", nonce);
        svg += n;
    }
}

/* Parts --------------------------------------------------------------------------------------- */

enum part { INFO, WHY, WAITS, LOCKS, FLAME, FLAME_CPU, PARTS };

static const char *const names[PARTS] = {
    [INFO] = "info", [WHY] = "why", [WAITS] = "waits", [LOCKS] = "locks"};

static struct gt_report_part parts[PARTS];

/* The boxes of flame graphs, each time wider. */
static const char *const widths[] = {"--min-width=0.15", "--min-width=0.5", "--min-width=2",
                                     "--min-width=8", NULL};

/* Words of a command: options, then the trace. NULL: none. */
static void prepare(enum part part, const char *const *words)
{
    struct gt_report_part *its = &parts[part];
    int n = 0;
    its->argv[n++] = "gotrace";
    for (; *words; words++)
        its->argv[n++] = *words;
    if (report.as && strcmp(its->argv[1], "why") == 0)
        its->argv[n++] = report.as;
    its->argv[n] = report.shown;
}

static void prepare_parts(void)
{
    static char rows[16], threads[16];
    snprintf(rows, sizeof rows, "-n%d", ROWS);
    snprintf(threads, sizeof threads, "-n%d", THREADS);
#define WORDS(...) (const char *const[]){__VA_ARGS__, NULL}
    prepare(INFO, WORDS("info", "--json", threads));
    prepare(WHY, WORDS("why", "--json", "--timeline", "--page=" GT_REPORT_MORE));
    prepare(WAITS, WORDS("top", "--json", "--kind=all", rows));
    prepare(LOCKS, WORDS("top", "--json", "--by-lock", rows));
    prepare(FLAME, WORDS("export", widths[0], "--to=flame", "-o-"));
    prepare(FLAME_CPU, WORDS("export", widths[0], "--to=flame", "-o-", "--kind=cpu"));
#undef WORDS
}

/* A picture that is too large for the page is drawn anew without its narrow boxes. */
static void make_smaller(struct gt_report_part *flame)
{
    for (int i = 1; widths[i] && flame->ok && flame->size > FLAME_MOST; i++) {
        flame->argv[2] = widths[i];
        gt_report_part_start(flame);
        gt_report_part_wait(flame);
    }
}

static void run_parts(void)
{
    prepare_parts();
    for (int i = 0; i < PARTS; i++)
        gt_report_part_start(&parts[i]);
    for (int i = 0; i < PARTS; i++)
        gt_report_part_wait(&parts[i]);
    if (!parts[INFO].ok)
        gt_fail(GT_EXIT_FAILED, "%s", parts[INFO].said);
    make_smaller(&parts[FLAME]);
    make_smaller(&parts[FLAME_CPU]);
}

/* The page ------------------------------------------------------------------------------------ */

/* A number that nobody can guess: text of the trace cannot become a script of the page. */
static void make_nonce(char nonce[static 33])
{
    unsigned char bytes[16];
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        gt_fail(GT_EXIT_FAILED, "report: getrandom: %s", strerror(errno));
    for (size_t i = 0; i < sizeof bytes; i++)
        sprintf(nonce + 2 * i, "%02x", bytes[i]);
}

static void put_head(FILE *file, const char *nonce)
{
    fprintf(file,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
            "script-src 'nonce-%s'; style-src 'nonce-%s'; base-uri 'none'; form-action 'none'\">\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
            "<title>",
            nonce, nonce);
    put_text(file, gt_path_name(report.part.its.input));
    fprintf(file, " - gotrace report</title>\n<style nonce=\"%s\">\n%s</style>\n</head>\n", nonce,
            gt_report_style);
}

/* What the page is of, for its script. */
static void put_about(FILE *file)
{
    char *text = NULL;
    size_t size = 0;
    FILE *json = gt_need(open_memstream(&text, &size));
    gt_json_to(json);
    gt_json_begin();
    gt_json_text("trace", report.part.its.input);
    gt_json_text("gotrace", gt_version);
    gt_json_truth("part", report.part.wanted);
    gt_json_number("offset_ns", report.part.wanted ? report.part.its.from : 0);
    gt_json_number("whole_ns", report.whole_ns);
    gt_json_number("rows", ROWS);
    gt_json_number("rows_of_threads", THREADS);
    for (int i = 0; i < PARTS; i++) {
        if (!parts[i].ok && names[i])
            gt_json_text(names[i], parts[i].said);
    }
    gt_json_end();
    gt_json_to(NULL);
    fclose(json);
    fputs("<script type=\"application/json\" id=\"data-about\">", file);
    put_json(file, text, size);
    fputs("</script>\n", file);
    free(text);
}

static void put_flame(FILE *file, enum part part, const char *title, const char *about,
                      const char *nonce)
{
    if (!parts[part].ok)
        return;
    fprintf(file,
            "<section class=\"wide\"><h2>%s</h2>\n<p class=\"note\">%s A click zooms; so do the "
            "arrow keys and Enter.</p>\n<div class=\"scroll\">",
            title, about);
    put_svg(file, parts[part].text, nonce);
    fputs("</div></section>\n", file);
}

/* The commands in the text name the trace, not the file with a part of it. */
static void put_words(FILE *file, const struct gt_report_part *why)
{
    char *text = gt_need(strdup(why->ok ? why->more_text : why->said)), *rest = text;
    if (report.part.wanted)
        fputs("Times count from the beginning of this part.\n\n", file);
    for (char *at; report.part.wanted && (at = strstr(rest, report.shown)); rest = at) {
        *at = 0;
        put_lines(file, rest);
        put_text(file, report.part.its.input);
        at += strlen(report.shown);
    }
    put_lines(file, rest);
    free(text);
}

static void put_page(FILE *file)
{
    char nonce[33];
    make_nonce(nonce);
    put_head(file, nonce);
    fputs(gt_report_body, file);
    put_flame(file, FLAME, "Where threads waited, by stack",
              "The wider a box, the longer threads waited in that function and in those above it. "
              "sched: no CPU, sync: waits for threads, network: waits for input or output, "
              "syscall: system calls.",
              nonce);
    put_flame(
        file, FLAME_CPU, "Where threads were on a CPU, by stack",
        "The wider a box, the longer threads were on a CPU in that function and in those above "
        "it.",
        nonce);
    fputs("<section><h2>The page of gotrace why</h2>\n<pre>", file);
    put_words(file, &parts[WHY]);
    fputs("</pre></section>\n</main>\n", file);
    put_about(file);
    for (int i = 0; i < PARTS; i++) {
        if (!names[i] || !parts[i].ok)
            continue;
        fprintf(file, "<script type=\"application/json\" id=\"data-%s\">", names[i]);
        put_json(file, parts[i].text, parts[i].size);
        fputs("</script>\n", file);
    }
    fprintf(file, "<script nonce=\"%s\">\n%s</script>\n</body>\n</html>\n", nonce,
            gt_report_script);
}

/* The command --------------------------------------------------------------------------------- */

/* A time that may be counted back from the trace's end, as one from its beginning. */
static uint64_t from_beginning(uint64_t ns, bool *from_end)
{
    if (*from_end)
        ns = ns < report.whole_ns ? report.whole_ns - ns : 0;
    *from_end = false;
    return ns;
}

/* Chooses what the page is of: the trace, or a file with a part of it. */
static void choose_part(void)
{
    struct stat st;
    const char *trace = report.part.its.input;
    bool large = stat(trace, &st) == 0 && st.st_size >= LARGE;
    if (large && !report.part.wanted && !report.part.whole) {
        report.part.wanted =
            gt_busiest(trace, EVENTS_MOST, GT_WHEREVER, &report.part.its.from, &report.part.its.to);
        if (report.part.wanted)
            gt_say("%s is too large for one page: this is %s to %s of it, where most happens; "
                   "--from and --to choose another part, --whole shows all",
                   trace, gt_duration(report.part.its.from), gt_duration(report.part.its.to));
    }
    report.shown = trace;
    if (!report.part.wanted)
        return;
    report.whole_ns = gt_rewrite_length(trace);
    report.part.its.from = from_beginning(report.part.its.from, &report.part.its.from_end);
    report.part.its.to = from_beginning(report.part.its.to, &report.part.its.to_before_end);
    gt_part_make(&report.part.its);
    report.shown = report.part.its.output;
}

static void help(void)
{
    puts("usage: gotrace report [options] TRACE\n"
         "\n"
         "Writes one HTML file for any browser, which needs neither the network nor this\n"
         "tool: what limits the run, what would help, how many threads ran, the critical\n"
         "path on a timeline, locks with their holders, waits, and flame graphs.\n"
         "\n"
         "  -o, --output=FILE  the file (default: the name of TRACE with .html: t.html)\n"
         "  --from=TIME     only after TIME: 1.5s or 200ms from the beginning of the\n"
         "                  trace; -200ms: from its end\n"
         "  --to=TIME       only before TIME\n"
         "  --whole         all of the trace, however large (default: of more than 60\n"
         "                  million events the second with the most)\n"
         "  --as=WHAT       server or batch: see gotrace why\n"
         "  -h, --help      print this");
    exit(0);
}

static void read_options(int argc, char **argv)
{
    static const struct option longs[] = {{"output", required_argument, NULL, 'o'},
                                          {"as", required_argument, NULL, 'a'},
                                          {"help", no_argument, NULL, 'h'},
                                          GT_PART_OPTIONS,
                                          {0}};
    static char as[32];
    for (int c; (c = gt_option(argc, argv, "o:h", longs)) != -1;) {
        switch (c) {
        case 'o': report.output = optarg; break;
        case 'a':
            if (strcmp(optarg, "server") != 0 && strcmp(optarg, "batch") != 0)
                gt_fail(GT_EXIT_USAGE, "--as=%s: must be server or batch", optarg);
            snprintf(as, sizeof as, "--as=%s", optarg);
            report.as = as;
            break;
        case 'h': help(); break;
        default:
            if (!gt_part_option(&report.part, c, optarg))
                exit(GT_EXIT_USAGE);
        }
    }
    gt_need_one_trace(argc, argv, "TRACE");
    gt_part_check(&report.part, "report");
    report.part.its.input = argv[optind];
}

int gt_command_report(int argc, char **argv)
{
    struct gt_trace trace;
    read_options(argc, argv);
    gt_open_trace(&trace, report.part.its.input);
    const char *output =
        report.output ? report.output : gt_replacement_name(report.part.its.input, ".html");
    bool to_stdout = strcmp(output, "-") == 0;
    const char *refusal = to_stdout ? NULL : gt_replacement_refusal(output);
    if (gt_rewrite_is_same(output, report.part.its.input))
        gt_fail(GT_EXIT_USAGE, "report: -o %s is the trace itself: name another file", output);
    if (refusal)
        gt_fail(GT_EXIT_FAILED, "%s: %s", output, refusal);
    choose_part();
    run_parts();
    put_page(to_stdout ? stdout : gt_replacement_begin(output));
    if (to_stdout)
        return 0;
    gt_replacement_finish(report.part.its.input);
    gt_say("%s: open it in a browser", output);
    return 0;
}
