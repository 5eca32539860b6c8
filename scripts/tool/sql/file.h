/* Which file the database of a trace is: made when it is not there, or not of this trace any more.
 */
#ifndef GT_SQL_FILE_H
#define GT_SQL_FILE_H

/*
 * The path of the trace's database, whole. Beside the trace, or the path given; where that
 * directory is not writable a temporary file, which goes when we end. Ends the program with a
 * message where that fails.
 */
const char *gt_sql_file(const char *of, const char *given);

#endif
