/*
 * See symbolize.h. Each module has tables of its own, keyed by its record in the module map: other
 * modules may have been at the same addresses at other times.
 */
#include "symbolize.h"

#include "symbolize/elf/files.h"
#include "symbolize/elf/modules.h"
#include "symbolize/dwarf/die_names.h"
#include "symbolize/elf/symbols.h"

#include "encoder/base/arena.h"
#include "encoder/base/path.h"
#include "encoder/base/sparse.h"
#include "encoder/base/strbuf.h"

enum { CHAIN_MAX = 64 }; /* functions inlined into each other at one address */
enum { RECENT_FIRST = 1 << 20, PAGE = 4096 };

struct answer {
    int n;
    struct gt_sym_frame frame[];
};

/* An opened module. */
struct opened {
    struct opened *next;
    const struct gt_module *module;
    struct gt_files files;
    struct gt_packed_sections packed, packed_alt;
    struct gt_image *debug; /* an image with DWARF that is not opened yet; else NULL */
    Elf *elf[2];            /* of dwarf and of alt */
    Dwarf *dwarf, *alt;
    struct gt_units units;
    struct gt_line_reader line_reader;
    struct gt_symbols symbols, variables; /* variables: read on first use */
    struct gt_memo answers;               /* frames, by address */
    struct gt_arena recent; /* of answers and of the units' walks: see forget_recent */
    size_t room;            /* bytes of `recent` beyond which it is forgotten */
    struct gt_memo which;   /* results of find_which, by address */
};

struct gt_symbolizer {
    uint32_t generation; /* gt_elfutils_generation() */
    bool holds;          /* the files may be out of reach: see gt_symbolize_hold */
    struct opened *opened;
    struct gt_arena arena;
    struct gt_names names;
    struct gt_sym_frame frames[CHAIN_MAX];
    char nameless[32];
};

/* The symbolizer without memory: knows no names and keeps nothing. */
static struct gt_symbolizer poor GT_SPARSE;

struct gt_symbolizer *gt_symbolizer_new(void)
{
    struct gt_symbolizer *s = gt_pages_alloc(sizeof *s);
    if (!s)
        return &poor;
    s->names.arena = &s->arena;
    s->generation = gt_elfutils_generation();
    return s;
}

void gt_symbolize_prepare(void)
{
    jmp_buf bail;
    if (setjmp(bail) == 0) {
        gt_elfutils_enter(&bail);
        gt_elfutils_get();
    } else
        gt_elfutils_give_up();
    gt_elfutils_leave();
}

static void close_module(struct opened *o)
{
    const struct gt_elfutils *dw = o->elf[0] ? gt_elfutils_get() : NULL;
    if (dw) {
        gt_line_reader_close(&o->line_reader);
        gt_units_free(&o->units);
        if (o->dwarf)
            dw->dwarf_end(o->dwarf);
        if (o->alt)
            dw->dwarf_end(o->alt);
        for (int i = 0; i < 2; i++)
            dw->elf_end(o->elf[i]);
    }
    gt_packed_close(&o->packed);
    gt_packed_close(&o->packed_alt);
    gt_symbols_free(&o->symbols);
    gt_symbols_free(&o->variables);
    gt_memo_free(&o->answers);
    gt_arena_free(&o->recent);
    gt_memo_free(&o->which);
    gt_files_close(&o->files);
}

/* Drops all results of elfutils after a fork has interrupted it. Their memory is lost. */
static void start_over(struct gt_symbolizer *s)
{
    s->opened = NULL;
    s->names.memo = (struct gt_memo){0};
    s->arena = (struct gt_arena){.chunk = NULL};
    s->generation = gt_elfutils_generation();
}

static void enter(struct gt_symbolizer *s, jmp_buf *bail)
{
    gt_elfutils_enter(bail);
    if (gt_elfutils_generation() != s->generation)
        start_over(s);
}

/* Closes all modules. Between gt_elfutils_enter and gt_elfutils_leave. */
static void close_all(struct gt_symbolizer *s)
{
    while (s->opened) {
        struct opened *o = s->opened;
        s->opened = o->next;
        close_module(o);
    }
    gt_memo_free(&s->names.memo);
    gt_arena_free(&s->arena);
}

void gt_symbolizer_free(struct gt_symbolizer *s)
{
    jmp_buf bail;
    if (s == &poor)
        return;
    if (setjmp(bail) == 0 && s->opened) {
        enter(s, &bail);
        close_all(s);
    }
    gt_elfutils_leave();
    gt_memo_free(&s->names.memo);
    gt_arena_free(&s->arena);
    gt_pages_free(s, sizeof *s);
}

