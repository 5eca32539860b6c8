/*
 * Functions of Python in the stacks of a process or a core file. symbolize/python/python_frames.h
 * reads them, here from copied memory. Python's frames change while the process runs, so the chain
 * of a thread's frames is copied when its stack is. Code objects and texts do not change, and are
 * copied when the process runs on.
 */
#include "python_threads.h"

#include "visit.h"

#include "encoder/base/sort.h"
#include "encoder/read/need.h"
#include "symbolize/elf/elf_names.h"
#include "symbolize/elf/gnu_hash.h"
#include "symbolize/python/python.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    struct gt_still *still;
    const struct gt_still_thread *task; /* whose frames are read; NULL: those being copied */
    size_t later;                       /* pieces from there on were copied for all threads */
    uint64_t runtime;                   /* 0: there is no Python of a known version */
    struct state {
        uint64_t thread, at; /* its pthread_t, and Python's state of it */
    } * state;
    size_t states;
    struct wanted { /* a lock that a thread waits for; sorted by lock, then waiter */
        uint64_t lock;
        const struct gt_still_thread *waiter, *holder;
        bool several; /* holders */
    } * wanted;
    size_t wants;
} it;

/* What python_frames.h needs ------------------------------------------------------------------ */

static bool has(size_t piece, uintptr_t at, size_t size)
{
    const struct gt_memory_piece *p = &it.still->piece[piece];
    return at >= p->at && at - p->at < p->size && size <= p->size - (at - p->at);
}

/* In one of these pieces. A core file may have thousands: as a rule it is the last one again. */
static const void *find_in(size_t from, size_t to, uintptr_t at, size_t size)
{
    static size_t last;
    size_t i = last;
    if (i < from || i >= to || !has(i, at, size)) {
        for (i = to; i > from && !has(i - 1, at, size); i--)
            ;
        if (i-- == from)
            return NULL;
        last = i;
    }
    return it.still->piece[i].bytes + (at - it.still->piece[i].at);
}

/* NULL: the bytes cannot be read. */
static const void *look_at(uintptr_t at, size_t size)
{
    const uintptr_t page = 4096, begin = at & -page;
    size_t own = it.task ? it.task->piece : 0, n = it.task ? it.task->pieces : 0;
    const void *found = find_in(own, own + n, at, size);
    if (!found)
        found = find_in(it.later, it.still->pieces, at, size);
    if (found || it.still->core || at < page || size > UINTPTR_MAX - page - at)
        return found;
    size_t before = it.still->pieces;
    gt_copy(it.still, begin, ((at + size + page - 1) & -page) - begin);
    return find_in(before, it.still->pieces, at, size);
}

static bool gt_python_can_read(uintptr_t at, size_t size)
{
    return look_at(at, size) != NULL;
}

/* Not NULL: offsets that the process publishes may lead a word beyond what was asked for. */
static const void *gt_python_at(uintptr_t at, size_t size)
{
    static const uint64_t nothing;
    const void *found = look_at(at, size);
    return found ? found : &nothing;
}

#include "symbolize/python/with_blocks.h"

struct gt_python gt_python;

enum gt_python_seen gt_python_find_pc(uintptr_t code, int64_t at, uint64_t *pc)
{
    struct gt_python_code c;
    enum gt_python_seen seen = gt_python_read_code(code, &c);
    *pc = 0;
    if (seen == GT_PYTHON_GOOD)
        *pc = gt_python_pc(
            c.name, c.file,
            gt_python_line(gt_python.layout.lines, c.lines, c.line_bytes, c.first, at));
    return seen;
}

bool gt_python_is_made(uint64_t pc)
{
    const struct gt_mapping *m = gt_still_mapping(it.still, pc);
    return pc < GT_PYTHON_PCS && (!m || !*m->path);
}

/* Finding it ---------------------------------------------------------------------------------- */

/* The dynamic symbols of a module. A core file may leave out what is in the module's file. */
struct module {
    uint64_t bias;
    struct gt_gnu_hash names;
    const ElfW(Phdr) * ph;
    size_t phs;
    int file; /* -1: not needed */
};

static bool read_module(const struct module *m, uint64_t address, void *to, size_t size)
{
    if (gt_still_peek(it.still, m->bias + address, to, size))
        return true;
    for (size_t i = 0; m->file >= 0 && i < m->phs; i++) {
        const ElfW(Phdr) *ph = &m->ph[i];
        uint64_t in = address - ph->p_vaddr;
        if (ph->p_type == PT_LOAD && in < ph->p_filesz && size <= ph->p_filesz - in)
            return pread(m->file, to, size, (off_t)(ph->p_offset + in)) == (ssize_t)size;
    }
    return false;
}

static bool read_dynamic(struct module *m, const ElfW(Phdr) * ph)
{
    enum { ENTRIES_MAX = 1024 };
    ElfW(Dyn) d = {.d_tag = DT_NULL + 1};
    for (unsigned i = 0; d.d_tag != DT_NULL && i < ENTRIES_MAX; i++) {
        if (!read_module(m, ph->p_vaddr + i * sizeof d, &d, sizeof d))
            return false;
        uint64_t address = d.d_un.d_ptr - (d.d_un.d_ptr >= m->bias ? m->bias : 0);
        switch (d.d_tag) {
        case DT_SYMTAB: m->names.symbols = address; break;
        case DT_STRTAB: m->names.strings = address; break;
        case DT_GNU_HASH: m->names.table = address; break;
        }
    }
    return m->names.symbols && m->names.strings && m->names.table;
}

