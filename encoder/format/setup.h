/*
 * With what a trace was recorded: the version of libgotrace, the switches that were set, the
 * kernel, glibc and the CPU's model. `gotrace info` and `gotrace report` show it.
 *
 * It stands in a file once, with the first generation. No event refers to it. In v2 it is a string
 * that begins with GT_SETUP. In v1 it is the numbers of a stack with the id 0: first GT_V1_SETUP,
 * then a number for each byte of the text.
 *
 * The text has a line for each fact: a name, a blank, the value, and the end of the line. Values
 * are printable ASCII. The number of CPUs is not among the facts: the trace has an event for it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define GT_SETUP "gotrace-setup "
#define GT_V1_SETUP 0x7075746573u /* "setup" */

/* Bytes of the text, with its zero. Go's reader refuses a stack of more than 1,000 frames. */
enum { GT_SETUP_MAX = 960 };

/* Names of facts. */
#define GT_SETUP_LIBRARY "libgotrace" /* its version */
#define GT_SETUP_SWITCHES "switches"  /* "GOTRACE_CPU_HZ=200 GOTRACE_LIVE=on"; "": none was set */
#define GT_SETUP_KERNEL "kernel"      /* its release */
#define GT_SETUP_MACHINE "machine"    /* the architecture as uname(2) names it */
#define GT_SETUP_GLIBC "glibc"        /* its version */
#define GT_SETUP_CPU "cpu"            /* the model; not known of every CPU */

/*
 * Adds a fact to a text. A value that is not printable ASCII gets question marks. Blanks around the
 * value are left out.
 */
void gt_setup_add(char text[static GT_SETUP_MAX], const char *name, const char *value);

/*
 * From here on this process records. library: what the library knows, its version and its switches;
 * valid for ever. NULL: traces say nothing about their setup.
 */
void gt_setup_open(const char *library);

/* The facts about this process. "": they are not to be told. */
void gt_setup_here(char text[static GT_SETUP_MAX]);

/*
 * Adds the CPU's model. That takes 0.1 ms in some virtual machines, where each CPUID is a trap. So
 * only the drain side does it, when it begins a file, and `gotrace recover`.
 */
void gt_setup_add_cpu(char text[static GT_SETUP_MAX]);

/* The text to write: of this process, or that of gt_setup_use. Returns its length; 0: none. */
uint32_t gt_setup_text(char text[static GT_SETUP_MAX]);

/*
 * Sets the text to write, for a program that writes what another recorded. It is copied. NULL: the
 * setup is not known.
 */
void gt_setup_use(const char *text);
