/*
 * The locks of whose `with` blocks a thread of Python is in one, from 3.13 on. A lock that is one
 * byte names no holder, and taking it while it is free is no call. But while a block is executed,
 * the interpreter keeps on the frame's stack what it has to call at the block's end: the lock's
 * `__exit__`, bound to the lock (3.13), or `__exit__` and then the lock (3.14). A lock alone may be
 * the value of a variable, which a comprehension keeps there. The table of the function's handlers
 * says how deep that stack is at least, so that nothing left over is taken for it. A block is
 * entered once the lock is taken.
 *
 * threading.Condition.wait gives a lock up within the block, and takes it again. Which lock, only
 * its object says. So the blocks around that call do not count. A program may do the like itself:
 * so a thread never holds the lock that it waits for, which the caller must leave out.
 */
#pragma once

#include "python_frames.h"

enum { GT_PYTHON_LOCK_BYTE = 16 }; /* of a lock: its PyMutex, which stands for the lock elsewhere */

/* Reads a number of a table of handlers: six bits a byte, the highest first. */
static inline uint32_t gt_python_handler_number(const uint8_t **at, const uint8_t *end)
{
    enum { MORE = 0x40 };
    uint32_t n = 0;
    while (*at < end) {
        uint8_t byte = *(*at)++;
        n = n << 6 | (byte & (MORE - 1));
        if (!(byte & MORE))
            break;
    }
    return n;
}

/*
 * How many words an instruction's handler finds on the frame's stack; 0: it has no handler. unit:
 * the instruction's number. A row of the table is where its instructions begin, how many they are,
 * the handler, and twice the number of words.
 */
static inline uint32_t gt_python_handler_depth(const uint8_t *at, const uint8_t *end, uint32_t unit)
{
    while (at < end) {
        uint32_t start = gt_python_handler_number(&at, end);
        uint32_t size = gt_python_handler_number(&at, end);
        gt_python_handler_number(&at, end);
        uint32_t depth = gt_python_handler_number(&at, end) >> 1;
        if (unit - start < size)
            return depth;
    }
    return 0;
}

/* Is given the address of the byte of each lock whose block a thread is in. Another object with a
 * method `__exit__` in C counts as a lock. */
typedef void gt_python_block_fn(void *arg, uintptr_t lock);

/* Whether the object is a method `__exit__` that is written in C. */
static inline bool gt_python_is_exit(uintptr_t object)
{
    enum { NAME = 0 };
    static const char name[] = "__exit__";
    uintptr_t method, text;
    return gt_python_read_word(object + gt_python.layout.exit, &method) &&
           gt_python_read_word(method + NAME, &text) && gt_python_can_read(text, sizeof name) &&
           memcmp(gt_python_at(text, sizeof name), name, sizeof name) == 0;
}

/* Passes on what two words on a frame's stack end a block of, if they do. Their lowest bits are a
 * tag. */
static inline void gt_python_pass_block(uintptr_t first, uintptr_t second, gt_python_block_fn *fn,
                                        void *arg)
{
    enum { TAG = 7, SELF = 24 };
    uintptr_t object = first & ~(uintptr_t)TAG, self = second & ~(uintptr_t)TAG;
    if (gt_python_is_exit(object) &&
        (gt_python.layout.exit != GT_PYTHON_BOUND || gt_python_read_word(object + SELF, &self)))
        fn(arg, self + GT_PYTHON_LOCK_BYTE);
}

/* The table of a function's handlers. false: it is not as it has to be. */
static inline bool gt_python_read_handlers(uintptr_t code, const uint8_t **rows, size_t *size)
{
    enum { HANDLERS = 40, SIZE_MAX_ = 1 << 16 };
    uintptr_t table;
    if (!gt_python_read_word(code + HANDLERS, &table) ||
        !gt_python_is_object(table, gt_python.bytes_type, GT_PYTHON_BYTES))
        return false;
    *size = gt_python_word(table + GT_PYTHON_SIZE);
    table += GT_PYTHON_BYTES;
    if (*size > SIZE_MAX_ || !gt_python_can_read(table, *size))
        return false;
    *rows = gt_python_at(table, *size);
    return true;
}

/* Whether the file is Python's own module for threads. */
static inline bool gt_python_is_of_threading(const struct gt_python_text *file)
{
    static const char end[] = "/threading.py";
    size_t n = sizeof end - 1;
    return file->width == 1 && file->length >= n &&
           memcmp((const char *)file->at + file->length - n, end, n) == 0;
}

static inline bool gt_python_gives_up(uintptr_t frame)
{
    struct gt_python_code code;
    return gt_python_read_code(gt_python_code_of(frame), &code) == GT_PYTHON_GOOD &&
           gt_python_is_text(&code.name, "Condition.wait") && gt_python_is_of_threading(&code.file);
}

static inline void gt_python_pass_frame(uintptr_t frame, gt_python_block_fn *fn, void *arg)
{
    enum { DEPTH_MAX = 1024, LOCALS_MAX = 1 << 16, UNIT = 2 };
    const struct gt_python_layout *l = &gt_python.layout;
    uintptr_t code = gt_python_code_of(frame);
    const uint8_t *rows;
    size_t size;
    if (!gt_python_is_object(code, gt_python.code_type, l->code.first + 2 * sizeof(uint32_t)) ||
        !gt_python_read_handlers(code, &rows, &size))
        return;
    uint32_t locals = gt_python_half(code + l->code.first + sizeof locals);
    uint32_t unit = (uint32_t)(gt_python_instruction_of(frame, code) / UNIT);
    uint32_t depth = gt_python_handler_depth(rows, rows + size, unit);
    uintptr_t stack = frame + l->frame.locals + locals * sizeof stack;
    if (locals > LOCALS_MAX || depth > DEPTH_MAX ||
        !gt_python_can_read(stack, depth * sizeof stack))
        return;
    for (uint32_t i = 0; i < depth; i++) {
        uintptr_t at = stack + i * sizeof at;
        uintptr_t next = i + 1 < depth ? gt_python_word(at + sizeof at) : 0;
        gt_python_pass_block(gt_python_word(at), next, fn, arg);
    }
}

/* Calls fn for what the thread, Python's `thread`, which stands still, is in a block of. */
static inline void gt_python_pass_blocks(uintptr_t thread, gt_python_block_fn *fn, void *arg)
{
    struct gt_python_position position;
    struct gt_python_call call;
    if (!gt_python.layout.has_byte_locks || !gt_python_begin(thread, &position))
        return;
    while (gt_python_next_call(&position, &call)) {
        uintptr_t frame = call.frame;
        for (uint32_t i = 0; i < call.n; i++) {
            if (gt_python_gives_up(frame))
                return;
            gt_python_pass_frame(frame, fn, arg);
            frame = gt_python_word(frame + gt_python.layout.frame.previous);
        }
    }
}
