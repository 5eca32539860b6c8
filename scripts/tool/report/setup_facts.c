/* See setup_facts.h. */
#include "setup_facts.h"

#include "scripts/tool/json.h"
#include "scripts/tool/tool.h"

#include "encoder/base/printable.h"

#include <stdio.h>
#include <string.h>

/* Where the value of a name goes; NULL: no such fact is known here. */
static const char **place_of(struct gt_setup_facts *facts, const char *name)
{
    const struct {
        const char *name, **place;
    } table[] = {{GT_SETUP_LIBRARY, &facts->library}, {GT_SETUP_SWITCHES, &facts->switches},
                 {GT_SETUP_KERNEL, &facts->kernel},   {GT_SETUP_MACHINE, &facts->machine},
                 {GT_SETUP_GLIBC, &facts->glibc},     {GT_SETUP_CPU, &facts->cpu}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcmp(table[i].name, name) == 0)
            return table[i].place;
    }
    return NULL;
}

void gt_setup_read(struct gt_setup_facts *facts, const struct gt_trace *trace)
{
    char *rest = facts->text, *line;
    *facts = (struct gt_setup_facts){0};
    snprintf(facts->text, sizeof facts->text, "%s", trace->setup ? trace->setup : "");
    while ((line = strsep(&rest, "\n"))) {
        char *value = strchr(line, ' ');
        if (!value)
            continue;
        gt_make_printable(line, strlen(line));
        *value++ = 0;
        const char **place = place_of(facts, line);
        if (place)
            *place = value;
    }
}

void gt_setup_put(const struct gt_threads *threads)
{
    static struct gt_setup_facts facts;
    gt_setup_read(&facts, threads->trace);
    gt_json_number("machine_cpus", threads->machine_cpus);
    gt_json_text_or_null("cpu_model", facts.cpu);
    gt_json_text_or_null("machine", facts.machine);
    gt_json_text_or_null("kernel", facts.kernel);
    gt_json_text_or_null("glibc", facts.glibc);
    gt_json_text_or_null("libgotrace", facts.library);
    if (facts.switches)
        gt_json_text("switches", facts.switches);
    else
        gt_json_null("switches");
}

/* Prints ", " between two facts, and a fact with words before it, if it is known. */
static void print_fact(bool *any, const char *before, const char *fact)
{
    if (fact)
        printf("%s%s%s", *any ? ", " : "", before, fact);
    *any |= fact != NULL;
}

static const char *words_of(const char *switches)
{
    return !switches ? "" : *switches ? switches : ", no switch was set";
}

void gt_setup_print(const struct gt_threads *threads)
{
    static struct gt_setup_facts facts;
    bool any = false;
    gt_setup_read(&facts, threads->trace);
    if (threads->machine_cpus) {
        printf("  %-12s ", "machine");
        print_fact(&any, "", gt_count(threads->machine_cpus, "CPU"));
        print_fact(&any, "", facts.cpu);
        print_fact(&any, "", facts.machine);
        print_fact(&any, "Linux ", facts.kernel);
        print_fact(&any, "glibc ", facts.glibc);
        puts("");
    }
    if (facts.library)
        printf("  %-12s by libgotrace %s%s%s\n", "recorded", facts.library,
               facts.switches && *facts.switches ? " with " : "", words_of(facts.switches));
}
