/* See foreign.h. */
#include "foreign.h"

#include "elf_bind.h"

#include "encoder/base/arena.h"
#include "encoder/base/push.h"
#include "encoder/base/sparse.h"
#include "symbolize/elf/elf_names.h"

#include <string.h>

static const char *const of_gomp[] = {
#define GT_OMP(how, result, name, parameters, arguments) #name,
#define GT_OMP_ASKED(result, name, parameters) #name,
#define GT_OMP_LEAF(id, text)
#include "preload/tables/openmp.def"
};

static const char *const of_uring[] = {
#define GT_URING(result, name, parameters, arguments) #name,
#define GT_AIO(result, name, parameters, arguments)
#include "preload/tables/async.def"
};

static const char *const of_aio[] = {
#define GT_URING(result, name, parameters, arguments)
#define GT_AIO(result, name, parameters, arguments) #name,
#include "preload/tables/async.def"
};

static const char *const of_resolver[] = {
#define GT_RESOLVER(result, name, parameters, arguments) #name,
#include "preload/tables/resolver.def"
};

#define LENGTH(array) (sizeof(array) / sizeof *(array))
_Static_assert(LENGTH(of_gomp) < GT_FOREIGN_NAMES_MAX, "room for the mark, too");

struct gt_foreign gt_gomp = {of_gomp, LENGTH(of_gomp), .mark = "__kmpc_fork_call"};
struct gt_foreign gt_uring = {of_uring, LENGTH(of_uring)};
struct gt_foreign gt_aio = {of_aio, LENGTH(of_aio)};
struct gt_foreign gt_resolver = {of_resolver, LENGTH(of_resolver)};

static struct gt_foreign *const libraries[] = {&gt_gomp, &gt_uring, &gt_aio, &gt_resolver};
enum { LIBRARIES = LENGTH(libraries) };

static struct gt_arena arena;
static const ElfW(Dyn) * last_at_start; /* of the modules loaded when the program began */

/* Loaded modules, in that order ---------------------------------------------------------------- */

enum { MODULES = 1024 };

struct module {
    struct link_map map; /* address, name, dynamic section; the rest is not set */
    uint64_t lo, hi;
    bool queued;
};

struct modules {
    size_t n;
    struct module *module;
};

static int note(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    struct modules *ms = arg;
    struct module m = {.map.l_addr = info->dlpi_addr, .map.l_name = (char *)info->dlpi_name};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            m.map.l_ld = (void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    }
    gt_elf_span(info, &m.lo, &m.hi);
    if (m.map.l_ld && ms->n < MODULES)
        ms->module[ms->n++] = m;
    return 0;
}

static struct module *module_of(const struct modules *ms, uintptr_t pc)
{
    for (struct module *m = ms->module; m < ms->module + ms->n; m++) {
        if (pc - m->lo < m->hi - m->lo)
            return m;
    }
    return NULL;
}

/* Whose functions are meant ---------------------------------------------------------------------
 */

static bool has(const struct module *m, const char *name)
{
    return gt_elf_definition(&m->map, name) && (uintptr_t)libraries - m->lo >= m->hi - m->lo;
}

/* The first of n modules that defines the name. */
static struct module *first_of(const struct modules *ms, size_t n, const char *name)
{
    size_t i = 0;
    while (i < n && !has(&ms->module[i], name))
        i++;
    return i < n ? &ms->module[i] : NULL;
}

static size_t n_at_start(const struct modules *ms)
{
    size_t n = 0;
    for (size_t i = 0; i < ms->n; i++)
        n = ms->module[i].map.l_ld == last_at_start ? i + 1 : n;
    return n;
}

/*
 * Looks in a module loaded later as the loader does: in the module itself, the modules that it
 * needs, the modules that those need.
 */
static struct module *first_needed(const struct modules *ms, struct module *by, const char *name)
{
    struct module **queue = gt_pages_alloc(MODULES * sizeof(void *)), *found = NULL;
    size_t n = 0;
    for (struct module *m = ms->module; m < ms->module + ms->n; m++)
        m->queued = m == by;
    if (queue && by)
        queue[n++] = by;
    for (size_t i = 0; i < n && !found; i++) {
        found = has(queue[i], name) ? queue[i] : NULL;
        for (struct module *m = ms->module; m < ms->module + ms->n; m++) {
            if (!m->queued && gt_elf_needs(&queue[i]->map, &m->map)) {
                m->queued = true;
                queue[n++] = m;
            }
        }
    }
    gt_pages_free(queue, MODULES * sizeof(void *));
    return found;
}

static struct module *meant(const struct modules *ms, struct module *caller, const char *name)
{
    struct module *m = first_of(ms, n_at_start(ms), name);
    m = m ? m : first_needed(ms, caller, name);
    return m ? m : first_of(ms, ms->n, name);
}

static long nothing(void)
{
    return 0;
}

/* Functions that our entries in symbol tables have replaced, while we are attached. */
static struct gt_elf_binding bound[GT_FOREIGN_BINDINGS] GT_SPARSE;
static int n_bound;

