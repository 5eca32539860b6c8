/*
 * See python_stack.h. symbolize/python/python_frames.h reads the frames. A code object lives as
 * long as its frame. Its pc is remembered by all the data that it is made of, so that another code
 * object at the same address is not mistaken for it.
 */
#include "python_stack.h"

#include "pymutex.h"
#include "python_memory.h"

#include "encoder/base/futex.h"
#include "encoder/base/hash.h"
#include "encoder/base/sparse.h"
#include "encoder/base/urgent.h"
#include "symbolize/elf/elf_names.h"
#include "symbolize/elf/modules.h"
#include "symbolize/symbolize.h"

#include <stdlib.h>
#include <string.h>

_Atomic bool gt_python_runs, gt_python_may_go;

static struct {
    uintptr_t function_type, method_type;
    _Atomic uintptr_t lo, hi; /* the module with the interpreter */
    uint64_t loaded;          /* when that module was loaded */
    void *(*thread)(void);
    int (*is_initialized)(void);
} python;
struct gt_python gt_python;

__thread bool gt_python_of_other;
_Atomic uintptr_t gt_python_readable[GT_PYTHON_PAGES] GT_SPARSE;

static bool can_read_page(uintptr_t page)
{
    _Atomic uintptr_t *slot = gt_python_slot(page);
    if (!gt_python_of_other && atomic_load_explicit(slot, memory_order_relaxed) == page)
        return true;
    if (!gt_page_readable(page))
        return false;
    atomic_store_explicit(slot, page, memory_order_relaxed);
    return true;
}

__attribute__((noinline)) bool gt_python_can_read_slow(uintptr_t at, size_t size)
{
    uintptr_t page = at & ~(uintptr_t)(GT_PYTHON_PAGE - 1), end = at + size;
    bool can = at >= GT_PYTHON_PAGE && end >= at && end <= UINTPTR_MAX - GT_PYTHON_PAGE;
    for (; can && page < end; page += GT_PYTHON_PAGE)
        can = can_read_page(page);
    return can;
}

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

/* Whether the module is never unloaded, because the program itself is linked with it. */
static bool stays(const struct link_map *map)
{
    const struct link_map *program = _r_debug.r_map;
    return map == program || gt_elf_needs(program, map);
}

/* Python's version as PY_VERSION_HEX, exact to the minor number. Before 3.11 only a text has it. */
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

/*
 * Fills in `python`. A thread that reads an old Python's addresses meanwhile has no function of it
 * on its stack.
 */
static bool find(const struct gt_module *module, const struct link_map *map)
{
    enum { WORDS = 64 };
    gt_pymutex_find(module, version(map));
    if (!module || size_of(map, RUNTIME) < WORDS * sizeof(uint64_t))
        return false;
    gt_python.code_type = address_of(map, "PyCode_Type");
    gt_python.text_type = address_of(map, "PyUnicode_Type");
    gt_python.bytes_type = address_of(map, "PyBytes_Type");
    python.function_type = address_of(map, "PyFunction_Type");
    python.method_type = address_of(map, "PyMethod_Type");
    gt_python.interpreter = address_of(map, INTERPRETER);
    gt_python.interpreter_size = size_of(map, INTERPRETER);
    python.thread = (void *(*)(void))address_of(map, "PyGILState_GetThisThreadState");
    python.is_initialized = (int (*)(void))address_of(map, "Py_IsInitialized");
    bool known = gt_python.code_type && gt_python.text_type && gt_python.bytes_type &&
                 gt_python.interpreter && python.thread && python.is_initialized &&
                 gt_python_layout(version(map), (const uint64_t *)address_of(map, RUNTIME),
                                  &gt_python.layout);
    python.lo = known ? module->lo : 0; /* 0: there is no module that could have stayed */
    python.hi = known ? module->hi : 0;
    python.loaded = module->loaded;
    return known;
}

/* may_go first: a thread that sees gt_python_runs sees it, too. */
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

static _Atomic bool met_by_somebody; /* a thread is looking for Python now: one is enough */

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

/* The calling code is relocated, and is not unloaded meanwhile. */
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

/* How many threads look at other threads' frames, which Python may have left behind. */
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

/* Reads nothing of Python's: another thread may unload it now. */
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

bool gt_python_is_code(const void *pc)
{
    return (uintptr_t)pc >= python.lo && (uintptr_t)pc < python.hi;
}

/* Python's function only reads thread-specific data, with or without the interpreter's lock. */
uintptr_t gt_python_thread(void)
{
    return (uintptr_t)python.thread();
}

