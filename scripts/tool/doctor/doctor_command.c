/* `gotrace doctor`: what works on this system and with a program, and what mends the rest. */
#include "doctor.h"

#include "scripts/tool/help.h"
#include "scripts/tool/json.h"
#include "scripts/tool/tool.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const health_names[] = {
    [GT_HEALTH_OK] = "ok", [GT_HEALTH_LIMITED] = "limited", [GT_HEALTH_MISSING] = "missing"};

enum { INDENT = 21 };

static void print(const char *name, const struct gt_check *c)
{
    char left[32];
    snprintf(left, sizeof left, "%-8s %s", health_names[c->health], name);
    gt_help_wrap(left, INDENT, gt_printable(c->says));
    if (*c->mend)
        gt_help_wrap("         to mend:", INDENT, gt_printable(c->mend));
}

static void put(const char *name, const struct gt_check *c)
{
    gt_json_open(NULL, '{');
    gt_json_text("check", name);
    gt_json_text("health", health_names[c->health]);
    gt_json_text("says", c->says);
    gt_json_text_or_null("mend", c->mend);
    gt_json_close('}');
}

/* Returns whether all that is vital works. */
static bool check_all(const struct gt_check_row *row, bool json)
{
    bool well = true;
    for (; row->name; row++) {
        struct gt_check check = {0};
        row->look(&check);
        if (check.health == GT_HEALTH_UNASKED)
            continue;
        well &= !row->vital || check.health != GT_HEALTH_MISSING;
        (json ? put : print)(row->name, &check);
        fflush(stdout);
    }
    return well;
}

static void help(void)
{
    puts("usage: gotrace doctor [--json] [PROGRAM|PID]\n"
         "\n"
         "Tries on this system what gotrace needs, and prints what works and what does\n"
         "not, each with the command that mends it. With PROGRAM: whether that would be\n"
         "traced, and whether its stacks would have names and lines. With the PID of\n"
         "a running process: whether gotrace attach would record it.\n"
         "\n"
         "  --json      print JSON: gotrace-json(5)\n"
         "  -h, --help  print this\n"
         "\n"
         "The exit status is 0 if a recording would be complete.");
    exit(0);
}

int gt_command_doctor(int argc, char **argv)
{
    static const struct option longs[] = {
        {"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {0}};
    bool json = false;
    for (int c; (c = gt_option(argc, argv, "h", longs)) != -1;) {
        if (c == 'h')
            help();
        if (c != 'j')
            return GT_EXIT_USAGE;
        json = true;
    }
    if (optind + 1 < argc)
        gt_fail(GT_EXIT_USAGE, "doctor takes one program or PID: gotrace doctor PROGRAM");
    const char *program = argv[optind];
    if (program)
        gt_program_checks_of(program);
    if (json) {
        gt_json_begin();
        gt_json_number("version", 1);
        gt_json_open("checks", '[');
    }
    bool well = check_all(program ? gt_program_checks : gt_system_checks, json);
    if (json) {
        gt_json_close(']');
        gt_json_end();
    }
    return well ? 0 : GT_EXIT_FAILED;
}
