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

#include "encoder/base/futex.h"
#include "encoder/base/hash.h"
#include "encoder/base/sparse.h"
#include "encoder/base/urgent.h"
#include "symbolize/elf_names.h"
#include "symbolize/modules.h"

#include <stdlib.h>
#include <string.h>

_Atomic bool gt_python_runs, gt_python_may_go;

static struct {
    struct gt_python_layout layout;
    uintptr_t code_type, text_type, bytes_type;
    uintptr_t interpreter, interpreter_size; /* its function */
    _Atomic uintptr_t lo, hi;                /* the module that has it */
    uint64_t loaded;                         /* and since when */
    void *(*thread)(void);
    int (*is_initialized)(void);
} python;

__thread bool gt_python_of_other;
_Atomic uintptr_t gt_python_readable[GT_PYTHON_PAGES] GT_SPARSE;

/* Finding it --------------------------------------------------------------------------------- */

static uintptr_t address_of(const struct link_map *map, const char *name)
{
    const ElfW(Sym) *symbol = gt_elf_definition(map, name);
    return symbol ? map->l_addr + symbol->st_value : 0;
}

static uintptr_t size_of(const struct link_map *map, const char *name)
{
    const ElfW(Sym) *symbol = gt_elf_definition(map, name);
    return symbol ? symbol->st_size : 0;
}

/* Nobody unloads what the program itself is linked with. */
static bool stays(const struct link_map *map)
{
    const struct link_map *program = _r_debug.r_map;
    return map == program || gt_elf_needs(program, map);
}

/* As PY_VERSION_HEX, but for what is after the minor number; before 3.11 only a text says it. */
static uint32_t version(const struct link_map *map)
{
    const unsigned long *number = (const unsigned long *)address_of(map, "Py_Version");
    const char *(*text)(void) = (const char *(*)(void))address_of(map, "Py_GetVersion");
    if (number || !text)
        return number ? (uint32_t)*number : 0;
    char *rest;
    uint32_t major = (uint32_t)strtoul(text(), &rest, 10);
    return major << 24 | (uint32_t)(*rest == '.' ? strtoul(rest + 1, NULL, 10) : 0) << 16;
}

#define RUNTIME "_PyRuntime"
#define INTERPRETER "_PyEval_EvalFrameDefault"

/* Whoever reads the old one's places meanwhile has none of its functions on the stack. */
static bool find(const struct gt_module *module, const struct link_map *map)
{
    enum { WORDS = 64 };
    if (!module || size_of(map, RUNTIME) < WORDS * sizeof(uint64_t))
        return false;
    python.code_type = address_of(map, "PyCode_Type");
    python.text_type = address_of(map, "PyUnicode_Type");
    python.bytes_type = address_of(map, "PyBytes_Type");
    python.interpreter = address_of(map, INTERPRETER);
    python.interpreter_size = size_of(map, INTERPRETER);
    python.thread = (void *(*)(void))address_of(map, "PyGILState_GetThisThreadState");
    python.is_initialized = (int (*)(void))address_of(map, "Py_IsInitialized");
    bool known =
        python.code_type && python.text_type && python.bytes_type && python.interpreter &&
        python.thread && python.is_initialized &&
        gt_python_layout(version(map), (const uint64_t *)address_of(map, RUNTIME), &python.layout);
    python.lo = known ? module->lo : 0; /* or there is none that could have stayed */
    python.hi = known ? module->hi : 0;
    python.loaded = module->loaded;
    return known;
}

/* may_go first: whoever sees that it runs sees that. */
static void set_runs(bool may_go)
{
    atomic_store_explicit(&gt_python_may_go, may_go, memory_order_relaxed);
    atomic_store_explicit(&gt_python_runs, true, memory_order_release);
}

void gt_python_init(void)
{
    const struct link_map *map = gt_elf_definer(RUNTIME);
    if (gt_python_runs && !gt_python_may_go)
        return;
    gt_python_hold();
    if (!map)
        return;
    gt_modules_refresh();
    if (find(gt_modules_now(address_of(map, RUNTIME)), map))
        set_runs(!stays(map));
}

static _Atomic bool met_by_somebody; /* just now: one is enough */

struct search {
    uint64_t code;
    struct link_map found; /* address and dynamic section; the rest is not set */
};