/* Functions ---------------------------------------------------------------------------------- */

static uint64_t load(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* Two multiplications of a step do not wait for each other. */
static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
    enum { WORD = sizeof(uint64_t), STEP = 4 * WORD };
    const char *at = bytes, *end = at + n;
    uint64_t other = n;
    for (; n >= STEP; n -= STEP, at += STEP) {
        hash = gt_hash_pair(hash ^ load(at), load(at + WORD) ^ GT_HASH_ODD);
        other = gt_hash_pair(other ^ load(at + 2 * WORD), load(at + 3 * WORD) ^ GT_HASH_ODD);
    }
    for (size_t left = n; left >= WORD; left -= WORD, at += WORD)
        hash = gt_hash_mix(hash, load(at));
    if (end - (const char *)bytes >= WORD) /* the last word again, in part */
        return gt_hash_mix(gt_hash_mix(hash, other), load(end - WORD));
    for (; at < end; at++)
        other = other << 8 ^ (uint8_t)*at;
    return gt_hash_mix(hash, other);
}

/*
 * A place in a function: the objects and sizes that its code object had when it was met, a hash of
 * what these held, and the pc. The code object of another function at the same address differs in
 * some of this. All threads share the places. version: 0 where there is none; odd while a thread
 * writes.
 */
enum { PLACES = 2048 };
static struct place {
    _Atomic uint64_t version, code, at, name, file, lines, states, lengths, line_data, hash, pc;
} places[PLACES] GT_SPARSE;

static struct place *place_of(uintptr_t code, int64_t at)
{
    return &places[gt_hash_mix(code, (uint64_t)at) % PLACES];
}

static inline uint64_t relaxed(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static uint64_t two(uint64_t low, uint64_t high)
{
    return low | high << 32;
}

/* Python keeps the hash of a text that it has needed. */
static uint64_t hash_text(uint64_t hash, uintptr_t at)
{
    enum { HASH = 24 };
    struct gt_python_text text = gt_python_text_at(at);
    uintptr_t known = gt_python_word(at + HASH);
    return known != UINTPTR_MAX ? gt_hash_mix(hash, known)
                                : hash_bytes(hash, text.at, text.length * text.width);
}

static uint64_t hash_code(uintptr_t name, uintptr_t file, uintptr_t lines)
{
    uint64_t hash = hash_text(hash_text(0, name), file);
    return hash_bytes(hash, (const void *)(lines + GT_PYTHON_BYTES),
                      gt_python_word(lines + GT_PYTHON_SIZE));
}

static bool is_of_type(uintptr_t object, uintptr_t type)
{
    return gt_python_word(object + GT_PYTHON_TYPE) == type;
}

/*
 * The pc of a place where the code object is the one that was met; 0: it is not. What has the same
 * addresses and sizes as then could be read then.
 */
static inline uint64_t pc_as_met(const struct place *p, uintptr_t code, int64_t at)
{
    const struct gt_python_layout *l = &gt_python.layout;
    /* acquire, and the fence: pair with those of keep_place. */
    uint64_t version = atomic_load_explicit(&p->version, memory_order_acquire);
    if (!version || version & 1 || relaxed(&p->code) != code || relaxed(&p->at) != (uint64_t)at)
        return 0;
    uintptr_t name = gt_python_word(code + l->code.name),
              file = gt_python_word(code + l->code.file);
    uintptr_t lines = gt_python_word(code + l->code.lines);
    uint32_t first = *(const uint32_t *)(code + l->code.first);
    if (!is_of_type(code, gt_python.code_type) || name != relaxed(&p->name) ||
        file != relaxed(&p->file) || lines != relaxed(&p->lines))
        return 0;
    uint64_t lengths =
        two(gt_python_word(name + GT_PYTHON_SIZE), gt_python_word(file + GT_PYTHON_SIZE));
    if (!is_of_type(name, gt_python.text_type) || !is_of_type(file, gt_python.text_type) ||
        !is_of_type(lines, gt_python.bytes_type) ||
        two(gt_python_text_state(name), gt_python_text_state(file)) != relaxed(&p->states) ||
        lengths != relaxed(&p->lengths) ||
        two(first, gt_python_word(lines + GT_PYTHON_SIZE)) != relaxed(&p->line_data))
        return 0;
    uint64_t hash = relaxed(&p->hash), pc = relaxed(&p->pc);
    atomic_thread_fence(memory_order_acquire);
    return relaxed(&p->version) == version && hash_code(name, file, lines) == hash ? pc : 0;
}

static void keep_place(struct place *p, const struct gt_python_code *c, int64_t at, uint64_t pc)
{
    const struct gt_python_layout *l = &gt_python.layout;
    uintptr_t name = gt_python_word(c->at + l->code.name);
    uintptr_t file = gt_python_word(c->at + l->code.file),
              lines = (uintptr_t)c->lines - GT_PYTHON_BYTES;
    uint64_t version = relaxed(&p->version);
    if (version & 1 || !atomic_compare_exchange_strong(&p->version, &version, version + 1))
        return;
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&p->code, c->at, memory_order_relaxed);
    atomic_store_explicit(&p->at, (uint64_t)at, memory_order_relaxed);
    atomic_store_explicit(&p->name, name, memory_order_relaxed);
    atomic_store_explicit(&p->file, file, memory_order_relaxed);
    atomic_store_explicit(&p->lines, lines, memory_order_relaxed);
    atomic_store_explicit(&p->states, two(gt_python_text_state(name), gt_python_text_state(file)),
                          memory_order_relaxed);
    atomic_store_explicit(&p->lengths, two(c->name.length, c->file.length), memory_order_relaxed);
    atomic_store_explicit(&p->line_data, two(c->first, c->line_bytes), memory_order_relaxed);
    atomic_store_explicit(&p->hash, hash_code(name, file, lines), memory_order_relaxed);
    atomic_store_explicit(&p->pc, pc, memory_order_relaxed);
    atomic_store_explicit(&p->version, version + 2, memory_order_release);
}

