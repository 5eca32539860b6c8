/*
 * A part of a trace as a file, for commands that show a part of a large trace, with the options
 * --from, --to and --whole.
 */
#pragma once

#include "rewrite.h"

struct gt_shown_part {
    struct gt_rewrite its; /* begins with `to` at UINT64_MAX */
    bool wanted, whole;    /* wanted: only a part is shown */
};

/* Rows for a command's table of long options. */
#define GT_PART_OPTIONS                                                           \
    {"from", required_argument, NULL, 'f'}, {"to", required_argument, NULL, 't'}, \
    {                                                                             \
        "whole", no_argument, NULL, 'w'                                           \
    }

/* Handles one of these options. false: it is another option. A bad value ends the program. */
bool gt_part_option(struct gt_shown_part *part, int option, const char *value);

/* Ends the program with a message if both a part and all of the trace are asked for. */
void gt_part_check(const struct gt_shown_part *part, const char *command);

/*
 * Writes the part of its->input between its->from and its->to to a file in a new directory of
 * TMPDIR, and sets its->output. The file is removed when this process ends. Once per process; a
 * failure ends the program with a message.
 */
void gt_part_make(struct gt_rewrite *its);