/* Modules ------------------------------------------------------------------------------------ */

static Dwarf *open_dwarf(const struct gt_elfutils *dw, const struct gt_image *image, Elf **elf)
{
    *elf = image->base ? dw->elf_memory(image->base, image->size) : NULL;
    return *elf ? dw->dwarf_begin_elf(*elf, DWARF_C_READ, NULL) : NULL;
}

/* A section as libdw sees it, uncompressed. packed: the name of compressed sections before 2012. */
static struct gt_dwarf_section contents(const struct gt_elfutils *dw, Elf *elf,
                                        const struct gt_image *image, const char *name,
                                        const char *packed)
{
    size_t index = gt_image_index(image, name);
    index = index ? index : gt_image_index(image, packed);
    const Elf_Data *data = index ? dw->elf_getdata(dw->elf_getscn(elf, index), NULL) : NULL;
    return data ? (struct gt_dwarf_section){data->d_buf, data->d_size}
                : (struct gt_dwarf_section){0};
}

/* Opens a module's DWARF, on first use. Most stacks are in libc only at their root, which needs no
 * DWARF: see is_root. */
static void open_units(struct gt_symbolizer *s, const struct gt_elfutils *dw, struct opened *o)
{
    const struct gt_image *image = o->debug;
    o->debug = NULL;
    if (!gt_packed_need_from(&o->packed, GT_PACKED_REST) ||
        !gt_packed_need_from(&o->packed_alt, GT_PACKED_INFO))
        return;
    const ElfW(Shdr) *sh = gt_image_header(image, ".debug_aranges");
    bool readable = sh && !(sh->sh_flags & SHF_COMPRESSED);
    o->dwarf = open_dwarf(dw, image, &o->elf[0]);
    if (!o->dwarf)
        return;
    o->alt = open_dwarf(dw, &o->files.alt, &o->elf[1]);
    dw->dwarf_setalt(o->dwarf, o->alt);
    o->units = (struct gt_units){
        .dw = dw,
        .dwarf = o->dwarf,
        .packed = &o->packed,
        .image = {image, &o->files.alt},
        .arena = &s->arena,
        .walks = &o->recent,
        .info = contents(dw, o->elf[0], image, ".debug_info", ".zdebug_info"),
        .abbrev = contents(dw, o->elf[0], image, ".debug_abbrev", ".zdebug_abbrev"),
        .base = o->module->lo - o->module->bias,
        .limit = o->module->hi - o->module->bias};
    gt_units_init(&o->units, readable ? image->base + sh->sh_offset : NULL,
                  readable ? sh->sh_size : 0);
    o->line_reader = (struct gt_line_reader){
        .units = &o->units, .elf = o->elf[0], .alt = o->alt, .dwarf = o->dwarf};
}

static struct gt_symbols symbols_of(const struct opened *o, enum gt_symbols_of which)
{
    const struct gt_module *m = o->module;
    struct gt_symbols symbols = {.which = which, .lo = m->lo - m->bias, .hi = m->hi - m->bias};
    gt_symbols_add(&symbols, &o->files.main);
    gt_symbols_add(&symbols, &o->files.debug);
    gt_symbols_add(&symbols, &o->files.mini);
    return symbols;
}

static void open_module(struct opened *o)
{
    gt_files_open(&o->files, o->module);
    struct gt_image *dwarf = gt_files_dwarf(&o->files);
    /* Before any pointer into the images exists: both may move. */
    if (dwarf && gt_packed_open(&o->packed, dwarf) && gt_packed_open(&o->packed_alt, &o->files.alt))
        o->debug = dwarf;
    o->symbols = symbols_of(o, GT_FUNCTIONS);
    o->room = RECENT_FIRST;
}

/*
 * Whether a program keeps loading new modules and unloading them again. The memory for names is
 * shared by all modules and cannot be freed for a single one. So the caller then closes all modules
 * and opens those that are in use again.
 */
static bool too_many_gone(const struct gt_symbolizer *s)
{
    enum { GONE_MAX = 8 };
    int gone = 0;
    for (const struct opened *o = s->opened; o; o = o->next)
        gone += __atomic_load_n(&o->module->unloaded, __ATOMIC_RELAXED) != UINT64_MAX;
    return gone > GONE_MAX;
}

/* Opens a module's files again after a mapped one has changed: reading behind the end of a
 * truncated file would end the program by SIGBUS. */
static void open_again(struct opened *o)
{
    close_module(o);
    *o = (struct opened){.next = o->next, .module = o->module};
    open_module(o);
}