/*
 * The pc of a place in a function. 0: it has no name, or there is no room. What another thread may
 * free is asked for before it is read.
 */
enum gt_python_seen gt_python_find_pc(uintptr_t code, int64_t at, uint64_t *pc)
{
    struct place *p = place_of(code, at);
    struct gt_python_code c;
    *pc = gt_python_of_other ? 0 : pc_as_met(p, code, at);
    enum gt_python_seen seen = *pc ? GT_PYTHON_GOOD : gt_python_read_code(code, &c);
    if (seen != GT_PYTHON_GOOD || *pc || (gt_python_of_other && (*pc = pc_as_met(p, code, at))))
        return seen;
    uint32_t line = gt_python_line(gt_python.layout.lines, c.lines, c.line_bytes, c.first, at);
    *pc = gt_python_pc(c.name, c.file, line);
    if (*pc)
        keep_place(p, &c, at, *pc);
    return GT_PYTHON_GOOD;
}

uint64_t gt_python_function(uintptr_t object, struct gt_python_text *file)
{
    enum { METHOD_FUNCTION = 16, BEGINNING = -1 };
    struct gt_python_code code;
    uintptr_t at;
    uint64_t pc;
    size_t size = gt_python.layout.function_code + sizeof at;
    if (gt_python_is_object(object, python.method_type, METHOD_FUNCTION + sizeof at))
        object = gt_python_word(object + METHOD_FUNCTION);
    if (!gt_python_is_object(object, python.function_type, size))
        return 0;
    at = gt_python_word(object + gt_python.layout.function_code);
    if (gt_python_read_code(at, &code) != GT_PYTHON_GOOD)
        return 0;
    *file = code.file;
    return gt_python_find_pc(at, BEGINNING, &pc) == GT_PYTHON_GOOD ? pc : 0;
}

/* Frames ------------------------------------------------------------------------------------- */

bool gt_python_is_made(uint64_t pc)
{
    return pc < GT_PYTHON_PCS && (pc < python.lo || pc >= python.hi) && !gt_modules_now(pc);
}

static uint32_t merge(uintptr_t thread, const uint64_t *pcs, const uintptr_t *sp, uint32_t n,
                      uint64_t *to, uint32_t max)
{
    if (python.is_initialized())
        return gt_python_put(thread, pcs, sp, n, to, max);
    uint32_t kept = n < max ? n : max;
    memcpy(to, pcs, kept * sizeof *to);
    return kept;
}

bool gt_python_find_innermost(uintptr_t thread, struct gt_python_innermost *found)
{
    enum { TAG = 7 }; /* the lowest bits of a local variable, from 3.14 on */
    const struct gt_python_layout *l = &gt_python.layout;
    struct gt_python_position c;
    struct gt_python_code code;
    found->layout = l;
    if (!python.is_initialized() || !gt_python_begin(thread, &c) || !c.frame ||
        !gt_python_can_read_frame(c.frame) ||
        gt_python_read_code(gt_python_code_of(c.frame), &code) != GT_PYTHON_GOOD)
        return false;
    found->function = code.name;
    found->file = code.file;
    if (!gt_python_read_word(c.frame + l->frame.locals, &found->local))
        return false;
    found->local &= ~(uintptr_t)TAG;
    return found->local;
}

