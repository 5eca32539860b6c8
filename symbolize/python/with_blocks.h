/*
 * The locks of whose `with` blocks a thread of Python is in one, from 3.13 on. A lock that is one
 * byte names no holder, and taking it while it is free is no call. But while a block is executed,
 * the interpreter keeps on the frame's stack what it has to call at the block's end: the lock's
 * `__exit__`, bound to the lock (3.13), or the lock itself (3.14). The table of the function's
 * handlers says how deep that stack is at least, so that nothing left over is taken for it. A block
 * is entered once the lock is taken.
 *
 * threading.Condition.wait gives a lock up within the block, and takes it again. Which lock, only
 * its object says. So the blocks around that call do not count. A program may do the like itself:
 * so a thread does not hold the lock that it waits for, which the caller must leave out, unless
 * gt_python_holds_own says so. That function knows locks that are semaphores, too, from 3.11 on.
 */
#pragma once

#include "frames.h"

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

/* Is given the address of the byte of each lock whose block a thread is in; and other addresses. */
typedef void gt_python_block_fn(void *arg, uintptr_t lock);

/* Passes on what a word on a frame's stack ends a block of. The lowest bits are a tag. */
static inline void gt_python_pass_block(uintptr_t word, gt_python_block_fn *fn, void *arg)
{
    enum { TAG = 7, NAME = 0, METHOD = 16, SELF = 24 };
    static const char name[] = "__exit__";
    uintptr_t object = word & ~(uintptr_t)TAG, method, text;
    fn(arg, object + GT_PYTHON_LOCK_BYTE);
    if (gt_python_can_read(object, SELF + sizeof object) &&
        gt_python_read_word(object + METHOD, &method) &&
        gt_python_read_word(method + NAME, &text) && gt_python_can_read(text, sizeof name) &&
        memcmp(gt_python_at(text, sizeof name), name, sizeof name) == 0)
        fn(arg, gt_python_word(object + SELF) + GT_PYTHON_LOCK_BYTE);
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

/*
 * The words on the frame's stack that are there as long as its innermost `try` or `with` is. false:
 * something is not as it has to be.
 */
static inline bool gt_python_read_stack(uintptr_t frame, uintptr_t *stack, uint32_t *depth)
{
    enum { DEPTH_MAX = 1024, LOCALS_MAX = 1 << 16, UNIT = 2 };
    const struct gt_python_layout *l = &gt_python.layout;
    uintptr_t code = gt_python_code_of(frame);
    const uint8_t *rows;
    size_t size;
    if (!gt_python_is_object(code, gt_python.code_type, l->code.first + 2 * sizeof(uint32_t)) ||
        !gt_python_read_handlers(code, &rows, &size))
        return false;
    uint32_t locals = gt_python_half(code + l->code.first + sizeof locals);
    uint32_t unit = (uint32_t)(gt_python_instruction_of(frame, code) / UNIT);
    *depth = gt_python_handler_depth(rows, rows + size, unit);
    *stack = frame + l->frame.locals + locals * sizeof *stack;
    return locals <= LOCALS_MAX && *depth <= DEPTH_MAX &&
           gt_python_can_read(*stack, *depth * sizeof *stack);
}

static inline void gt_python_pass_frame(uintptr_t frame, gt_python_block_fn *fn, void *arg)
{
    uintptr_t stack;
    uint32_t depth;
    if (!gt_python_read_stack(frame, &stack, &depth))
        return;
    for (uint32_t i = 0; i < depth; i++)
        gt_python_pass_block(gt_python_word(stack + i * sizeof stack), fn, arg);
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

/* A thread's own block ------------------------------------------------------------------------ */

/* Whether the text contains the ASCII characters. */
static inline bool gt_python_contains(const struct gt_python_text *text, const char *ascii)
{
    return text->width == 1 && memmem(text->at, text->length, ascii, strlen(ascii));
}

/* Whether the function uses a name that says that it takes or gives up a lock; or its names cannot
 * be read. */
static inline bool gt_python_uses_release(uintptr_t frame)
{
    enum { NAMES = 32, NAMES_MAX = 4096 };
    static const char *const says[] = {"acquire", "release", "unlock"};
    uintptr_t names, item = gt_python.layout.items;
    struct gt_python_text text;
    if (!gt_python_read_word(gt_python_code_of(frame) + NAMES, &names) ||
        !gt_python_can_read(names, item))
        return true;
    size_t n = gt_python_word(names + GT_PYTHON_SIZE);
    if (n > NAMES_MAX || !gt_python_can_read(names + item, n * sizeof names))
        return true;
    for (size_t i = 0; i < n; i++) {
        if (!gt_python_read_text(gt_python_word(names + item + i * sizeof names), &text))
            return true;
        for (size_t k = 0; k < sizeof says / sizeof *says; k++) {
            if (gt_python_contains(&text, says[k]))
                return true;
        }
    }
    return false;
}

struct gt_python_own {
    uintptr_t lock;
    bool found;
};

/* Whether that is the lock's address: that of its byte, or of the semaphore that it points to. */
static inline void gt_python_match_own(void *arg, uintptr_t at)
{
    struct gt_python_own *own = arg;
    uintptr_t word;
    own->found |= at == own->lock || (!gt_python.layout.has_byte_locks &&
                                      gt_python_read_word(at, &word) && word == own->lock);
}

/*
 * Whether the thread, which waits for the lock, is in a `with` block of the lock, and has certainly
 * not given the lock up there. So no function from the one with the block on uses a name that says
 * so, and no block within that block is of an object whose methods are Python's, such as one that
 * releases the lock for the time of its own block.
 */
static inline bool gt_python_holds_own(uintptr_t thread, uintptr_t lock)
{
    enum { TAG = 7 };
    struct gt_python_own own = {.lock = lock};
    struct gt_python_position position;
    struct gt_python_call call;
    if (gt_python.layout.chain < GT_PYTHON_CFRAMES || !gt_python_begin(thread, &position))
        return false;
    while (gt_python_next_call(&position, &call)) {
        uintptr_t frame = call.frame, stack;
        for (uint32_t i = 0; i < call.n; i++) {
            uint32_t depth;
            if (gt_python_uses_release(frame) || !gt_python_read_stack(frame, &stack, &depth))
                return false;
            while (depth--) {
                uintptr_t word = gt_python_word(stack + depth * sizeof stack);
                uintptr_t object = word & ~(uintptr_t)TAG;
                gt_python_pass_block(word, gt_python_match_own, &own);
                if (own.found)
                    return true;
                if (gt_python_is_object(object, gt_python.function_type, GT_PYTHON_SIZE) ||
                    gt_python_is_object(object, gt_python.method_type, GT_PYTHON_SIZE))
                    return false;
            }
            frame = gt_python_word(frame + gt_python.layout.frame.previous);
        }
    }
    return false;
}
