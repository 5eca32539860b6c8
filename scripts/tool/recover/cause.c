/* See cause.h. Reads the kernel's log of this boot, as far as it goes back. */
#include "cause.h"

#include "scripts/tool/tool.h"

#include "encoder/format/origin.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How the kernel's messages begin, with the pid and program, and what they mean. */
static const struct {
    const char *about, *cause;
} lines[] = {
    {"Out of memory: Killed process %llu (%.15s)", "the kernel killed it: no memory was left"},
    {"Memory cgroup out of memory: Killed process %llu (%.15s)",
     "the kernel killed it: its memory cgroup was full"},
};

/* "6,1234,5678901,-;text": microseconds since the boot. */
static const char *text_of(const char *record, uint64_t since_ns)
{
    unsigned long long us = 0;
    const char *text = strchr(record, ';');
    bool known = sscanf(record, "%*u,%*u,%llu", &us) == 1;
    return text && known && us >= since_ns / 1000 ? text + 1 : NULL;
}

static const char *cause_in(const char *text, uint64_t pid, const char *program)
{
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char begins[128];
        snprintf(begins, sizeof begins, lines[i].about, (unsigned long long)pid, program);
        if (strncmp(text, begins, strlen(begins)) == 0)
            return lines[i].cause;
    }
    return NULL;
}

bool gt_cause_is_of_this_boot(const struct gt_origin *origin)
{
    gt_origin_open(NULL);
    struct gt_origin here = gt_origin_here();
    return origin->boot[0] && memcmp(here.boot, origin->boot, sizeof here.boot) == 0;
}

void gt_cause_say(const struct gt_live *live)
{
    char record[8192], program[sizeof live->origin.program + 1] = "";
    int fd = open("/dev/kmsg", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    memcpy(program, live->origin.program, sizeof live->origin.program);
    for (ssize_t n; fd >= 0 && (n = read(fd, record, sizeof record - 1)) > 0;) {
        record[n] = 0;
        const char *text = text_of(record, live->origin.mono_ns);
        const char *cause = text ? cause_in(text, live->pid, program) : NULL;
        if (cause && gt_cause_is_of_this_boot(&live->origin))
            gt_say("%s", cause);
    }
    if (fd >= 0)
        close(fd);
}
