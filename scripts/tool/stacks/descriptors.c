/*
 * Describes a descriptor of another process: its name in /proc, and the addresses of a socket. The
 * process runs on, so the descriptor may be another file by now.
 */
#include "still.h"

#include "encoder/read/need.h"
#include "scripts/tool/alone.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <limits.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

/* An address as /proc/net has it: words of 32 bits, in the machine's byte order. */
static void address_text(const char *hex, char text[64])
{
    uint32_t words[4] = {0};
    unsigned port = 0;
    size_t digits = strcspn(hex, ":"), n = digits / 8;
    for (size_t i = 0; i < n && i < 4; i++)
        sscanf(hex + 8 * i, "%8x", &words[i]);
    sscanf(hex + digits, ":%x", &port);
    char host[INET6_ADDRSTRLEN] = "?";
    inet_ntop(n == 4 ? AF_INET6 : AF_INET, words, host, sizeof host);
    snprintf(text, 64, n == 4 ? "[%s]:%u" : "%s:%u", host, port);
}

static bool inet_line(const char *protocol, const char *line, unsigned long inode, char *out,
                      size_t size)
{
    char local[64], remote[64], from[64], to[64];
    unsigned long its;
    unsigned state;
    if (sscanf(line, "%*s %63s %63s %x %*s %*s %*s %*s %*s %lu", local, remote, &state, &its) !=
            4 ||
        its != inode)
        return false;
    address_text(local, from);
    address_text(remote, to);
    enum { LISTENS = 10 };
    bool peer = strcspn(to, ":") && strcmp(strrchr(to, ':'), ":0") != 0;
    snprintf(out, size, "%s %s%s%s%s", protocol, from, state == LISTENS ? ", listening" : "",
             peer ? ", peer " : "", peer ? to : "");
    return true;
}

static bool unix_line(const char *protocol, const char *line, unsigned long inode, char *out,
                      size_t size)
{
    unsigned long its;
    int path = 0;
    if (sscanf(line, "%*s %*s %*s %*s %*s %*s %lu%n", &its, &path) != 1 || its != inode)
        return false;
    snprintf(out, size, "%s socket%.*s", protocol, (int)strcspn(line + path, "\n"), line + path);
    return true;
}

static const struct {
    const char *file, *protocol;
    bool (*line)(const char *protocol, const char *line, unsigned long inode, char *out,
                 size_t size);
} tables[] = {
    {"net/tcp", "tcp", inet_line},  {"net/tcp6", "tcp", inet_line},  {"net/udp", "udp", inet_line},
    {"net/udp6", "udp", inet_line}, {"net/unix", "unix", unix_line},
};

/* The protocol of a socket that no table has: of another family, or not bound yet. */
static void name_protocol(const char *path, char *out, size_t size)
{
    char protocol[32];
    ssize_t n = getxattr(path, "system.sockprotoname", protocol, sizeof protocol - 1);
    if (n <= 0)
        return;
    protocol[n] = 0;
    for (char *c = protocol; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    snprintf(out, size, "%s socket", protocol);
}

static bool describe_socket(pid_t pid, unsigned long inode, char *out, size_t size)
{
    bool found = false;
    for (size_t i = 0; i < sizeof tables / sizeof *tables && !found; i++) {
        char line[512];
        FILE *f = gt_open_proc(pid, tables[i].file);
        while (f && !found && fgets(line, sizeof line, f))
            found = tables[i].line(tables[i].protocol, line, inode, out, size);
        if (f)
            fclose(f);
    }
    return found;
}

void gt_describe_fd(pid_t pid, struct gt_fd *fd)
{
    char path[64];
    unsigned long inode;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd->number);
    ssize_t n = readlink(path, fd->what, sizeof fd->what - 1);
    fd->what[n < 0 ? 0 : n] = 0;
    if (sscanf(fd->what, "socket:[%lu]", &inode) == 1 &&
        !describe_socket(pid, inode, fd->what, sizeof fd->what))
        name_protocol(path, fd->what, sizeof fd->what);
}

void gt_add_watched(pid_t pid, int epoll, struct gt_thread_wait *wait)
{
    enum { MOST = 64 };
    char name[64], line[256];
    int number;
    snprintf(name, sizeof name, "fdinfo/%d", epoll);
    FILE *f = gt_open_proc(pid, name);
    while (f && wait->fds < MOST && fgets(line, sizeof line, f)) {
        if (sscanf(line, "tfd: %d", &number) == 1)
            GT_ADD(wait->fd, wait->fds)->number = number;
    }
    if (f)
        fclose(f);
}
