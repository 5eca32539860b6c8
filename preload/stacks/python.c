/*
 * See python.h. Each call of the interpreter's function has a record in its own frame on the C
 * stack (layouts: `cframe`, or the last Python frame of that call): by its address it is known
 * which frame of the stack is replaced by which of Python's. Pointers are only followed to what can
 * be read and has the type that it has to have. A code object lives as long as its frame; what is
 * made of it is remembered by all that it is made of, so that another one at its place is not
 * mistaken for it.
 */
#include "python.h"

#include "python_memory.h"

#include "encoder/base/hash.h"
#include "symbolize/elf_names.h"
#include "symbolize/modules.h"

#include <stdlib.h>
#include <string.h>

bool gt_python_runs;

static struct {
    struct gt_python_layout layout;
    uintptr_t code_type, text_type, bytes_type;
    uintptr_t interpreter, interpreter_size; /* its function */
    uintptr_t lo, hi;                        /* the module that has it */
    void *(*thread)(void);
    int (*is_initialized)(void);
} python;

__thread bool gt_python_of_other;
_Atomic uintptr_t gt_python_readable[GT_PYTHON_PAGES];

/* Finding it --------------------------------------------------------------------------------- */

static uintptr_t address_of(const char *name)
{
    const struct link_map *map = gt_elf_definer(name);
    return map ? map->l_addr + gt_elf_definition(map, name)->st_value : 0;
}

/* Nobody unloads what the program itself is linked with. */
static bool stays(const struct link_map *map)
{
    const struct link_map *program = _r_debug.r_map;
    return map == program || gt_elf_needs(program, map);
}

/* As PY_VERSION_HEX, but for what is after the minor number; before 3.11 only a text says it. */
static uint32_t version(void)
{
    const unsigned long *number = (const unsigned long *)address_of("Py_Version");
    const char *(*text)(void) = (const char *(*)(void))address_of("Py_GetVersion");
    if (number || !text)
        return number ? (uint32_t)*number : 0;
    char *rest;
    uint32_t major = (uint32_t)strtoul(text(), &rest, 10);
    return major << 24 | (uint32_t)(*rest == '.' ? strtoul(rest + 1, NULL, 10) : 0) << 16;
}

#define INTERPRETER "_PyEval_EvalFrameDefault"

void gt_python_init(void)
{
    enum { WORDS = 64 };
    const struct link_map *map = gt_elf_definer("_PyRuntime");
    if (!map || !stays(map) || gt_elf_definition(map, "_PyRuntime")->st_size < WORDS * 8)
        return;
    python.code_type = address_of("PyCode_Type");
    python.text_type = address_of("PyUnicode_Type");
    python.bytes_type = address_of("PyBytes_Type");
    const struct link_map *in = gt_elf_definer(INTERPRETER);
    python.interpreter = address_of(INTERPRETER);
    python.interpreter_size = in ? gt_elf_definition(in, INTERPRETER)->st_size : 0;
    const struct gt_module *module = gt_modules_now(python.interpreter);
    python.lo = module ? module->lo : 0;
    python.hi = module ? module->hi : 0;
    python.thread = (void *(*)(void))address_of("PyGILState_GetThisThreadState");
    python.is_initialized = (int (*)(void))address_of("Py_IsInitialized");
    gt_python_runs =
        python.code_type && python.text_type && python.bytes_type && python.thread &&
        python.is_initialized &&
        gt_python_layout(version(), (const uint64_t *)address_of("_PyRuntime"), &python.layout);
}

/* It reads thread-specific data, with or without the interpreter's lock. */
uintptr_t gt_python_thread_slow(void)
{
    return (uintptr_t)python.thread();
}

/* Texts -------------------------------------------------------------------------------------- */

enum { TEXT_STATE = 32, BYTES = 32 };

bool gt_python_read_text(uintptr_t at, struct gt_python_text *text)
{
    enum { COMPACT = 0x20, ASCII = 0x40, WIDTH_SHIFT = 2, LENGTH_MAX = 4096 };
    if (!gt_python_is_object(at, python.text_type, python.layout.characters))
        return false;
    uint32_t state = *(const uint32_t *)(at + TEXT_STATE);
    bool ascii = state & ASCII;
    text->width = state >> WIDTH_SHIFT & 7;
    text->length = gt_python_word(at + GT_PYTHON_SIZE);
    text->at = (const void *)(at + (ascii ? python.layout.ascii : python.layout.characters));
    return (state & COMPACT) && text->length <= LENGTH_MAX &&
           (text->width == 1 || text->width == 2 || text->width == 4) &&
           gt_python_can_read((uintptr_t)text->at, text->length * text->width);
}

/* Functions ---------------------------------------------------------------------------------- */

struct code {
    uintptr_t at;
    struct gt_python_text name, file;
    const uint8_t *lines;
    size_t line_bytes;
    uint32_t first;
};

enum seen { GOOD, NAMELESS, BAD };