/* The address of a code object is told from pcs, also from those of Python, by this. */
#define CODES (GT_PYTHON_PCS >> 1)

const void *gt_python_taker(const void *pc)
{
    struct gt_python_position c;
    bool known = gt_python_is_code(pc) && gt_python_runs && python.is_initialized() &&
                 gt_python_begin(gt_python_thread(), &c) && c.frame &&
                 gt_python_can_read_frame(c.frame);
    return known ? (const void *)(CODES | gt_python_code_of(c.frame)) : pc;
}

/*
 * Whether the frame executes the call at the end of a `with` block: its three arguments are None,
 * each from an instruction of its own.
 */
static bool leaves_block(uintptr_t frame)
{
    enum { BEFORE = 3 };
    uintptr_t code = gt_python_code_of(frame),
              at = gt_python_word(frame + gt_python.layout.frame.at);
    const uint16_t *loads = (const uint16_t *)at - BEFORE;
    if ((uintptr_t)loads < code + gt_python.layout.code.instructions || at % sizeof *loads ||
        !gt_python_can_read((uintptr_t)loads, (BEFORE + 1) * sizeof *loads))
        return false;
    return loads[0] == loads[1] && loads[1] == loads[2] && loads[2] != loads[BEFORE] &&
           loads[BEFORE] >> 8 == gt_python.layout.leaves;
}

static bool is_end_of_condition(uintptr_t frame)
{
    struct gt_python_code code;
    return gt_python_read_code(gt_python_code_of(frame), &code) == GT_PYTHON_GOOD &&
           gt_python_is_text(&code.name, "Condition.__exit__") &&
           gt_python_is_of_threading(&code.file);
}

const void *gt_python_leaver(void)
{
    struct gt_python_position c;
    if (!gt_python_runs || !gt_python.layout.leaves || !python.is_initialized() ||
        !gt_python_begin(gt_python_thread(), &c) || !c.frame || !gt_python_can_read_frame(c.frame))
        return NULL;
    if (is_end_of_condition(c.frame)) {
        c.frame = gt_python_word(c.frame + gt_python.layout.frame.previous);
        if (!c.frame || !gt_python_can_read_frame(c.frame) || gt_python_is_last(c.frame))
            return NULL;
    }
    return leaves_block(c.frame) ? (const void *)(CODES | gt_python_code_of(c.frame)) : NULL;
}

static uint64_t pc_of_taker(uint64_t taker)
{
    enum { BEGINNING = -1 };
    uint64_t pc;
    bool was = gt_python_of_other;
    gt_python_of_other = true; /* the function may have returned, and its code be gone */
    (void)gt_python_find_pc(taker - CODES, BEGINNING, &pc);
    gt_python_of_other = was;
    return pc;
}

/* Whether it is no function of the program, but of the interpreter or of Python's library. */
static bool serves(uint64_t pc)
{
    struct gt_sym_frame frame;
    return gt_python_is_code((void *)(uintptr_t)pc) ||
           (gt_python_name(pc, &frame) &&
            (strstr(frame.file, "/lib/python3") || strncmp(frame.file, "<frozen ", 8) == 0));
}

uint64_t gt_python_taker_pc(uint64_t taker, const uint64_t *pcs, uint32_t n)
{
    uint64_t pc = taker;
    if (taker >= GT_PYTHON_PCS) /* the GIL's: it is given up anywhere */
        return pc;
    if (taker >= CODES)
        pc = gt_python_runs && gt_python_has(pcs, n) ? pc_of_taker(taker) : 0;
    for (uint32_t i = 0; i < n && serves(pc); i++)
        pc = pcs[i] >= GT_PYTHON_PCS ? pcs[i] : pc;
    return pc;
}

uint32_t gt_python_merge(uintptr_t thread, const uint64_t *pcs, const uintptr_t *sp, uint32_t n,
                         uint64_t *to, uint32_t max)
{
    bool was = gt_python_of_other; /* a signal handler's walk may come in the middle */
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

void gt_python_each_block(uintptr_t thread, void (*fn)(void *arg, uintptr_t lock), void *arg)
{
    bool may = visit();
    gt_python_of_other = true;
    if (may && python.is_initialized())
        gt_python_pass_blocks(thread, fn, arg);
    gt_python_of_other = false;
    leave();
}