static int is_of(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct search *search = arg;
    uint64_t lo, hi;
    (void)size;
    gt_elf_span(info, &lo, &hi);
    if (search->code < lo || search->code >= hi)
        return 0;
    search->found.l_addr = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            search->found.l_ld = (void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    }
    return 1;
}

/* What calls is relocated, and is not unloaded meanwhile. */
void gt_python_meet(const void *code)
{
    struct search search = {.code = (uintptr_t)code};
    if (gt_python_runs || atomic_exchange(&met_by_somebody, true))
        return;
    uint64_t signals = gt_signals_hold();
    gt_elf_each_module(is_of, &search);
    gt_signals_release(signals);
    if (size_of(&search.found, RUNTIME)) {
        gt_modules_refresh();
        if (find(gt_modules_now(search.code), &search.found))
            set_runs(true);
    }
    atomic_store(&met_by_somebody, false);
}

/* How many threads are in other ones' frames, whose threads may have been left behind by Python. */
static _Atomic uint32_t visitors;

static bool visit(void)
{
    atomic_fetch_add(&visitors, 1); /* then the load: gt_python_hold does the reverse */
    return gt_python_runs;
}

static void leave(void)
{
    if (atomic_fetch_sub(&visitors, 1) == 1)
        gt_futex_wake(&visitors, INT_MAX);
}

void gt_python_hold(void)
{
    enum { SLICES = 10 };
    int saved = errno;
    uint32_t n;
    if (!gt_python_may_go)
        return;
    atomic_store(&gt_python_runs, false);
    for (int i = 0; i < SLICES && (n = atomic_load(&visitors)); i++) {
        gt_urgent_lend();
        gt_futex_wait(&visitors, n, GT_LOCK_PATIENCE_NS / SLICES);
    }
    errno = saved;
}

void gt_python_after_fork(void)
{
    atomic_store(&visitors, 0);
    atomic_store(&met_by_somebody, false);
}

/* Nothing of it is read for that: another thread may unload it now. */
void gt_python_go_on(void)
{
    const struct gt_module *m = gt_python_may_go ? gt_modules_now(python.lo) : NULL;
    bool stayed = m && m->lo == python.lo && m->hi == python.hi && m->loaded == python.loaded;
    if (stayed)
        set_runs(true);
}

bool gt_python_has(const uint64_t *pcs, uint32_t n)
{
    uint32_t i = 0;
    if (!gt_python_may_go)
        return true;
    while (i < n && (pcs[i] < python.lo || pcs[i] >= python.hi))
        i++;
    return i < n;
}

/* It reads thread-specific data, with or without the interpreter's lock. */
uintptr_t gt_python_thread(void)
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
    } places[PLACES] GT_SPARSE;
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

bool gt_python_find_innermost(uintptr_t thread, struct gt_python_innermost *found)
{
    const struct gt_python_layout *l = &python.layout;
    struct chain c;
    struct code code;
    found->layout = l;
    if (!python.is_initialized() || !begin_chain(thread, &c) || !c.frame ||
        !frame_is_readable(c.frame) || read_code(code_of(c.frame), &code) != GOOD)
        return false;
    found->function = code.name;
    found->file = code.file;
    return gt_python_read_word(c.frame + l->frame.locals, &found->local) && found->local;
}

uint32_t gt_python_merge(uintptr_t thread, const uint64_t *pcs, const uintptr_t *sp, uint32_t n,
                         uint64_t *to, uint32_t max)
{
    bool was = gt_python_of_other; /* a signal handler's may come in the middle */
    gt_python_of_other = false;
    uint32_t kept = merge(thread, pcs, sp, n, to, max);
    gt_python_of_other = was;
    return kept;
}

uint32_t gt_python_merge_other(uintptr_t thread, const uint64_t *pcs, const uintptr_t *sp,
                               uint32_t n, uint64_t *to, uint32_t max)
{
    uint32_t kept = n < max ? n : max;
    bool may = visit() && gt_python_has(pcs, n);
    gt_python_of_other = true;
    if (may)
        kept = merge(thread, pcs, sp, n, to, max);
    else
        memcpy(to, pcs, kept * sizeof *to);
    gt_python_of_other = false;
    leave();
    return kept;
}
