/* See trace.h. */
#include "trace.h"

#include <errno.h>
#include <fcntl.h>
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

static const char *map(struct gt_trace *trace, const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return strerror(errno);
    void *base = MAP_FAILED;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= GT_HEADER_BYTES)
        base = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (base != MAP_FAILED) {
        trace->base = base;
        trace->size = (size_t)st.st_size;
        madvise(base, trace->size, MADV_SEQUENTIAL | MADV_WILLNEED);
    }
    return NULL;
}

const char *gt_trace_open(struct gt_trace *trace, const char *path)
{
    *trace = (struct gt_trace){.path = path};
    const char *why = map(trace, path);
    if (why)
        return why;
    trace->format = trace->base ? gt_format_of_header(trace->base) : NULL;
    return trace->format ? NULL : "it is not a Go execution trace of a version known here";
}

bool gt_trace_read(struct gt_trace *trace, const struct gt_audience *audience)
{
    if (trace->format->v1)
        gt_trace_read_v1(trace, audience);
    else
        gt_trace_read_v2(trace, audience);
    return !*trace->damage;
}