static struct opened *opened_module(struct gt_symbolizer *s, const struct gt_module *m)
{
    struct opened *o = s->opened;
    while (o && o->module != m)
        o = o->next;
    if (o && gt_files_have_changed(&o->files))
        open_again(o);
    if (o)
        return o;
    if (!s->holds && too_many_gone(s))
        close_all(s);
    o = gt_arena_alloc(&s->arena, sizeof *o);
    if (!o)
        return NULL;
    o->module = m;
    o->next = s->opened;
    s->opened = o;
    open_module(o);
    return o;
}

/* One address -------------------------------------------------------------------------------- */

static uint32_t number(const struct gt_elfutils *dw, Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0;
    if (dw->dwarf_formudata(dw->dwarf_attr(die, name, &attribute), &value) != 0)
        return 0;
    return value <= UINT32_MAX ? (uint32_t)value : 0;
}

/* The source file and line of the code at addr. */
static struct gt_sym_frame place(struct opened *o, struct gt_unit *unit, uint64_t addr)
{
    if (!unit->lines.read)
        gt_lines_read(&unit->lines, &o->line_reader, unit->die);
    const struct gt_line *at = gt_lines_find(&unit->lines, o->units.base, addr);
    if (!at)
        return (struct gt_sym_frame){0};
    return (struct gt_sym_frame){NULL, gt_lines_file(&unit->lines, at->file), at->line};
}

/*
 * Keeps the program small that looks up its own names: what was found lately in a module is
 * forgotten once it takes more than its room. A program that comes back to units that were
 * forgotten gets twice the room, so that no program walks its units much more than twice.
 */
static void forget_recent(struct gt_symbolizer *s, struct opened *o)
{
    if (gt_arena_bytes(&o->recent) <= o->room)
        return;
    o->room *= o->units.again ? 2 : 1;
    gt_units_forget(&o->units);
    gt_memo_free(&o->answers);
    gt_arena_free(&o->recent);
    gt_memo_free(&s->names.memo);
}

/* Frames from debug information, innermost first; 0 when there is none for the address. */
static int from_dwarf(struct gt_symbolizer *s, const struct gt_elfutils *dw, struct opened *o,
                      uint64_t addr, bool *linked)
{
    if (o->debug)
        open_units(s, dw, o);
    struct gt_unit *unit = o->dwarf ? gt_units_find(&o->units, addr) : NULL;
    Dwarf_Die die;
    int n = 0;
    if (!unit)
        return 0;
    if (!unit->walked)
        forget_recent(s, o);
    struct gt_found node = gt_units_node(&o->units, unit, addr);
    struct gt_sym_frame f = place(o, unit, addr);
    *linked = !unit->qualifies; /* in C, names are symbols */
    for (; node.in; node = gt_node_around(node)) {
        n -= n == CHAIN_MAX; /* keep the outermost frame */
        if (!dw->dwarf_offdie(o->dwarf, unit->start + node.in->node[node.id].offset, &die))
            break;
        gt_units_touch(&o->units, PAGE);
        f.func = gt_names_of_die(&s->names, &o->units, &die, linked);
        *linked |= !unit->qualifies;
        s->frames[n++] = f;
        /* The next outer frame stands at the call. */
        f = (struct gt_sym_frame){NULL,
                                  gt_lines_file(&unit->lines, number(dw, &die, DW_AT_call_file)),
                                  number(dw, &die, DW_AT_call_line)};
    }
    if (n == 0 && f.file) /* assembly: lines without functions */
        s->frames[n++] = f;
    return n;
}

static const char *offset_name(struct gt_symbolizer *s, const struct gt_module *m, uint64_t addr)
{
    char buf[512];
    struct gt_strbuf t = gt_strbuf_start(buf, sizeof buf);
    gt_strbuf_add(&t, gt_path_name(gt_module_name(m)));
    gt_strbuf_add(&t, "+0x");
    gt_strbuf_hex(&t, addr);
    return gt_arena_text(&s->arena, buf);
}

static bool is_mangled(const char *symbol)
{
    return strncmp(symbol, "_Z", 2) == 0 || strncmp(symbol, "_R", 2) == 0;
}

/* Whether `symbol` is the public form of `name`. libc's sources say ___pthread_mutex_lock and
 * __GI_qsort; people do not. */
static bool is_public_name(const char *symbol, const char *name)
{
    size_t len = strlen(symbol), whole = strlen(name);
    return *name == '_' && *symbol != '_' && whole > len && strcmp(name + whole - len, symbol) == 0;
}