static const void *read_piece(const void *module, uintptr_t address, size_t size)
{
    static ElfW(Sym) piece; /* nothing larger is read */
    return read_module(module, address, &piece, size) ? &piece : NULL;
}

/* The module's definition of the name. False: it has none. */
static bool find_symbol(const struct module *m, const char *name, ElfW(Sym) * symbol)
{
    enum { CHAIN_MAX = 4096 };
    uint32_t hash = gt_elf_hash(name);
    uint32_t i = gt_gnu_find(&m->names, read_piece, m, name, hash, 0, CHAIN_MAX);
    return i && read_module(m, m->names.symbols + i * sizeof *symbol, symbol, sizeof *symbol) &&
           symbol->st_shndx != SHN_UNDEF;
}

static uintptr_t address_of(const struct module *m, const char *name)
{
    ElfW(Sym) symbol;
    return find_symbol(m, name, &symbol) ? m->bias + symbol.st_value : 0;
}

/* As PY_VERSION_HEX, exact to the minor number. Before 3.11 functions that are new in it tell. */
static uint32_t version(const struct module *m)
{
    ElfW(Sym) symbol;
    unsigned long number;
    if (find_symbol(m, "Py_Version", &symbol))
        return read_module(m, symbol.st_value, &number, sizeof number) ? (uint32_t)number : 0;
    return address_of(m, "PyIter_Send")       ? 0x030a0000
           : address_of(m, "PyFrame_GetBack") ? 0x03090000
                                              : 0;
}

static bool find(const struct module *m)
{
    enum { WORDS = 64 };
    uint64_t words[WORDS];
    ElfW(Sym) runtime, interpreter;
    if (!find_symbol(m, "_PyRuntime", &runtime) || runtime.st_size < sizeof words ||
        !read_module(m, runtime.st_value, words, sizeof words) ||
        !find_symbol(m, "_PyEval_EvalFrameDefault", &interpreter))
        return false;
    gt_python.code_type = address_of(m, "PyCode_Type");
    gt_python.text_type = address_of(m, "PyUnicode_Type");
    gt_python.bytes_type = address_of(m, "PyBytes_Type");
    gt_python.interpreter = m->bias + interpreter.st_value;
    gt_python.interpreter_size = interpreter.st_size;
    if (!gt_python_layout(version(m), words, &gt_python.layout))
        return false;
    it.runtime = m->bias + runtime.st_value;
    return true;
}

/* Whether the module, whose file begins at lo, has a Python of a known version. */
static bool find_at(uint64_t lo, const char *path)
{
    union {
        ElfW(Ehdr) eh;
        char bytes[4096];
    } head;
    struct module m = {.bias = lo, .file = -1};
    if (!gt_still_read(it.still, lo, &head, sizeof head) ||
        memcmp(head.eh.e_ident, ELFMAG, SELFMAG) != 0 || head.eh.e_phoff % sizeof(uint64_t) ||
        head.eh.e_phoff > sizeof head ||
        head.eh.e_phnum > (sizeof head - head.eh.e_phoff) / sizeof *m.ph)
        return false;
    m.ph = (const void *)(head.bytes + head.eh.e_phoff);
    m.phs = head.eh.e_phnum;
    if (path)
        m.file = open(path, O_RDONLY | O_CLOEXEC);
    bool found = false;
    for (size_t i = 0; i < m.phs; i++) {
        if (m.ph[i].p_type == PT_LOAD && m.ph[i].p_offset == 0)
            m.bias = lo - m.ph[i].p_vaddr;
    }
    for (size_t i = 0; i < m.phs && !found; i++)
        found = m.ph[i].p_type == PT_DYNAMIC && read_dynamic(&m, &m.ph[i]) && find(&m);
    if (m.file >= 0)
        close(m.file);
    return found;
}

/* Its threads --------------------------------------------------------------------------------- */

static uint64_t word_at(uint64_t at)
{
    uint64_t word;
    return gt_still_peek(it.still, at, &word, sizeof word) ? word : 0;
}

void gt_python_meet_threads(void)
{
    enum { INTERPRETERS_MAX = 256, STATES_MAX = 4096 };
    const struct gt_python_states *l = &gt_python.layout.states;
    uint64_t interpreter = it.runtime ? word_at(it.runtime + l->interpreters) : 0;
    it.states = 0;
    free(it.state);
    it.state = NULL;
    for (int i = 0; interpreter && i < INTERPRETERS_MAX; i++) {
        uint64_t state = word_at(interpreter + l->first);
        for (; state && it.states < STATES_MAX; state = word_at(state + l->next))
            *GT_ADD(it.state, it.states) = (struct state){word_at(state + l->thread), state};
        interpreter = word_at(interpreter + l->next_interpreter);
    }
}

