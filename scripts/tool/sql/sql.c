/* `gotrace sql`: a trace as a database, for the questions that no report answers. */
#include "database.h"
#include "print.h"

#include "scripts/tool/help.h"
#include "scripts/tool/tool.h"

#include "encoder/read/need.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
    const char *output; /* NULL: beside the trace */
    enum gt_sql_format format;
} options;

/* Reading statements -------------------------------------------------------------------------- */

static bool is_blank(const char *text)
{
    return !text[strspn(text, " \t\r\n")];
}

/*
 * Executes each statement when its semicolon is read. The last one needs none. At a prompt an error
 * does not end the loop.
 */
static bool answer_input(sqlite3 *db, bool prompt)
{
    char *text = gt_need(calloc(1, 1)), *line = NULL;
    size_t len = 0, room = 0;
    bool good = true;
    for (;;) {
        if (prompt)
            printf(len ? "    ...> " : "gotrace> ");
        fflush(stdout);
        ssize_t n = getline(&line, &room, stdin);
        if (n > 0) {
            text = gt_need(realloc(text, len + (size_t)n + 1));
            memcpy(text + len, line, (size_t)n + 1);
            len += (size_t)n;
        }
        if (n > 0 && !is_blank(text) && !gt_sqlite.complete(text))
            continue;
        good = gt_sql_answer(db, text, options.format);
        *text = 0;
        len = 0;
        if (n <= 0 || (!good && !prompt))
            break;
    }
    if (prompt)
        puts("");
    free(line);
    free(text);
    return good || prompt;
}

/* The prompt ---------------------------------------------------------------------------------- */

static void become_sqlite3(const char *database)
{
    static const char *const styles[] = {
        [GT_SQL_COLUMNS] = "-column", [GT_SQL_JSON] = "-json", [GT_SQL_CSV] = "-csv"};
    execlp("sqlite3", "sqlite3", "-readonly", "-header", styles[options.format], database, NULL);
    _exit(GT_EXIT_NOT_FOUND);
}

/* Runs sqlite3, which has the terminal and its Ctrl-C until it ends. False: it is not installed. */
static bool run_sqlite3(const char *database, int *status)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid < 0)
        return false;
    if (pid == 0)
        become_sqlite3(database);
    sighandler_t before[] = {signal(SIGINT, SIG_IGN), signal(SIGQUIT, SIG_IGN)};
    while (waitpid(pid, status, 0) < 0 && errno == EINTR)
        ;
    signal(SIGINT, before[0]);
    signal(SIGQUIT, before[1]);
    *status = WIFEXITED(*status) ? WEXITSTATUS(*status) : GT_EXIT_FAILED;
    return *status != GT_EXIT_NOT_FOUND;
}

static sqlite3 *open_database(const char *path)
{
    sqlite3 *db;
    if (gt_sqlite.open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK)
        gt_fail(GT_EXIT_FAILED, "%s: %s", path, gt_sqlite.errmsg(db));
    return db;
}

static int ask(const char *database)
{
    int status;
    puts("Tables and views: SELECT name FROM sqlite_master; each with its columns, and what they "
         "are:\nSELECT sql FROM sqlite_master; also in gotrace-sql(1). Ctrl-D ends.");
    if (run_sqlite3(database, &status))
        return status;
    sqlite3 *db = open_database(database);
    answer_input(db, true);
    gt_sqlite.close(db);
    return 0;
}

/* The command --------------------------------------------------------------------------------- */

static void help(void)
{
    puts("usage: gotrace sql [--json|--csv] [-o FILE] TRACE [STATEMENT|-]\n"
         "\n"
         "Makes an SQLite database of the trace, TRACE.db, and runs STATEMENT on it. With\n"
         "\"-\" the statements come from standard input. Without a statement it opens a\n"
         "prompt: that of sqlite3(1), if sqlite3 is installed. The database is used again\n"
         "until the trace changes.\n"
         "\n"
         "  --json             print rows as an array of objects (default: a table)\n"
         "  --csv              print rows as comma-separated values, after a line of names\n"
         "  -o, --output=FILE  the database (default: TRACE.db)\n"
         "  -h, --help         print this\n"
         "\n"
         "Tables: trace, threads, shares, waits, pieces, calls, running, locks, holds,\n"
         "signals, samples, stacks, idle_stacks, frames, stack_frames, tasks, regions,\n"
         "logs, heap, accounts.\n"
         "Views: wait_pieces, wakeups, waits_by_place, idle_waits, wait_percentiles,\n"
         "wait_lengths, calls_by_place, longest_waits, lock_holders, hold_times,\n"
         "thread_time, wakers, sched_delays, parallelism, task_times,\n"
         "samples_by_function, stack_lines.\n"
         "`gotrace help sql` explains their columns.");
    exit(0);
}

static void read_options(int argc, char **argv)
{
    static const struct option longs[] = {{"json", no_argument, NULL, 'j'},
                                          {"csv", no_argument, NULL, 'c'},
                                          {"output", required_argument, NULL, 'o'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    for (int c; (c = gt_option(argc, argv, "o:h", longs)) != -1;) {
        switch (c) {
        case 'j': options.format = GT_SQL_JSON; break;
        case 'c': options.format = GT_SQL_CSV; break;
        case 'o': options.output = optarg; break;
        case 'h': help(); break;
        default: exit(GT_EXIT_USAGE);
        }
    }
    if (argc - optind < 1 || argc - optind > 2)
        gt_fail(GT_EXIT_USAGE,
                "sql takes one trace, and at most one statement: gotrace sql TRACE [STATEMENT]");
}

int gt_command_sql(int argc, char **argv)
{
    read_options(argc, argv);
    const char *statement = argv[optind + 1];
    gt_sqlite_load();
    const char *database = gt_sql_file(argv[optind], options.output);
    if (!statement && isatty(0))
        return ask(database);
    sqlite3 *db = open_database(database);
    bool good = statement && strcmp(statement, "-") != 0
                    ? gt_sql_answer(db, statement, options.format)
                    : answer_input(db, false);
    gt_sqlite.close(db);
    return good ? 0 : GT_EXIT_FAILED;
}