/*
 * Whether the function is one in which libc calls a thread's routine, its last destructors, or
 * main. Every stack ends in such a function. Its line is of no use, and finding it means to unpack
 * much of libc's debug information.
 */
static bool is_root(const struct gt_module *m, const char *symbol)
{
    static const char *const roots[] = {"start_thread",
                                        "clone3",
                                        "__clone3",
                                        "__GI___clone3",
                                        "clone",
                                        "__clone",
                                        "__libc_start_call_main",
                                        "__libc_start_main",
                                        "__libc_start_main_impl",
                                        "__nptl_deallocate_tsd",
                                        "__GI___nptl_deallocate_tsd"};
    const char *base = strrchr(m->path, '/');
    if (!symbol || !base || strncmp(base, "/libc.so", 8) != 0)
        return false;
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
        if (strcmp(symbol, roots[i]) == 0)
            return true;
    }
    return false;
}

/* Fills s->frames. Returns their number. */
static int look_up(struct gt_symbolizer *s, struct opened *o, uint64_t addr)
{
    bool linked = false;
    /* Local functions and methods of local classes have no linkage name, but a mangled symbol. */
    struct gt_symbol found;
    const char *symbol = gt_symbols_find(&o->symbols, addr, &found) ? found.name : NULL;
    bool begins = symbol && found.addr == addr;
    bool asks = (o->debug || o->dwarf) && !is_root(o->module, symbol);
    const struct gt_elfutils *dw = asks ? gt_elfutils_get() : NULL;
    int n = dw ? from_dwarf(s, dw, o, addr, &linked) : 0;
    if (n == 0)
        s->frames[n++] = (struct gt_sym_frame){0};
    if (begins && n > 1) { /* the address of a thread's routine, or of none of the inlined ones */
        s->frames[0] = s->frames[n - 1];
        n = 1;
    }
    struct gt_sym_frame *outer = &s->frames[n - 1];
    if (symbol &&
        (!outer->func || (!linked && is_mangled(symbol)) || is_public_name(symbol, outer->func)))
        outer->func = gt_names_of_symbol(&s->names, symbol);
    for (int i = 0; i < n; i++) {
        if (!s->frames[i].func)
            s->frames[i].func = offset_name(s, o->module, addr);
        if (!s->frames[i].file)
            s->frames[i].file = gt_module_name(o->module);
    }
    return n;
}

static int copy_out(const struct gt_sym_frame *from, int n, struct gt_sym_frame *out, int max)
{
    max = n < max ? n : max;
    memcpy(out, from, (size_t)(max - 1) * sizeof *out);
    out[max - 1] = from[n - 1];
    return max;
}

static int answer_in(struct gt_symbolizer *s, const struct gt_module *m, uint64_t pc,
                     struct gt_sym_frame *out, int max)
{
    struct opened *o = opened_module(s, m);
    if (!o) {
        out[0] = (struct gt_sym_frame){"?", gt_module_name(m), 0};
        return 1;
    }
    uint64_t at = gt_memo_find(&o->answers, pc), *slot;
    const struct answer *known = (const struct answer *)(uintptr_t)at;
    if (known)
        return copy_out(known->frame, known->n, out, max);
    int n = look_up(s, o, pc - m->bias);
    struct answer *fresh =
        gt_arena_alloc(&o->recent, sizeof *fresh + (size_t)n * sizeof *s->frames);
    if (fresh && (slot = gt_memo_at(&o->answers, pc))) {
        fresh->n = n;
        memcpy(fresh->frame, s->frames, (size_t)n * sizeof *s->frames);
        *slot = (uint64_t)(uintptr_t)fresh;
    }
    return copy_out(s->frames, n, out, max);
}

/* Names an address outside all modules, mostly of generated code. */
static int nameless(struct gt_symbolizer *s, uint64_t pc, struct gt_sym_frame *out)
{
    struct gt_strbuf t = gt_strbuf_start(s->nameless, sizeof s->nameless);
    gt_strbuf_add(&t, "0x");
    gt_strbuf_hex(&t, pc);
    out[0] = (struct gt_sym_frame){s->nameless, "", 0};
    return 1;
}

int gt_symbolize(struct gt_symbolizer *s, uint64_t epoch, uint64_t pc, bool is_call,
                 struct gt_sym_frame *out, int max)
{
    jmp_buf bail;
    uint64_t at = pc - (is_call && pc);
    const struct gt_module *m = gt_modules_find(epoch, at);
    if (s == &poor) {
        out[0] = (struct gt_sym_frame){"?", m ? gt_module_name(m) : "", 0};
        return 1;
    }
    /* libdw failed an assertion on damaged data: answer with the symbol, or the offset. */
    if (setjmp(bail) != 0)
        gt_elfutils_give_up();
    enter(s, &bail);
    int n = m ? answer_in(s, m, at, out, max) : nameless(s, pc, out);
    gt_elfutils_leave();
    return n;
}