static void *function_of(const struct module *m, const char *name)
{
    const ElfW(Sym) *symbol = m ? gt_elf_newest(&m->map, name) : NULL;
    if (!symbol && m) /* only for programs linked long ago: __res_query since 2.34 */
        symbol = gt_elf_definition(&m->map, name);
    void *found = symbol ? (void *)(m->map.l_addr + symbol->st_value) : NULL;
    for (int i = 0; i < n_bound && found; i++) {
        if (found == bound[i].to)
            return bound[i].from;
    }
    return found;
}

static void look_up(const struct gt_foreign *lib, const struct modules *ms, struct module *caller,
                    void **functions)
{
    const struct module *all = meant(ms, caller, lib->names[0]);
    for (uint32_t i = 0; i < lib->n; i++) {
        void *fn = function_of(all, lib->names[i]);
        fn = fn ? fn : function_of(meant(ms, caller, lib->names[i]), lib->names[i]);
        functions[i] = fn ? fn : (void *)nothing;
    }
    functions[lib->n] = lib->mark ? function_of(all, lib->mark) : NULL;
}

/* Users -----------------------------------------------------------------------------------------
 */

/*
 * Returns the earlier copy of `met` if there is one, else keeps it. A module may be met and
 * forgotten any number of times.
 */
static struct gt_foreign_user *keep(struct gt_foreign *lib, const struct gt_foreign_user *met)
{
    size_t bytes = sizeof *met + (lib->n + 1) * sizeof(void *), head = sizeof met->next;
    struct gt_foreign_user *u = atomic_load_explicit(&lib->all, memory_order_acquire);
    while (u && memcmp((char *)u + head, (const char *)met + head, bytes - head) != 0)
        u = u->next;
    if (u || !(u = gt_arena_copy(&arena, met, bytes)))
        return u;
    /* release: u is complete. Pairs with the acquire above. */
    GT_PUSH(&lib->all, u, &u->next);
    return u;
}

struct met {
    struct gt_foreign_user user;
    void *functions[GT_FOREIGN_NAMES_MAX];
};

static struct gt_foreign_user *meet(struct gt_foreign *lib, uintptr_t pc)
{
    struct met met = {.user.size = 0};
    struct modules ms = {0, gt_pages_alloc(MODULES * sizeof *ms.module)};
    if (ms.module)
        gt_elf_each_module(note, &ms);
    struct module *caller = module_of(&ms, pc);
    met.user.lo = caller ? caller->lo : pc; /* code made at run time: each call has its own entry */
    met.user.size = caller ? caller->hi - caller->lo : 1;
    look_up(lib, &ms, caller, met.functions);
    gt_pages_free(ms.module, MODULES * sizeof *ms.module);
    struct gt_foreign_user *kept = keep(lib, &met.user);
    static struct met without_memory;
    if (!kept)
        without_memory = met;
    return kept ? kept : &without_memory.user;
}

void *const *gt_foreign_find(struct gt_foreign *lib, const void *caller)
{
    uintptr_t pc = (uintptr_t)caller;
    for (int i = 1; i < GT_FOREIGN_USERS; i++) {
        struct gt_foreign_user *u = atomic_load_explicit(&lib->users[i], memory_order_acquire);
        if (u && pc - u->lo < u->size)
            return u->functions;
    }
    struct gt_foreign_user *u = meet(lib, pc);
    int at = 0;
    while (at < GT_FOREIGN_USERS - 1 && atomic_load_explicit(&lib->users[at], memory_order_relaxed))
        at++;
    atomic_store_explicit(&lib->users[at], u, memory_order_release);
    return u->functions;
}

/* The only module that defines the library's first function; NULL: none, or several. */
static const struct link_map *only_one(const struct gt_foreign *lib)
{
    const struct link_map *found = NULL, *ours = gt_elf_ours();
    int n = 0;
    for (const struct link_map *map = _r_debug.r_map; map; map = map->l_next) {
        if (map != ours && gt_elf_definition(map, lib->names[0])) {
            found = map;
            n++;
        }
    }
    return n == 1 ? found : NULL;
}

static void add_bindings(const struct gt_foreign *lib)
{
    const struct link_map *in = only_one(lib);
    for (uint32_t i = 0; in && i < lib->n && n_bound < GT_FOREIGN_BINDINGS; i++) {
        const char *name = lib->names[i];
        void *from = gt_elf_function(in, name), *to = gt_elf_function(gt_elf_ours(), name);
        if (from && to)
            bound[n_bound++] = (struct gt_elf_binding){name, from, to, in};
    }
}

int gt_foreign_bindings(struct gt_elf_binding *out)
{
    n_bound = 0;
    for (int i = 0; i < LIBRARIES; i++)
        add_bindings(libraries[i]);
    memcpy(out, bound, (size_t)n_bound * sizeof *out);
    return n_bound;
}

void gt_foreign_init(void)
{
    const struct link_map *map = gt_elf_ours();
    while (map && map->l_next)
        map = map->l_next;
    last_at_start = map ? map->l_ld : NULL;
}

void gt_foreign_forget(void)
{
    for (int i = 0; i < LIBRARIES; i++) {
        for (int k = 0; k < GT_FOREIGN_USERS; k++)
            atomic_store_explicit(&libraries[i]->users[k], NULL, memory_order_relaxed);
    }
}
