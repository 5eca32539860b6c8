/*
 * Writes JSON to standard output or a file. Texts come from other programs and files: bytes that
 * are not UTF-8 become U+FFFD, and special characters are escaped.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Sends all JSON from now on to that file; NULL: to standard output. */
void gt_json_to(FILE *file);

/* Writes "text", of `size` bytes, which may include zeros. */
void gt_json_bytes(const char *text, size_t size);

/* Writes "text", which ends with a zero byte. */
void gt_json_string(const char *text);

/* Writes a number; null if it is infinite or not a number. */
void gt_json_real(double number);

/*
 * Write members of objects; or items of arrays, with the name NULL. Between gt_json_begin and
 * gt_json_end commas are written where needed; elsewhere each member has one before it.
 */
void gt_json_text(const char *name, const char *text);
void gt_json_text_or_null(const char *name, const char *text); /* null for NULL and "" */
void gt_json_number(const char *name, uint64_t number);
void gt_json_truth(const char *name, bool truth);
void gt_json_null(const char *name);

/* Writes "0x1f", a text, as JSON numbers may have only 53 bits. */
void gt_json_address(const char *name, uint64_t address);

/* Begin and end a document, which is an object; in it, objects and arrays, by their brackets. */
void gt_json_begin(void);
void gt_json_end(void);
void gt_json_open(const char *name, char bracket);
void gt_json_close(char bracket);
