/* How long the calling thread could run and had no CPU, in ns, as the kernel counts it. */
#pragma once
#include "../../prog/program.h"
static long queued(void)
{
    char text[100] = "", path[64];
    snprintf(path, sizeof path, "/proc/self/task/%ld/schedstat", syscall(SYS_gettid));
    int fd = open(path, O_RDONLY);
    if (fd < 0 || read(fd, text, sizeof text - 1) < 0)
        exit(1);
    close(fd);
    long cpu, queue;
    sscanf(text, "%ld %ld", &cpu, &queue);
    return queue;
}
