/* What a check says, and how to mend what is missing: see doctor.h. */
#include "doctor.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

void gt_found(struct gt_check *c, enum gt_health health, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    c->health = health;
    vsnprintf(c->says, sizeof c->says, format, ap);
    va_end(ap);
}

void gt_mend(struct gt_check *c, const char *format, ...)
{
    va_list ap;
    if (c->health == GT_HEALTH_OK || c->health == GT_HEALTH_UNASKED)
        return;
    va_start(ap, format);
    vsnprintf(c->mend, sizeof c->mend, format, ap);
    va_end(ap);
}

const char *gt_as_root(void)
{
    return geteuid() == 0 ? "" : "sudo ";
}

void gt_mend_by_package(struct gt_check *c, const char *debian, const char *fedora)
{
    if (access("/usr/bin/apt-get", X_OK) == 0)
        gt_mend(c, "%sapt install %s", gt_as_root(), debian);
    else if (access("/usr/bin/dnf", X_OK) == 0)
        gt_mend(c, "%sdnf install %s", gt_as_root(), fedora);
    else
        gt_mend(c, "install the package that Debian calls %s, and Fedora %s", debian, fedora);
}

bool gt_has_libdw(void)
{
    void *library = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library)
        dlclose(library);
    return library != NULL;
}

void gt_mend_libdw(struct gt_check *c)
{
    gt_mend_by_package(c, "libdw1", "elfutils-libs");
}
