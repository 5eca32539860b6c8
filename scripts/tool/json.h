/*
 * JSON on standard output, or in a file, for programs. All texts come out of other programs and
 * files: what is no UTF-8 becomes U+FFFD, and what is not to be written as it is, is escaped.
 */
#ifndef GT_JSON_H
#define GT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* From now on it goes there; NULL: to standard output. */
void gt_json_to(FILE *file);

/* "text", of so many bytes, zeros among them. */
void gt_json_bytes(const char *text, size_t size);

/* The same of one that ends with a zero. */
void gt_json_string(const char *text);

/* A number that JSON knows; null: an infinite one, or none. */
void gt_json_real(double number);

/*
 * Members of objects, and items of arrays, which have no name: NULL. The commas between them are
 * put by themselves between gt_json_begin and gt_json_end; elsewhere there is one before each.
 */
void gt_json_text(const char *name, const char *text);
void gt_json_text_or_null(const char *name, const char *text); /* null: NULL, or "" */
void gt_json_number(const char *name, uint64_t number);
void gt_json_truth(const char *name, bool truth);
void gt_json_null(const char *name);

/* "0x1f"; numbers of JSON may have 53 bits only. */
void gt_json_address(const char *name, uint64_t address);

/* A document, which is an object; in it objects and arrays: '{' and '}', '[' and ']'. */
void gt_json_begin(void);
void gt_json_end(void);
void gt_json_open(const char *name, char bracket);
void gt_json_close(char bracket);

#endif
