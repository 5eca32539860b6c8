/*
 * What programs of test_control.py have in common: naps sleeps for each byte of standard input, up
 * to its end.
 */
#pragma once
#include "../../prog/program.h"
__attribute__((unused)) static char c;
__attribute__((unused)) static void *nap(void *arg)
{
    usleep(1000);
    return arg;
}
__attribute__((unused)) static void naps(void)
{
    while (read(0, &c, 1) == 1)
        usleep(1000);
}

__attribute__((unused)) static void *wait_for_ever(void *arg)
{
    pause();
    return arg;
}
