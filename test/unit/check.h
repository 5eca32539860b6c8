/* The few lines every unit test needs: CHECK prints what failed and how to repeat it. */
#pragma once

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition, ...)                                                       \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: failed: %s: ", __FILE__, __LINE__, #condition); \
            fprintf(stderr, " " __VA_ARGS__);                                       \
            fprintf(stderr, "\n");                                                  \
            exit(1);                                                                \
        }                                                                           \
    } while (0)

#define CHECK_EQ(got, expected)                                                                    \
    CHECK((uint64_t)(got) == (uint64_t)(expected), "%s: got %" PRIu64 ", expected %" PRIu64, #got, \
          (uint64_t)(got), (uint64_t)(expected))
