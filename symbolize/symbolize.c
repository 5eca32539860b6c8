/* See symbolize.h. Each module gets a Dwfl of its own: addresses are reused over time. */
#include "symbolize.h"

#include "demangle.h"
#include "elfutils.h"
#include "modules.h"

#include "../encoder/arena.h"

#include <dwarf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#define NAMES_BYTES (64u << 10) /* of demangled names of one call */
#define INLINES_MAX 64

struct opened {
    struct opened *next;
    const struct gt_module *module;
    Dwfl *dwfl;
    Dwfl_Module *mod; /* NULL: no usable file */
};

struct gt_symbolizer {
    const struct gt_elfutils *dw;
    Dwfl_Callbacks callbacks;
    struct opened *opened;
    struct gt_arena arena;
    size_t used; /* of names */
    char names[NAMES_BYTES];
};

static char *debuginfo_path; /* NULL: elfutils' default, ".debug" beside and /usr/lib/debug */

struct gt_symbolizer *gt_symbolizer_new(void)
{
    struct gt_symbolizer *s = gt_pages_alloc(sizeof *s);
    if (!s)
        return NULL;
    s->dw = gt_elfutils_get();
    /* Only in a private libc has DEBUGINFOD_URLS been cleared; the build-id search alone never
     * asks a server. */
    s->callbacks = (Dwfl_Callbacks){
        .find_debuginfo = s->dw->private_libc ? s->dw->dwfl_standard_find_debuginfo
                                              : s->dw->dwfl_build_id_find_debuginfo,
        .section_address = s->dw->dwfl_offline_section_address,
        .debuginfo_path = &debuginfo_path,
    };
    return s;
}

void gt_symbolizer_free(struct gt_symbolizer *s)
{
    for (struct opened *o = s->opened; o; o = o->next) {
        if (o->dwfl)
            s->dw->dwfl_end(o->dwfl);
    }
    gt_pages_free(s, sizeof *s);
}

/* Modules ------------------------------------------------------------------------------------ */

