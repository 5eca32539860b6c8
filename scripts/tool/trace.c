/* See trace.h. */
#include "trace.h"

#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const v2_kinds[GT_EVENTS_END] = {
    [6] = "CPUSamples",
    "CPUSample",
    "Frequency",
    "ProcsChange",
    "ProcStart",
    "ProcStop",
    "ProcSteal",
    "ProcStatus",
    "GoCreate",
    "GoCreateSyscall",
    "GoStart",
    "GoDestroy",
    "GoDestroySyscall",
    "GoStop",
    "GoBlock",
    "GoUnblock",
    "GoSyscallBegin",
    "GoSyscallEnd",
    "GoSyscallEndBlocked",
    "GoStatus",
    "STWBegin",
    "STWEnd",
    "GCActive",
    "GCBegin",
    "GCEnd",
    "GCSweepActive",
    "GCSweepBegin",
    "GCSweepEnd",
    "GCMarkAssistActive",
    "GCMarkAssistBegin",
    "GCMarkAssistEnd",
    "HeapAlloc",
    "HeapGoal",
    "GoLabel",
    "UserTaskBegin",
    "UserTaskEnd",
    "UserRegionBegin",
    "UserRegionEnd",
    "UserLog",
    "GoSwitch",
    "GoSwitchDestroy",
    "GoCreateBlocked",
    "GoStatusStack",
};

static const char *const v1_kinds[64] = {
    [4] = "Gomaxprocs", "ProcStart",      "ProcStop",     "GCStart",     "GCDone",
    "STWStart",         "STWDone",        "GCSweepStart", "GCSweepDone", "GoCreate",
    "GoStart",          "GoEnd",          "GoStop",       "GoSched",     "GoPreempt",
    "GoSleep",          "GoBlock",        "GoUnblock",    "GoBlockSend", "GoBlockRecv",
    "GoBlockSelect",    "GoBlockSync",    "GoBlockCond",  "GoBlockNet",  "GoSysCall",
    "GoSysExit",        "GoSysBlock",     "GoWaiting",    "GoInSyscall", "HeapAlloc",
    "HeapGoal",         "TimerGoroutine", "FutileWakeup", "String",      "GoStartLocal",
    "GoUnblockLocal",   "GoSysExitLocal", "GoStartLabel", "GoBlockGC",   "GCMarkAssistStart",
    "GCMarkAssistDone", "UserTaskCreate", "UserTaskEnd",  "UserRegion",  "UserLog",
    "CPUSample",
};

const char *gt_trace_kind(const struct gt_format *format, unsigned type)
{
    if (format->v1)
        return type < 64 ? v1_kinds[type] : NULL;
    return type < GT_EVENTS_END ? v2_kinds[type] : NULL;
}

static void map(struct gt_trace *trace, const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0)
        gt_fail(GT_EXIT_FAILED, "%s: %s", path, strerror(errno));
    trace->size = (size_t)st.st_size;
    void *base = trace->size && S_ISREG(st.st_mode)
                     ? mmap(NULL, trace->size, PROT_READ, MAP_PRIVATE, fd, 0)
                     : MAP_FAILED;
    close(fd);
    trace->base = base == MAP_FAILED ? NULL : base;
    if (trace->base)
        madvise(base, trace->size, MADV_SEQUENTIAL | MADV_WILLNEED);
}

void gt_trace_open(struct gt_trace *trace, const char *path)
{
    *trace = (struct gt_trace){.path = path};
    map(trace, path);
    if (trace->base && trace->size >= GT_HEADER_BYTES)
        trace->format = gt_format_of_header(trace->base);
    if (!trace->format)
        gt_fail(GT_EXIT_FAILED, "%s is not a Go execution trace of a version known here", path);
}

/* A terminal sees a percentage that changes; a log one line. */
void gt_trace_progress(struct gt_trace *trace, uint64_t bytes)
{
    enum { LARGE = 64 << 20, STEP = 1 << 20 };
    uint64_t before = trace->done / STEP;
    bool terminal = isatty(2);
    if (trace->size < LARGE)
        return;
    if (!trace->done && !terminal)
        gt_say("reading %s, %zu MiB", trace->path, trace->size >> 20);
    trace->done += bytes;
    if (terminal && trace->done / STEP != before)
        fprintf(stderr, "\rgotrace: reading %s: %3.0f %%", trace->path,
                100.0 * (double)trace->done / (double)trace->size);
}

void gt_trace_read(struct gt_trace *trace, const struct gt_audience *audience)
{
    if (trace->format->v1)
        gt_trace_read_v1(trace, audience);
    else
        gt_trace_read_v2(trace, audience);
    if (trace->done && isatty(2))
        fprintf(stderr, "\r\033[K");
}
