/* See setup.h. Drain side. */
#include "setup.h"

#include "encoder/base/arch/arch.h"
#include "encoder/base/libc.h"
#include "encoder/base/strbuf.h"

#include <gnu/libc-version.h>
#include <string.h>
#include <sys/utsname.h>

static struct {
    const char *library; /* of this process; NULL: it tells nothing */
    bool given;
    char its[GT_SETUP_MAX]; /* if so */
} setup;

void gt_setup_add(char text[static GT_SETUP_MAX], const char *name, const char *value)
{
    size_t length = strlen(text), n = strlen(value = value + strspn(value, " "));
    while (n && value[n - 1] == ' ')
        n--;
    if (length + strlen(name) + n + sizeof " \n" > GT_SETUP_MAX)
        return;
    struct gt_strbuf line = gt_strbuf_start(text + length, GT_SETUP_MAX - length);
    gt_strbuf_add(&line, name);
    gt_strbuf_add(&line, " ");
    char *begin = line.pos;
    gt_strbuf_add_n(&line, value, n);
    for (char *c = begin; c < line.pos; c++)
        *c = *c >= ' ' && *c <= '~' ? *c : '?';
    gt_strbuf_add(&line, "\n");
}

void gt_setup_open(const char *library)
{
    setup.library = library;
}

void gt_setup_use(const char *text)
{
    struct gt_strbuf its = gt_strbuf_start(setup.its, sizeof setup.its);
    gt_strbuf_add(&its, text ? text : "");
    setup.given = true;
}

void gt_setup_here(char text[static GT_SETUP_MAX])
{
    struct utsname system;
    struct gt_strbuf facts = gt_strbuf_start(text, GT_SETUP_MAX);
    if (!setup.library)
        return;
    gt_strbuf_add(&facts, setup.library);
    if (gt_syscall(SYS_uname, &system) == 0) {
        gt_setup_add(text, GT_SETUP_KERNEL, system.release);
        gt_setup_add(text, GT_SETUP_MACHINE, system.machine);
    }
    gt_setup_add(text, GT_SETUP_GLIBC, gnu_get_libc_version());
}

void gt_setup_add_cpu(char text[static GT_SETUP_MAX])
{
    char model[GT_ARCH_CPU_MODEL];
    gt_arch_cpu_model(model);
    if (*model)
        gt_setup_add(text, GT_SETUP_CPU, model);
}

uint32_t gt_setup_text(char text[static GT_SETUP_MAX])
{
    if (setup.given) {
        strcpy(text, setup.its);
    } else {
        gt_setup_here(text);
        if (*text)
            gt_setup_add_cpu(text);
    }
    return (uint32_t)strlen(text);
}