/* The vDSO has no file: its image, which lies in memory, as one. The mapping is its upper bound. */
static int vdso_fd(const struct gt_module *m)
{
    int fd = memfd_create("vdso", MFD_CLOEXEC);
    size_t size = m->hi - m->lo;
    if (fd >= 0 && write(fd, (const void *)(uintptr_t)m->lo, size) != (ssize_t)size) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* The file at the path may have been replaced since it was loaded. */
static bool same_build(struct gt_symbolizer *s, Dwfl_Module *mod, const struct gt_module *m)
{
    const unsigned char *id;
    GElf_Addr addr;
    int len = s->dw->dwfl_module_build_id(mod, &id, &addr);
    if (m->build_id_len == 0)
        return len <= 0;
    return len == m->build_id_len && memcmp(id, m->build_id, (size_t)len) == 0;
}

static void open_module(struct gt_symbolizer *s, struct opened *o)
{
    const struct gt_module *m = o->module;
    bool vdso = strcmp(m->path, "[vdso]") == 0;
    int fd = vdso ? vdso_fd(m) : open(m->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || !s->dw->loaded || !(o->dwfl = s->dw->dwfl_begin(&s->callbacks))) {
        if (fd >= 0)
            close(fd);
        return;
    }
    s->dw->dwfl_report_begin(o->dwfl);
    o->mod = s->dw->dwfl_report_elf(o->dwfl, m->path, m->path, fd, m->bias, true);
    if (!o->mod)
        close(fd); /* else it belongs to the Dwfl */
    s->dw->dwfl_report_end(o->dwfl, NULL, NULL);
    if (o->mod && !same_build(s, o->mod, m))
        o->mod = NULL;
}

static struct opened *opened_module(struct gt_symbolizer *s, const struct gt_module *m)
{
    struct opened *o = s->opened;
    while (o && o->module != m)
        o = o->next;
    if (o)
        return o;
    o = gt_arena_alloc(&s->arena, sizeof *o);
    if (!o)
        return NULL;
    o->module = m;
    o->next = s->opened;
    s->opened = o;
    open_module(s, o);
    return o;
}

/* Names -------------------------------------------------------------------------------------- */

static const char *keep(struct gt_symbolizer *s, const char *text)
{
    size_t n = strlen(text) + 1;
    if (s->used + n > sizeof s->names)
        return "?";
    char *copy = memcpy(s->names + s->used, text, n);
    s->used += n;
    return copy;
}

static const char *readable(struct gt_symbolizer *s, const char *symbol)
{
    char buf[2048];
    const char *name = gt_demangle(symbol, buf, sizeof buf);
    return name == symbol ? symbol : keep(s, name);
}

static const char *offset_name(struct gt_symbolizer *s, const struct gt_module *m, uint64_t pc)
{
    char buf[512];
    const char *base = strrchr(m->path, '/');
    snprintf(buf, sizeof buf, "%s+0x%llx", base ? base + 1 : m->path,
             (unsigned long long)(pc - m->bias));
    return keep(s, buf);
}

static const char *attribute_text(const struct gt_elfutils *dw, Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    return dw->dwarf_formstring(dw->dwarf_attr_integrate(die, name, &attribute));
}

/* C++ and Rust functions have a linkage name, whose demangling is the qualified name. */
static const char *die_name(struct gt_symbolizer *s, Dwarf_Die *die)
{
    const char *linkage = attribute_text(s->dw, die, DW_AT_linkage_name);
    if (!linkage)
        linkage = attribute_text(s->dw, die, DW_AT_MIPS_linkage_name);
    return linkage ? readable(s, linkage) : s->dw->dwarf_diename(die);
}

/* DWARF -------------------------------------------------------------------------------------- */

struct chain {
    Dwarf_Die die[INLINES_MAX]; /* the function, then what is inlined in it at the address */
    int n;
};

/* Follows the function and inlined instances that contain pc down from die. */
static void descend(const struct gt_elfutils *dw, Dwarf_Die *die, Dwarf_Addr pc,
                    struct chain *chain, int depth)
{
    Dwarf_Die child;
    if (depth > 256 || dw->dwarf_child(die, &child) != 0)
        return;
    do {
        bool function = false;
        switch (dw->dwarf_tag(&child)) {
        case DW_TAG_subprogram:
        case DW_TAG_inlined_subroutine:
            function = true;
            /* fall through */
        case DW_TAG_lexical_block:
            if (dw->dwarf_haspc(&child, pc) <= 0)
                break;
            if (function && chain->n < INLINES_MAX)
                chain->die[chain->n++] = child;
            descend(dw, &child, pc, chain, depth + 1);
            return;
        case DW_TAG_namespace:
        case DW_TAG_structure_type:
        case DW_TAG_class_type:
        case DW_TAG_module: {
            int before = chain->n;
            descend(dw, &child, pc, chain, depth + 1);
            if (chain->n > before)
                return;
            break;
        }
        default: break;
        }
    } while (dw->dwarf_siblingof(&child, &child) == 0);
}

static uint32_t number(const struct gt_elfutils *dw, Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0;
    if (dw->dwarf_formudata(dw->dwarf_attr(die, name, &attribute), &value) != 0)
        return 0;
    return (uint32_t)value;
}

static const char *call_file(const struct gt_elfutils *dw, Dwarf_Die *cu, Dwarf_Die *inlined)
{
    Dwarf_Files *files;
    size_t n;
    uint32_t index = number(dw, inlined, DW_AT_call_file);
    if (dw->dwarf_getsrcfiles(cu, &files, &n) != 0 || index >= n)
        return NULL;
    return dw->dwarf_filesrc(files, index, NULL, NULL);
}

/* Frames from debug information, innermost first; 0 when there is none for the address. */
static int from_dwarf(struct gt_symbolizer *s, Dwfl_Module *mod, uint64_t pc,
                      struct gt_sym_frame *out, int max)
{
    const struct gt_elfutils *dw = s->dw;
    Dwarf_Addr bias;
    Dwarf_Die *cu = dw->dwfl_module_addrdie(mod, pc, &bias);
    if (!cu)
        return 0;
    struct chain chain = {.n = 0};
    descend(dw, cu, pc - bias, &chain, 0);
    Dwarf_Line *at = dw->dwarf_getsrc_die(cu, pc - bias);
    int line = 0;
    const char *file = at ? dw->dwarf_linesrc(at, NULL, NULL) : NULL;
    if (at)
        dw->dwarf_lineno(at, &line);
    int n = 0;
    for (int i = chain.n - 1; i >= 0 && n < max; i--) {
        out[n++] = (struct gt_sym_frame){die_name(s, &chain.die[i]), file, (uint32_t)line};
        file = call_file(dw, cu, &chain.die[i]); /* the next one out stands at the call */
        line = (int)number(dw, &chain.die[i], DW_AT_call_line);
    }
    if (n == 0 && file) /* assembly: lines without functions */
        out[n++] = (struct gt_sym_frame){NULL, file, (uint32_t)line};
    return n;
}

static const char *symbol_at(struct gt_symbolizer *s, Dwfl_Module *mod, uint64_t pc)
{
    GElf_Off offset;
    GElf_Sym sym;
    return s->dw->dwfl_module_addrinfo(mod, pc, &offset, &sym, NULL, NULL, NULL);
}

/* Methods of local classes and lambdas have no linkage name in DWARF, just their last component. */
static bool says_more(const char *symbol, const char *name)
{
    bool mangled = strncmp(symbol, "_Z", 2) == 0 || strncmp(symbol, "_R", 2) == 0;
    return mangled && !strchr(name, ':') && !strchr(name, '(');
}

static int symbolize_in(struct gt_symbolizer *s, const struct gt_module *m, uint64_t pc,
                        struct gt_sym_frame *out, int max)
{
    struct opened *o = opened_module(s, m);
    Dwfl_Module *mod = o ? o->mod : NULL;
    int n = mod ? from_dwarf(s, mod, pc, out, max) : 0;
    if (n == 0)
        out[n++] = (struct gt_sym_frame){NULL, NULL, 0};
    const char *symbol = mod ? symbol_at(s, mod, pc) : NULL;
    if (symbol && (!out[n - 1].func || says_more(symbol, out[n - 1].func)))
        out[n - 1].func = readable(s, symbol);
    for (int i = 0; i < n; i++) {
        if (!out[i].func)
            out[i].func = offset_name(s, m, pc);
        if (!out[i].file)
            out[i].file = m->path;
    }
    return n;
}

int gt_symbolize(struct gt_symbolizer *s, uint64_t epoch, uint64_t pc, bool is_call,
                 struct gt_sym_frame *out, int max)
{
    s->used = 0;
    uint64_t at = pc - (is_call && pc);
    const struct gt_module *m = gt_modules_find(epoch, at);
    if (m)
        return symbolize_in(s, m, at, out, max);
    char buf[32];
    snprintf(buf, sizeof buf, "0x%llx", (unsigned long long)pc);
    out[0] = (struct gt_sym_frame){keep(s, buf), "", 0};
    return 1;
}
