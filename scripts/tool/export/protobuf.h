/*
 * Messages in the wire format of Protocol Buffers, put together in memory field by field, in the
 * order of the calls. What a field means, and which number it has, the caller knows.
 *
 * A writer of our own: a library that has a structure for every message would need a compiler for
 * their descriptions to build the command, and the whole profile in memory to write it. This is all
 * of the format that writing takes.
 */
#ifndef GT_PROTOBUF_H
#define GT_PROTOBUF_H

#include <stddef.h>
#include <stdint.h>

/* Zeros to begin with; `data` is freed by the caller. */
struct gt_message {
    uint8_t *data;
    size_t n, room;
};

/* uint64, int64 that is not negative, uint32, enum, bool. */
void gt_message_number(struct gt_message *m, unsigned field, uint64_t value);

/* fixed64. */
void gt_message_fixed(struct gt_message *m, unsigned field, uint64_t value);

void gt_message_bytes(struct gt_message *m, unsigned field, const void *bytes, size_t size);

/* string, which is UTF-8: what of the text is none becomes U+FFFD. */
void gt_message_text(struct gt_message *m, unsigned field, const char *text);

/* What is written between the two is a message of its own, or packed numbers. */
size_t gt_message_begin(struct gt_message *m, unsigned field);
void gt_message_end(struct gt_message *m, size_t begin);

/* One of packed numbers. */
void gt_message_packed(struct gt_message *m, uint64_t value);

#endif
