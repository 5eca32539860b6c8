/*
 * Reads what a thread of Python executes from the interpreter's memory, and puts the functions of
 * Python into the thread's stack in place of the interpreter's own function. The library does this
 * in the process itself, on hot paths, and `gotrace stacks` for another process. So these functions
 * are compiled for each of the two, and the includer provides first how memory is read:
 *
 *   gt_python_can_read(at, size)   whether these bytes can be read
 *   gt_python_at(at, size)         where they are; only after gt_python_can_read
 *
 * Nothing in that memory is sure to be as it has to be. Pointers are followed only to memory that
 * can be read and has the type that it has to have. Each call of the interpreter's function has a
 * record in its own frame on the C stack (layouts: `cframe`, or the last Python frame of that
 * call). The record's address tells which native frame is replaced by which frames of Python.
 */
#pragma once

#include "layouts.h"

#include <stddef.h>
#include <string.h>

/* The Python of the process. */
extern struct gt_python {
    struct gt_python_layout layout;
    uintptr_t code_type, text_type, bytes_type;
    uintptr_t interpreter, interpreter_size; /* its C function */
} gt_python;

enum gt_python_seen { GT_PYTHON_GOOD, GT_PYTHON_NAMELESS, GT_PYTHON_BAD };

/*
 * The includer's: the pc of a place in a function (gt_python_pc), from gt_python_read_code and
 * gt_python_line. 0: it has no name, or there is no room.
 */
enum gt_python_seen gt_python_find_pc(uintptr_t code, int64_t at, uint64_t *pc);

/*
 * The includer's: whether the pc is in code that Python has made at run time. With -X perf each
 * function of Python has a bit of code that calls the interpreter for it. With PYTHON_JIT=1 parts
 * of functions are such code, which often has no unwind information: the walk ends there. Python's
 * own frame says more than either.
 */
bool gt_python_is_made(uint64_t pc);

/* Objects ------------------------------------------------------------------------------------ */

enum { GT_PYTHON_TYPE = 8, GT_PYTHON_SIZE = 16, GT_PYTHON_TEXT_STATE = 32, GT_PYTHON_BYTES = 32 };

static inline uint8_t gt_python_byte(uintptr_t at)
{
    return *(const uint8_t *)gt_python_at(at, 1);
}

static inline uint32_t gt_python_half(uintptr_t at)
{
    return *(const uint32_t *)gt_python_at(at, sizeof(uint32_t));
}

static inline uintptr_t gt_python_word(uintptr_t at)
{
    return *(const uintptr_t *)gt_python_at(at, sizeof at);
}

static inline bool gt_python_read_word(uintptr_t at, uintptr_t *word)
{
    bool can = at % sizeof *word == 0 && gt_python_can_read(at, sizeof *word);
    if (can)
        *word = gt_python_word(at);
    return can;
}

static inline bool gt_python_is_object(uintptr_t at, uintptr_t type, size_t size)
{
    return at % sizeof(uintptr_t) == 0 && gt_python_can_read(at, size) &&
           gt_python_word(at + GT_PYTHON_TYPE) == type;
}

static inline uint32_t gt_python_text_state(uintptr_t text)
{
    return gt_python_half(text + GT_PYTHON_TEXT_STATE);
}

/* Where a text's characters begin, behind the head of the object, whose state is given. */
static inline uintptr_t gt_python_characters(uintptr_t text, uint32_t state)
{
    enum { ASCII = 0x40 };
    const struct gt_python_layout *l = &gt_python.layout;
    return text + (state & ASCII ? l->ascii : l->characters);
}

static inline unsigned gt_python_width(uint32_t state)
{
    return state >> 2 & 7;
}

/* The characters of a string that could be read before. */
static inline struct gt_python_text gt_python_text_at(uintptr_t at)
{
    uint32_t state = gt_python_text_state(at);
    size_t length = gt_python_word(at + GT_PYTHON_SIZE);
    unsigned width = gt_python_width(state);
    const void *characters = gt_python_at(gt_python_characters(at, state), length * width);
    return (struct gt_python_text){.at = characters, .length = length, .width = width};
}

/* The characters of a string. false: the object is none. */
static inline bool gt_python_read_text(uintptr_t at, struct gt_python_text *text)
{
    enum { COMPACT = 0x20, LENGTH_MAX = 4096 };
    if (!gt_python_is_object(at, gt_python.text_type, gt_python.layout.characters))
        return false;
    uint32_t state = gt_python_text_state(at);
    size_t length = gt_python_word(at + GT_PYTHON_SIZE);
    unsigned width = gt_python_width(state);
    if (!(state & COMPACT) || length > LENGTH_MAX || (width != 1 && width != 2 && width != 4) ||
        !gt_python_can_read(gt_python_characters(at, state), length * width))
        return false;
    *text = gt_python_text_at(at);
    return true;
}

static inline bool gt_python_is_text(const struct gt_python_text *text, const char *ascii)
{
    return text->width == 1 && text->length == strlen(ascii) &&
           memcmp(text->at, ascii, text->length) == 0;
}

