/*
 * Calls each function of libc that the headers wrap, for _FORTIFY_SOURCE, in an inline function of
 * their own. Says for each call the function that makes it, and its line. How many bytes there are
 * is not known to the compiler, so it cannot leave out the wrapper.
 */
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <syslog.h>
#include <unistd.h>
#include <wchar.h>

static volatile size_t some = 8;
static volatile long sink;
static char buf[64];
static wchar_t wide[64];
static struct pollfd polled[8];
static int file, socks[2];
static FILE *narrow, *wides, *out;

/* A function that makes the call. No tail call: what it adds follows. */
#define FN(name, ...)                               \
    __attribute__((noinline)) static int name(void) \
    {                                               \
        sink = (long)(__VA_ARGS__);                 \
        sink = sink + 1;                            \
        return __LINE__;                            \
    }

FN(of_read, read(file, buf, some))
FN(of_pread, pread(file, buf, some, 0))
FN(of_pread64, pread64(file, buf, some, 0))
FN(of_recv, recv(socks[0], buf, some, 0))
FN(of_recvfrom, recvfrom(socks[0], buf, some, 0, NULL, NULL))
FN(of_poll, poll(polled, some, 0))
FN(of_ppoll, ppoll(polled, some, &(struct timespec){0}, NULL))
FN(of_readlink, readlink("/proc/self/exe", buf, some))
FN(of_readlinkat, readlinkat(AT_FDCWD, "/proc/self/exe", buf, some))
FN(of_open, open("/dev/null", (int)some))
FN(of_openat, openat(AT_FDCWD, "/dev/null", (int)some))
FN(of_fread, fread(buf, 1, some, narrow))
FN(of_fread_unlocked, fread_unlocked(buf, 1, some, narrow))
FN(of_fgets, fgets(buf, (int)some, narrow))
FN(of_fgets_unlocked, fgets_unlocked(buf, (int)some, narrow))
FN(of_fgetws, fgetws(wide, (int)some, wides))
FN(of_fgetws_unlocked, fgetws_unlocked(wide, (int)some, wides))
FN(of_fprintf, fprintf(out, "%zu", some))
FN(of_fwprintf, fwprintf(wides, L"%zu", some))
FN(of_dprintf, dprintf(file, "%zu", some))
FN(of_syslog, (syslog(LOG_DEBUG, "%zu", some), 0))

static const struct {
    const char *name;
    int (*run)(void);
} calls[] = {
#define ROW(name)   \
    {               \
#name, name \
    }
    ROW(of_read),           ROW(of_pread),           ROW(of_pread64),
    ROW(of_recv),           ROW(of_recvfrom),        ROW(of_poll),
    ROW(of_ppoll),          ROW(of_readlink),        ROW(of_readlinkat),
    ROW(of_open),           ROW(of_openat),          ROW(of_fread),
    ROW(of_fread_unlocked), ROW(of_fgets),           ROW(of_fgets_unlocked),
    ROW(of_fgetws),         ROW(of_fgetws_unlocked), ROW(of_fprintf),
    ROW(of_fwprintf),       ROW(of_dprintf),         ROW(of_syslog),
};

int main(void)
{
    file = open("/dev/zero", O_RDWR);
    narrow = fopen("/dev/zero", "r");
    wides = fopen("/dev/zero", "r+");
    out = fopen("/dev/null", "w");
    if (file < 0 || !narrow || !wides || !out || socketpair(AF_UNIX, SOCK_DGRAM, 0, socks))
        return 1;
    for (int i = 0; i < 8; i++)
        polled[i].fd = -1;
    setvbuf(narrow, NULL, _IONBF, 0);
    setvbuf(wides, NULL, _IONBF, 0);
    setvbuf(out, NULL, _IONBF, 0);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (write(socks[1], "x", 1) != 1)
            return 1;
        int line = calls[i].run();
        printf("%s %d\n", calls[i].name, line);
    }
    return 0;
}
