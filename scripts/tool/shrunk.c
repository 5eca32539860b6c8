/* See shrunk.h. The handler calls only functions that are safe in a signal handler. */
#include "shrunk.h"

#include "replacement.h"
#include "tool.h"

#include "encoder/base/printable.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static struct {
    char line[PATH_MAX + 128]; /* a line of /proc/self/maps, without its newline */
    size_t n;
} maps;

static const char *read_hex(const char *p, uint64_t *n)
{
    for (*n = 0; (*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'f'); p++)
        *n = *n << 4 | (uint64_t)(*p <= '9' ? *p - '0' : *p - 'a' + 10);
    return p;
}

/* The file in the line, if the line's mapping has the address; or NULL. */
static char *name_in_line(uint64_t address)
{
    uint64_t from, to;
    maps.line[maps.n] = 0;
    read_hex(read_hex(maps.line, &from) + 1, &to);
    return from <= address && address < to ? strchr(maps.line, '/') : NULL;
}

/* The file that is mapped at the address; or NULL. */
static char *name_at(uint64_t address)
{
    char c, *name;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    for (; read(fd, &c, 1) == 1;) {
        if (c != '\n') {
            maps.line[maps.n] = c;
            maps.n += maps.n + 1 < sizeof maps.line;
            continue;
        }
        if ((name = name_in_line(address)))
            return name;
        maps.n = 0;
    }
    return NULL;
}

static void say(char *name)
{
    static char begin[] = "gotrace: ",
                what[] = ": it became shorter while it was read, or the disk cannot be read\n";
    gt_make_printable(name, strlen(name));
    struct iovec line[] = {
        {begin, sizeof begin - 1}, {name, strlen(name)}, {what, sizeof what - 1}};
    if (writev(2, line, 3) < 0)
        return;
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
    char *name = info->si_code > 0 ? name_at((uintptr_t)info->si_addr) : NULL;
    (void)context;
    gt_replacement_discard();
    if (name) {
        say(name);
        _exit(GT_EXIT_FAILED);
    }
    raise(number); /* not from a mapped file: the default action follows on our return */
}

void gt_shrunk_watch(void)
{
    struct sigaction act = {.sa_sigaction = on_bus_error,
                            .sa_flags = SA_SIGINFO | (int)SA_RESETHAND};
    sigaction(SIGBUS, &act, NULL);
}