/* The interpreter has code of its own, of no function. */
static enum seen read_code(uintptr_t at, struct code *c)
{
    enum { LINE_BYTES_MAX = 1 << 16 };
    const struct gt_python_layout *l = &python.layout;
    size_t size = (l->code.lines > l->code.name ? l->code.lines : l->code.name) + sizeof at;
    if (!gt_python_is_object(at, python.code_type, size))
        return BAD;
    uintptr_t name = gt_python_word(at + l->code.name), file = gt_python_word(at + l->code.file);
    uintptr_t lines = gt_python_word(at + l->code.lines);
    if (!name || !file || !lines)
        return NAMELESS;
    if (!gt_python_read_text(name, &c->name) || !gt_python_read_text(file, &c->file) ||
        !gt_python_is_object(lines, python.bytes_type, BYTES))
        return BAD;
    c->at = at;
    c->line_bytes = gt_python_word(lines + GT_PYTHON_SIZE);
    c->lines = (const uint8_t *)lines + BYTES;
    c->first = *(const uint32_t *)(at + l->code.first);
    bool long_one = c->line_bytes > LINE_BYTES_MAX;
    return long_one || !gt_python_can_read((uintptr_t)c->lines, c->line_bytes) ? BAD : GOOD;
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
    const char *at = bytes;
    uint64_t word;
    for (; n >= sizeof word; n -= sizeof word, at += sizeof word) {
        memcpy(&word, at, sizeof word);
        hash = gt_hash_mix(hash, word);
    }
    word = n;
    memcpy(&word, at, n);
    return gt_hash_mix(hash, word ^ (uint64_t)n << 56);
}

static uint64_t hash_code(const struct code *c, int64_t at)
{
    uint64_t hash = gt_hash_mix(gt_hash_mix(c->at, (uint64_t)at), c->first);
    hash = hash_bytes(hash, c->name.at, c->name.length * c->name.width);
    hash = hash_bytes(hash, c->file.at, c->file.length * c->file.width);
    return hash_bytes(hash, c->lines, c->line_bytes);
}

/* Any thread writes any slot at any time: two words that do not belong together say so. */
static uint64_t pc_of(const struct code *c, int64_t at)
{
    enum { PLACES = 4096 };
    static struct {
        _Atomic uint64_t check, pc;
    } places[PLACES];
    uint64_t hash = hash_code(c, at), slot = hash % PLACES;
    uint64_t pc = atomic_load_explicit(&places[slot].pc, memory_order_relaxed);
    if (pc && (atomic_load_explicit(&places[slot].check, memory_order_relaxed) ^ pc) == hash)
        return pc;
    pc = gt_python_pc(c->name, c->file,
                      gt_python_line(python.layout.lines, c->lines, c->line_bytes, c->first, at));
    atomic_store_explicit(&places[slot].check, hash ^ pc, memory_order_relaxed);
    atomic_store_explicit(&places[slot].pc, pc, memory_order_relaxed);
    return pc;
}

/* Frames ------------------------------------------------------------------------------------- */

/* Its lowest bits may be a tag. */
static uintptr_t code_of(uintptr_t frame)
{
    return gt_python_word(frame + python.layout.frame.code) & ~(uintptr_t)3;
}

/* Which of its bytes is executed. */
static int64_t instruction_of(uintptr_t frame, uintptr_t code)
{
    const struct gt_python_layout *l = &python.layout;
    if (l->unit)
        return l->unit * (int64_t) * (const int32_t *)(frame + l->frame.at);
    return (int64_t)(gt_python_word(frame + l->frame.at) - (code + l->code.instructions));
}

/* The frame ends what one call of the interpreter's function executes. */
static bool is_last(uintptr_t frame)
{
    enum { ON_C_STACK = 3 };
    uint8_t last = *(const uint8_t *)(frame + python.layout.frame.last);
    switch (python.layout.chain) {
    case GT_PYTHON_CFRAMES: return last == 1;
    case GT_PYTHON_ENTRIES: return last >= ON_C_STACK;
    default: return true;
    }
}

/* Where in a thread's chain of frames we are. */
struct chain {
    uintptr_t frame, cframe;
    uint32_t met; /* frames so far */
};

/* One call's: n of them from `frame` on, and the address on the C stack that tells which call. */
struct call {
    uintptr_t frame, mark;
    uint32_t n;
};

static bool begin_chain(uintptr_t thread, struct chain *c)
{
    const struct gt_python_layout *l = &python.layout;
    *c = (struct chain){.frame = 0};
    if (l->thread.cframe && !gt_python_read_word(thread + l->thread.cframe, &c->cframe))
        return false;
    uintptr_t holder = l->thread.frame ? thread + l->thread.frame : c->cframe + l->cframe.frame;
    return gt_python_read_word(holder, &c->frame);
}

static bool frame_is_readable(uintptr_t frame)
{
    uint16_t at = python.layout.frame.at, last = python.layout.frame.last;
    return frame % sizeof frame == 0 &&
           gt_python_can_read(frame, (at > last ? at : last) + sizeof frame);
}

