/*
 * Finds or makes the database of a trace. It is made anew if it is missing, or of another state of
 * the trace.
 */
#pragma once

/*
 * Returns the path of the trace's complete database: `given`, or a file beside the trace. If the
 * trace's directory is not writable, it is a temporary file, which is removed when gotrace ends. On
 * failure ends the program with a message.
 */
const char *gt_sql_file(const char *of, const char *given);