/* Functions ---------------------------------------------------------------------------------- */

struct gt_python_code {
    uintptr_t at;
    struct gt_python_text name, file;
    const uint8_t *lines;
    size_t line_bytes;
    uint32_t first;
};

/* GT_PYTHON_NAMELESS: the interpreter has code of its own that belongs to no function. */
static inline enum gt_python_seen gt_python_read_code(uintptr_t at, struct gt_python_code *c)
{
    enum { LINE_BYTES_MAX = 1 << 16 };
    const struct gt_python_layout *l = &gt_python.layout;
    size_t size = (l->code.lines > l->code.name ? l->code.lines : l->code.name) + sizeof at;
    if (!gt_python_is_object(at, gt_python.code_type, size))
        return GT_PYTHON_BAD;
    uintptr_t name = gt_python_word(at + l->code.name), file = gt_python_word(at + l->code.file);
    uintptr_t lines = gt_python_word(at + l->code.lines);
    if (!name || !file || !lines)
        return GT_PYTHON_NAMELESS;
    if (!gt_python_read_text(name, &c->name) || !gt_python_read_text(file, &c->file) ||
        !gt_python_is_object(lines, gt_python.bytes_type, GT_PYTHON_BYTES))
        return GT_PYTHON_BAD;
    c->at = at;
    c->line_bytes = gt_python_word(lines + GT_PYTHON_SIZE);
    c->first = gt_python_half(at + l->code.first);
    lines += GT_PYTHON_BYTES;
    if (c->line_bytes > LINE_BYTES_MAX || !gt_python_can_read(lines, c->line_bytes))
        return GT_PYTHON_BAD;
    c->lines = gt_python_at(lines, c->line_bytes);
    return GT_PYTHON_GOOD;
}

/* Frames ------------------------------------------------------------------------------------- */

/* The frame's code object. The lowest bits of the word may be a tag. */
static inline uintptr_t gt_python_code_of(uintptr_t frame)
{
    return gt_python_word(frame + gt_python.layout.frame.code) & ~(uintptr_t)3;
}

/* Which byte of its code the frame executes. */
static inline int64_t gt_python_instruction_of(uintptr_t frame, uintptr_t code)
{
    const struct gt_python_layout *l = &gt_python.layout;
    if (l->unit)
        return l->unit * (int64_t)(int32_t)gt_python_half(frame + l->frame.at);
    return (int64_t)(gt_python_word(frame + l->frame.at) - (code + l->code.instructions));
}

/* Whether the frame is the last that one call of the interpreter's function executes. */
static inline bool gt_python_is_last(uintptr_t frame)
{
    enum { ON_C_STACK = 3 };
    uint8_t last = gt_python_byte(frame + gt_python.layout.frame.last);
    switch (gt_python.layout.chain) {
    case GT_PYTHON_CFRAMES: return last == 1;
    case GT_PYTHON_ENTRIES: return last >= ON_C_STACK;
    default: return true;
    }
}

/* A position in a thread's chain of frames. */
struct gt_python_position {
    uintptr_t frame, cframe;
    uint32_t met; /* frames so far */
};

/*
 * The frames of one call: n frames from `frame` on, and the address on the C stack that tells which
 * call. mark 0: not known.
 */
struct gt_python_call {
    uintptr_t frame, mark;
    uint32_t n;
};

static inline bool gt_python_begin(uintptr_t thread, struct gt_python_position *c)
{
    const struct gt_python_layout *l = &gt_python.layout;
    *c = (struct gt_python_position){.frame = 0};
    if (l->thread.cframe && !gt_python_read_word(thread + l->thread.cframe, &c->cframe))
        return false;
    uintptr_t holder = l->thread.frame ? thread + l->thread.frame : c->cframe + l->cframe.frame;
    return gt_python_read_word(holder, &c->frame);
}

static inline bool gt_python_can_read_frame(uintptr_t frame)
{
    uint16_t at = gt_python.layout.frame.at, last = gt_python.layout.frame.last;
    return frame % sizeof frame == 0 &&
           gt_python_can_read(frame, (at > last ? at : last) + sizeof frame);
}

/*
 * Moves out to the record of the previous call. If that record names its first frame, the frame
 * must be the chain's next one.
 */
static inline bool gt_python_go_out(struct gt_python_position *c)
{
    const struct gt_python_layout *l = &gt_python.layout;
    uintptr_t frame = c->frame;
    if (l->chain == GT_PYTHON_UNMARKED)
        return true;
    return gt_python_read_word(c->cframe + l->cframe.previous, &c->cframe) &&
           (l->chain != GT_PYTHON_CFRAMES ||
            gt_python_read_word(c->cframe + l->cframe.frame, &frame)) &&
           frame == c->frame;
}

