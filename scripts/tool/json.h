/*
 * Text in JSON, on standard output. All names come out of other programs and files: what is no
 * UTF-8, or not to be written in JSON as it is, is escaped.
 */
#ifndef GT_JSON_H
#define GT_JSON_H

void gt_json_string(const char *text);

/* ,"name":"text" */
void gt_json_text(const char *name, const char *text);

#endif