/* Appends the source of a variable that is one of several of its name in a module. If the source is
 * not unique, appends the variable's ELF address. */
static void add_source(struct gt_strbuf *t, const struct opened *o, const struct gt_symbol *v)
{
    const struct gt_image *images[] = {&o->files.main, &o->files.debug};
    const char *source = NULL;
    for (int i = 0; i < 2 && !source; i++)
        source = gt_symbols_source(images[i], v);
    gt_strbuf_add(t, source ? source : "0x");
    if (!source)
        gt_strbuf_hex(t, v->addr);
}

static const char *find_which(struct gt_symbolizer *s, struct opened *o, const struct gt_symbol *v)
{
    char text[256];
    struct gt_strbuf t = gt_strbuf_start(text, sizeof text);
    bool librarys = v->local && !o->module->is_program;
    uint64_t *slot = v->shared || librarys ? gt_memo_at(&o->which, v->addr) : NULL;
    if (!slot || *slot)
        return slot ? (const char *)(uintptr_t)*slot : "";
    if (librarys)
        gt_strbuf_add(&t, gt_path_name(gt_module_name(o->module)));
    if (librarys && v->shared)
        gt_strbuf_add(&t, ": ");
    if (v->shared)
        add_source(&t, o, v);
    char *kept = gt_arena_alloc(&s->arena, strlen(text) + 1);
    *slot = (uint64_t)(uintptr_t)kept;
    return kept ? strcpy(kept, text) : "";
}

static const char *variable_in(struct gt_symbolizer *s, const struct gt_module *m, uint64_t address,
                               uint64_t *offset, const char **which)
{
    struct opened *o = opened_module(s, m);
    if (o && !o->variables.sorted) {
        o->variables = symbols_of(o, GT_VARIABLES);
        gt_symbols_find_shared(&o->variables);
    }
    struct gt_symbol v;
    bool found = o && gt_symbols_find(&o->variables, address - m->bias, &v);
    *offset = found ? address - m->bias - v.addr : 0;
    *which = found ? find_which(s, o, &v) : "";
    return found ? gt_names_of_symbol(&s->names, v.name) : NULL;
}

const char *gt_symbolize_variable(struct gt_symbolizer *s, uint64_t epoch, uint64_t address,
                                  uint64_t *offset, const char **which)
{
    jmp_buf bail;
    const struct gt_module *m = gt_modules_find(epoch, address);
    if (s == &poor || !m)
        return NULL;
    if (setjmp(bail) != 0)
        gt_elfutils_give_up();
    enter(s, &bail);
    const char *name = variable_in(s, m, address, offset, which);
    gt_elfutils_leave();
    return name;
}

static bool is_found(const struct gt_image *image, bool debug)
{
    return image->base && (image->has_dwarf || !debug);
}

bool gt_symbolize_has_files(struct gt_symbolizer *s, uint64_t epoch, uint64_t address, bool debug)
{
    jmp_buf bail;
    const struct gt_module *m = gt_modules_find(epoch, address);
    if (s == &poor || !m)
        return false;
    if (setjmp(bail) != 0)
        gt_elfutils_give_up();
    enter(s, &bail);
    const struct opened *o = opened_module(s, m);
    bool has = o && (is_found(&o->files.main, debug) || is_found(&o->files.debug, debug));
    gt_elfutils_leave();
    return has;
}

static void hold(struct gt_symbolizer *s, const struct gt_module *m)
{
    struct opened *o = opened_module(s, m);
    if (!o)
        return;
    gt_packed_hold(&o->packed);
    gt_packed_hold(&o->packed_alt);
}

void gt_symbolize_hold(struct gt_symbolizer *s)
{
    uint64_t epoch = gt_modules_refresh();
    s->holds = s != &poor;
    for (const struct gt_module *m = gt_modules_last(); m && s != &poor; m = m->next) {
        jmp_buf bail;
        if (gt_modules_find(epoch, m->lo) != m)
            continue;
        if (setjmp(bail) == 0) {
            enter(s, &bail);
            gt_elfutils_get(); /* load it while files can be opened */
            hold(s, m);
        } else
            gt_elfutils_give_up();
        gt_elfutils_leave();
    }
}
