/*
 * JSON on standard output, or in a file, for programs. All texts come out of other programs and
 * files: what is no UTF-8 becomes U+FFFD, and what is not to be written as it is, is escaped.
 */
#ifndef GT_JSON_H
#define GT_JSON_H

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

/* A further member of an object: ,"name":"text" */
void gt_json_text(const char *name, const char *text);

/* ,"name":"0x1f"; numbers of JSON may have 53 bits only. */
void gt_json_address(const char *name, uint64_t address);

#endif
