/*
 * What programs of test_account.py have in common: burn keeps the thread on the CPU for so many
 * seconds.
 */
#pragma once
#include <linux/filter.h>
#include <linux/seccomp.h>

#include "../../prog/program.h"
__attribute__((noinline)) static void burn(double s)
{
    for (uint64_t from = now_ns(); (double)(now_ns() - from) < s * 1e9;)
        ;
}