/* Of a call with more frames than are looked at, the first ones are found. It is the last call. */
static inline bool gt_python_next_call(struct gt_python_position *c, struct gt_python_call *call)
{
    enum { FRAMES_MAX = 2048 };
    const struct gt_python_layout *l = &gt_python.layout;
    bool marked = l->chain == GT_PYTHON_ENTRIES, last = false;
    *call = (struct gt_python_call){.frame = c->frame, .mark = c->cframe};
    while (!last) {
        if (c->met == FRAMES_MAX) {
            call->mark = marked ? 0 : call->mark;
            c->frame = 0;
            return call->n > 0;
        }
        if (!c->frame || !gt_python_can_read_frame(c->frame))
            return false;
        c->met++;
        last = gt_python_is_last(c->frame);
        if (marked && last)
            call->mark = c->frame;
        else
            call->n++;
        c->frame = gt_python_word(c->frame + l->frame.previous);
    }
    return marked || gt_python_go_out(c);
}

/*
 * Writes the pcs of a call's frames that have a name. Returns how many; 0: some data are not as
 * they have to be.
 */
static inline uint32_t gt_python_name_frames(const struct gt_python_call *call, uint64_t *to,
                                             uint32_t max)
{
    uintptr_t frame = call->frame;
    uint32_t n = 0;
    for (uint32_t i = 0; i < call->n && n < max; i++) {
        uint64_t pc;
        uintptr_t at = gt_python_code_of(frame);
        enum gt_python_seen seen = gt_python_find_pc(at, gt_python_instruction_of(frame, at), &pc);
        if (seen == GT_PYTHON_BAD || (seen == GT_PYTHON_GOOD && !pc))
            return 0;
        if (pc)
            to[n++] = pc;
        frame = gt_python_word(frame + gt_python.layout.frame.previous);
    }
    return n;
}

static inline bool gt_python_is_interpreter(uint64_t pc)
{
    return pc - 1 - gt_python.interpreter < gt_python.interpreter_size;
}

/*
 * Writes the pcs of this call and of all outer calls, like gt_python_name_frames. For calls whose
 * native frames the walk has not reached.
 */
static inline uint32_t gt_python_name_rest(struct gt_python_position *c,
                                           struct gt_python_call *call, uint64_t *to, uint32_t max)
{
    uint32_t kept = 0, named;
    do {
        named = gt_python_name_frames(call, to + kept, max - kept);
        kept += named;
    } while (named && kept < max && gt_python_next_call(c, call));
    return kept;
}

/*
 * Whether there are as many native frames of the interpreter's function as calls in the chain. A
 * part of that function may stand elsewhere in memory, where it is not recognized.
 */
static inline bool gt_python_is_paired(struct gt_python_position c, const uint64_t *pcs, uint32_t n,
                                       uint32_t max)
{
    struct gt_python_call call;
    uint32_t calls = 0, interpreters = 0;
    for (uint32_t i = 0; i < n; i++)
        interpreters += gt_python_is_interpreter(pcs[i]);
    while (calls < interpreters && gt_python_next_call(&c, &call))
        calls++;
    return calls == interpreters && (!c.frame || n + 1 >= max);
}

/*
 * Puts the functions of Python into the stack of a thread, Python's `thread`. pcs: n return
 * addresses, of frames that begin at sp[0 … n-1]. to: the result, at most `max`. Where the
 * interpreter's data are not as they have to be, its own frames stay. Returns how many.
 */
static inline uint32_t gt_python_put(uintptr_t thread, const uint64_t *pcs, const uintptr_t *sp,
                                     uint32_t n, uint64_t *to, uint32_t max)
{
    struct gt_python_position chain;
    struct gt_python_call call = {.mark = 0};
    uint32_t kept = 0;
    bool marked = gt_python.layout.chain != GT_PYTHON_UNMARKED;
    bool more = gt_python_begin(thread, &chain) &&
                (marked || gt_python_is_paired(chain, pcs, n, max)) &&
                gt_python_next_call(&chain, &call);
    for (uint32_t i = 0; i < n && kept < max; i++) {
        while (more && call.mark && call.mark < sp[i]) /* a call whose native frame is not seen */
            more = gt_python_next_call(&chain, &call);
        bool is_last = marked && more && i + 1 == n && gt_python_is_made(pcs[i]);
        bool is_here =
            call.mark ? i + 1 < n && call.mark < sp[i + 1] : gt_python_is_interpreter(pcs[i]);
        bool is_its = more && is_here;
        uint64_t inner = kept ? to[kept - 1] : 0;
        uint32_t at = kept - (kept && (is_its || is_last) && gt_python_is_made(inner));
        uint32_t named = is_last  ? gt_python_name_rest(&chain, &call, to + at, max - at)
                         : is_its ? gt_python_name_frames(&call, to + at, max - at)
                                  : 0;
        if (!named && at < kept)
            to[at++] = inner; /* gt_python_name_frames may have begun */
        if (!named)
            to[at++] = pcs[i];
        kept = at + named;
        i += named && i + 1 < n && gt_python_is_made(pcs[i + 1]);
        more = is_its ? gt_python_next_call(&chain, &call) : more;
    }
    return kept;
}
