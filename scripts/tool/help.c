/* See help.h. */
#include "help.h"

#include "tool.h"

#include "encoder/base/spelling.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *gt_help_meant(const char *typed, const char *const *names)
{
    enum { NEAR = 2 };
    const char *meant = NULL;
    unsigned least = NEAR + 1;
    for (; *names; names++) {
        unsigned distance = gt_spelling_distance(typed, *names);
        if (distance < least && distance < strlen(*names)) {
            least = distance;
            meant = *names;
        }
    }
    return meant;
}

const char *gt_help_command = "";
void (*gt_help_all)(void);

/* Reports a word that is no option, and what lists those that are. */
static void say_none(int length, const char *word)
{
    gt_say("%.*s: not an option; gotrace %s%s--help lists them", length, word, gt_help_command,
           *gt_help_command ? " " : "");
}

/* The long option most similar to a name; NULL: none is similar. */
static const char *option_meant(const char *name, const struct option *longs)
{
    enum { NAMES = 64 };
    const char *names[NAMES + 1] = {NULL};
    for (int i = 0; i < NAMES && longs[i].name; i++)
        names[i] = longs[i].name;
    return gt_help_meant(name, names);
}

/* Reports an unknown long option, such as "--form=x". */
static void say_unknown(const char *typed, const struct option *longs)
{
    size_t n = strcspn(typed, "=");
    char *name = strndup(typed + 2, n - 2);
    const char *meant = name ? option_meant(name, longs) : NULL;
    if (meant)
        gt_say("%.*s: not an option; did you mean --%s?", (int)n, typed, meant);
    else
        say_none((int)n, typed);
    free(name);
}

/* Reports a refused option. getopt_long sets optopt to it, but to 0 for an unknown long name. */
static void say_wrong(char **argv, const char *letters, const struct option *longs)
{
    const char *typed = argv[optind - 1];
    bool is_long = typed && strncmp(typed, "--", 2) == 0;
    if (is_long && !optopt)
        say_unknown(typed, longs);
    else if (is_long && strchr(typed, '='))
        gt_say("%s: this option takes no argument; type %.*s", typed, (int)strcspn(typed, "="),
               typed);
    else if (is_long)
        gt_say("%s: this option needs an argument", typed);
    else if (isalnum(optopt) && strchr(letters, optopt)) /* neither '+' nor ':' */
        gt_say("-%c: this option needs an argument", optopt);
    else
        say_none(2, (char[]){'-', (char)optopt, '\0'});
}

static const struct option *taken; /* the options that gt_option looked for last */

int gt_option(int argc, char **argv, const char *letters, const struct option *longs)
{
    taken = longs;
    opterr = 0;
    int c = getopt_long(argc, argv, letters, longs, NULL);
    if (c == '?')
        say_wrong(argv, letters, longs);
    return c;
}

/* Ends the program if a word that is no file may have been meant as an option: "top by-lock t". */
static void refuse_bare_option(int argc, char **argv)
{
    enum { SHORTEST = 3 };
    for (int i = optind; taken && i < argc; i++) {
        bool absent = strlen(argv[i]) >= SHORTEST && access(argv[i], F_OK) != 0;
        const char *meant = absent ? option_meant(argv[i], taken) : NULL;
        if (meant)
            gt_fail(GT_EXIT_USAGE, "%s needs one trace, and %s is none; did you mean --%s?",
                    argv[0], argv[i], meant);
    }
}

void gt_need_one_trace(int argc, char **argv, const char *usage)
{
    char given[40] = "", *last = argv[argc - 1];
    int n = argc - optind;
    if (n == 1)
        return;
    if (n > 1) {
        refuse_bare_option(argc, argv);
        snprintf(given, sizeof given, ", not %d", n);
    } else if (argc > 2 && *last != '-' && access(last, F_OK) == 0) { /* an option's value */
        gt_fail(GT_EXIT_USAGE, "%s needs one trace: gotrace %s %s (%s took %s as its value)",
                argv[0], argv[0], usage, argv[argc - 2], last);
    }
    gt_fail(GT_EXIT_USAGE, "%s needs one trace%s: gotrace %s %s", argv[0], given, argv[0], usage);
}

void gt_help_wrap(const char *first, int indent, const char *words)
{
    enum { COLUMNS = 80 };
    int column = printf("%-*s", indent, first);
    for (bool begins = true; *words; begins = false) {
        int n = (int)strcspn(words, " ");
        if (!begins && column + 1 + n > COLUMNS) {
            column = printf("\n%*s", indent, "") - 1;
            begins = true;
        }
        column += printf("%s%.*s", begins ? "" : " ", n, words);
        words += n + (words[n] == ' ');
    }
    putchar('\n');
}

/* Places of man pages, from this program's directory: in the build tree and when installed. */
static const char *const places[] = {"%s/man/%s.1", "%s/../share/man/man1/%s.1",
                                     "%s/../share/man/man1/%s.1.gz"};

void gt_help_page(const char *command)
{
    char self[PATH_MAX], page[64], path[PATH_MAX + 128];
    snprintf(page, sizeof page, "gotrace%s%s", command ? "-" : "", command ? command : "");
    const char *here = gt_own_directory(self);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(path, sizeof path, places[i], here, page);
        if (access(path, R_OK) == 0)
            execlp("man", "man", path, NULL);
    }
}