/* To the record of the call before; where that says which frame is its first, it is that. */
static bool go_out(struct chain *c)
{
    const struct gt_python_layout *l = &python.layout;
    uintptr_t frame = c->frame;
    if (l->chain == GT_PYTHON_UNMARKED)
        return true;
    return gt_python_read_word(c->cframe + l->cframe.previous, &c->cframe) &&
           (l->chain != GT_PYTHON_CFRAMES ||
            gt_python_read_word(c->cframe + l->cframe.frame, &frame)) &&
           frame == c->frame;
}

static bool next_call(struct chain *c, struct call *call)
{
    enum { FRAMES_MAX = 2048 };
    const struct gt_python_layout *l = &python.layout;
    bool marked = l->chain == GT_PYTHON_ENTRIES, last = false;
    *call = (struct call){.frame = c->frame, .mark = c->cframe};
    while (!last) {
        if (!c->frame || c->met++ == FRAMES_MAX || !frame_is_readable(c->frame))
            return false;
        last = is_last(c->frame);
        if (marked && last)
            call->mark = c->frame;
        else
            call->n++;
        c->frame = gt_python_word(c->frame + l->frame.previous);
    }
    return marked || go_out(c);
}

/* How many have a name; 0: not all are as they have to be. */
static uint32_t name_frames(const struct call *call, uint64_t *to, uint32_t max)
{
    uintptr_t frame = call->frame;
    uint32_t n = 0;
    for (uint32_t i = 0; i < call->n && n < max; i++) {
        struct code code;
        uintptr_t at = code_of(frame);
        enum seen seen = read_code(at, &code);
        uint64_t pc = seen == GOOD ? pc_of(&code, instruction_of(frame, at)) : 0;
        if (seen == BAD || (seen == GOOD && !pc))
            return 0;
        if (pc)
            to[n++] = pc;
        frame = gt_python_word(frame + python.layout.frame.previous);
    }
    return n;
}

static bool is_interpreter(uint64_t pc)
{
    return pc - 1 - python.interpreter < python.interpreter_size;
}

/*
 * With -X perf each function has a bit of code that calls the interpreter for it, made at run time:
 * it says no more than the function itself.
 */
static bool is_trampoline(uint64_t pc)
{
    return (pc < python.lo || pc >= python.hi) && !gt_modules_now(pc);
}

/* A part of that function may stand elsewhere, unseen: there must be as many of both. */
static bool is_paired(struct chain c, const uint64_t *pcs, uint32_t n, uint32_t max)
{
    struct call call;
    uint32_t calls = 0, interpreters = 0;
    for (uint32_t i = 0; i < n; i++)
        interpreters += is_interpreter(pcs[i]);
    while (calls < interpreters && next_call(&c, &call))
        calls++;
    return calls == interpreters && (!c.frame || n + 1 >= max);
}

static uint32_t merge(uintptr_t thread, const uint64_t *pcs, const uintptr_t *sp, uint32_t n,
                      uint64_t *to, uint32_t max)
{
    struct chain chain;
    struct call call;
    uint32_t kept = 0;
    bool marked = python.layout.chain != GT_PYTHON_UNMARKED;
    bool more = python.is_initialized() && begin_chain(thread, &chain) &&
                (marked || is_paired(chain, pcs, n, max)) && next_call(&chain, &call);
    for (uint32_t i = 0; i < n && kept < max; i++) {
        while (marked && more && call.mark < sp[i]) /* of a frame that is not seen */
            more = next_call(&chain, &call);
        bool is_here = marked ? i + 1 < n && call.mark < sp[i + 1] : is_interpreter(pcs[i]);
        bool is_its = more && is_here;
        uint32_t named = is_its ? name_frames(&call, to + kept, max - kept) : 0;
        if (!named)
            to[kept++] = pcs[i];
        kept += named;
        i += named && i + 1 < n && is_trampoline(pcs[i + 1]);
        more = is_its ? next_call(&chain, &call) : more;
    }
    return kept;
}

bool gt_python_find_innermost(struct gt_python_innermost *found)
{
    const struct gt_python_layout *l = &python.layout;
    struct chain c;
    struct code code;
    found->layout = l;
    uintptr_t thread = gt_python_thread();
    if (!thread || !python.is_initialized() || !begin_chain(thread, &c) || !c.frame ||
        !frame_is_readable(c.frame) || read_code(code_of(c.frame), &code) != GOOD)
        return false;
    found->function = code.name;
    found->file = code.file;
    return gt_python_read_word(c.frame + l->frame.locals, &found->local) && found->local;
}

/* A signal handler's may come in the middle. */
uint32_t gt_python_merge(uintptr_t thread, const uint64_t *pcs, const uintptr_t *sp, uint32_t n,
                         uint64_t *to, uint32_t max)
{
    bool was = gt_python_of_other;
    gt_python_of_other = thread != gt_python_thread();
    uint32_t kept = merge(thread, pcs, sp, n, to, max);
    gt_python_of_other = was;
    return kept;
}
