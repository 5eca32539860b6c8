/* For programs of the tests that go on once another of their threads sleeps. */
#pragma once

#include "program.h"

/* Whether the kernel says that the thread sleeps. */
static inline bool is_asleep(int tid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    FILE *file = fopen(path, "re");
    const char *behind = file && fgets(text, sizeof text, file) ? strrchr(text, ')') : NULL;
    if (file)
        fclose(file);
    return behind && behind[2] == 'S';
}