void gt_python_open(struct gt_still *still)
{
    it.still = still;
    it.runtime = 0;
    for (size_t i = 0; i < still->mappings && !it.runtime; i++) {
        const struct gt_mapping *m = &still->mapping[i];
        if (m->offset == 0 && *m->path == '/')
            find_at(m->lo, NULL);
    }
    gt_python_meet_threads();
}

void gt_python_open_core(struct gt_still *still, const struct gt_loaded *loaded, size_t n)
{
    it.still = still;
    for (size_t i = 0; i < n && !it.runtime; i++)
        find_at(loaded[i].lo, loaded[i].path);
    gt_python_meet_threads();
}

/* Stacks -------------------------------------------------------------------------------------- */

/* Python's state of the thread that executes something; 0: there is none. Reads all its frames. */
static uint64_t find_state(const struct gt_still_thread *t)
{
    uint64_t thread = gt_registers_thread(&t->registers);
    for (size_t i = 0; thread && i < it.states; i++) {
        struct gt_python_position position;
        struct gt_python_call call;
        if (it.state[i].thread != thread || !gt_python_begin(it.state[i].at, &position) ||
            !position.frame)
            continue;
        while (gt_python_next_call(&position, &call))
            ;
        return it.state[i].at;
    }
    return 0;
}

void gt_python_copy(struct gt_still_thread *t)
{
    it.task = NULL;
    it.later = t->piece;
    t->python = it.states ? find_state(t) : 0;
}

GT_ORDER(compare, struct wanted, GT_UP(lock) ?: GT_UP(waiter))

/* The first wanted lock that is not before this one, of this waiter. Behind the last one: none. */
static size_t wanted_from(uint64_t lock, const struct gt_still_thread *waiter)
{
    const struct wanted wanted = {.lock = lock, .waiter = waiter};
    return GT_COUNT_FIRST(it.wants, i, compare(&it.wanted[i], &wanted) < 0);
}

/* Only the first waiter of each lock notes the lock's holder. NULL: no thread waits for it. */
static struct wanted *find_wanted(uint64_t lock)
{
    size_t i = wanted_from(lock, NULL);
    return i < it.wants && it.wanted[i].lock == lock ? &it.wanted[i] : NULL;
}

static bool waits_for(const struct gt_still_thread *t, uint64_t lock)
{
    size_t i = wanted_from(lock, t);
    return i < it.wants && it.wanted[i].lock == lock && it.wanted[i].waiter == t;
}

static void note_holder(void *thread, uintptr_t lock)
{
    const struct gt_still_thread *t = thread;
    struct wanted *w = find_wanted(lock);
    if (!w || waits_for(t, lock))
        return;
    w->several |= w->holder && w->holder != t;
    w->holder = t;
}

void gt_python_want(const struct gt_still_thread *waiter, uint64_t lock)
{
    *GT_ADD(it.wanted, it.wants) = (struct wanted){.lock = lock, .waiter = waiter};
}

void gt_python_find_holders(void)
{
    struct gt_still *s = it.still;
    if (!it.wants)
        return;
    size_t pieces = s->pieces;
    it.task = NULL;
    it.later = s->core ? 0 : pieces; /* as it is now */
    qsort(it.wanted, it.wants, sizeof *it.wanted, compare);
    for (size_t i = 0; i < it.wants; i++) {
        it.wanted[i].holder = NULL;
        it.wanted[i].several = false;
    }
    for (size_t i = 0; i < s->tasks; i++) {
        struct gt_still_thread *t = &s->task[i];
        if (t->python)
            gt_python_pass_blocks(t->python, note_holder, t);
        while (s->pieces > pieces) /* as much as one thread needs is enough */
            free((uint8_t *)s->piece[--s->pieces].bytes);
    }
}

const struct gt_still_thread *gt_python_holder(uint64_t lock)
{
    const struct wanted *w = find_wanted(lock);
    return w && !w->several ? w->holder : NULL;
}

void gt_python_begin_names(void)
{
    it.later = it.still && !it.still->core ? it.still->pieces : 0;
}

void gt_python_add_frames(struct gt_still_thread *t, size_t max)
{
    it.task = t;
    if (it.states && it.still->core)
        t->python = find_state(t);
    if (!t->python || !t->frames || !t->frame[0].sp)
        return;
    size_t room = max + 1; /* tells whether there are more */
    uint64_t *pcs = gt_need(calloc(t->frames + room, sizeof *pcs)), *merged = pcs + t->frames;
    uintptr_t *sp = gt_need(calloc(t->frames, sizeof *sp));
    for (size_t i = 0; i < t->frames; i++) {
        pcs[i] = t->frame[i].pc + 1;
        sp[i] = t->frame[i].sp;
    }
    size_t n = gt_python_put(t->python, pcs, sp, (uint32_t)t->frames, merged, (uint32_t)room);
    t->cut |= n > max;
    n = n > max ? max : n;
    t->frames = 0;
    free(t->frame);
    t->frame = NULL;
    for (size_t i = 0; i < n; i++)
        GT_ADD(t->frame, t->frames)->pc = merged[i] - 1;
    free(pcs);
    free(sp);
}
