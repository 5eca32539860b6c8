/*
 * Writes messages in the wire format of Protocol Buffers, in memory, field by field, in the order
 * of the calls. The caller knows the meaning and number of each field.
 *
 * This is a writer of our own, and all of the format that writing needs. A Protocol Buffers library
 * has a structure for every message: the build would need its compiler, and writing would need the
 * whole profile in memory.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Zero-initialised; the caller frees `data`. */
struct gt_message {
    uint8_t *data;
    size_t n, room;
};

/* Writes a uint64, int64 that is not negative, uint32, enum or bool. */
void gt_message_number(struct gt_message *m, unsigned field, uint64_t value);

/* Writes a fixed64. */
void gt_message_fixed(struct gt_message *m, unsigned field, uint64_t value);

void gt_message_bytes(struct gt_message *m, unsigned field, const void *bytes, size_t size);

/* Writes a string, in UTF-8: invalid bytes of the text become U+FFFD. */
void gt_message_text(struct gt_message *m, unsigned field, const char *text);

/* Fields written between the two calls are a message inside the field; or packed numbers are. */
size_t gt_message_begin(struct gt_message *m, unsigned field);
void gt_message_end(struct gt_message *m, size_t begin);

/* Writes one of packed numbers. */
void gt_message_packed(struct gt_message *m, uint64_t value);
