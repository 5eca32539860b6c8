/* See attach.h. */
#include "attach.h"

#include "encoder/base/sparse.h"
#include "preload/bind/foreign.h"
#include "preload/bind/real.h"
#include "preload/heap/heap.h"
#include "preload/life/met.h"
#include "preload/life/process_start.h"
#include "preload/process/attach_state.h"
#include "preload/stacks/python_stack.h"
#include "preload/thread/sampler.h"
#include "preload/waits/hot.h"
#include "symbolize/elf/elf_names.h"

static struct gt_elf_binding bindings[GT_BINDINGS_MAX] GT_SPARSE; /* from libc to our hooks */

static struct {
    int n, of_libc; /* the first of_libc bindings are libc's, the rest those of other libraries */
    /* Read by bind_by_loader. volatile: dlsym is declared as calling no function of ours. */
    volatile enum { NOTHING, TO_HOOKS, TO_LIBC } due;
    volatile bool done;
} attached;

static bool is_loaded(const struct link_map *map)
{
    const struct link_map *m = _r_debug.r_map;
    while (m && m != map)
        m = m->l_next;
    return m;
}

/*
 * Changes the symbol tables first, so that a call that the loader binds meanwhile is bound to the
 * right function. Other libraries may be unloaded by now. Our own library is left out: its
 * gt_syscall stays bound to libc.
 */
static bool bind_all(bool to_hooks)
{
    struct link_map *const ours[2] = {gt_elf_ours(), gt_elf_ours()};
    static struct gt_elf_binding list[GT_BINDINGS_MAX] GT_SPARSE;
    bool all = true;
    int n = 0;
    for (int i = 0; i < attached.n; i++) {
        struct gt_elf_binding b = bindings[i];
        if (i >= attached.of_libc && !is_loaded(b.in))
            continue;
        list[n] = to_hooks ? b : (struct gt_elf_binding){b.name, b.to, b.from, b.in};
        bool done = gt_elf_redefine(b.in, b.name, list[n].from, (void (*)(void))list[n].to);
        all &= done || i >= attached.of_libc;
        n++;
    }
    return gt_elf_rebind(list, n, ours) && all;
}

static void find_all(void)
{
    gt_python_init();
    if (!attached.of_libc)
        attached.of_libc = gt_real_bindings(bindings, gt_heap_on);
    attached.n = attached.of_libc + gt_foreign_bindings(bindings + attached.of_libc);
}

static void nothing(void)
{
}

__attribute__((used)) static void (*bind_by_loader(void))(void)
{
    if (attached.due == TO_HOOKS)
        find_all();
    if (attached.due)
        attached.done = bind_all(attached.due == TO_HOOKS);
    attached.due = NOTHING;
    return nothing;
}

/*
 * A look-up of this symbol makes the loader call bind_by_loader. The loader calls it with the lock
 * held under which it loads, relocates and unloads modules, so that no module is half done. There
 * is no other way to take that lock.
 */
GT_EXPORT void gotrace_bind(void) __attribute__((ifunc("bind_by_loader")));

static bool move_calls(bool to_hooks)
{
    attached.done = false;
    attached.due = to_hooks ? TO_HOOKS : TO_LIBC;
    dlsym(RTLD_DEFAULT, "gotrace_bind");
    attached.due = NOTHING;
    gt_attached = to_hooks ? GT_ATTACHED_BOUND : GT_ATTACHED_UNDONE;
    return attached.done;
}

/* Binds all calls to the hooks, or none. */
static int bind_to_hooks(void)
{
    if (!move_calls(true)) {
        move_calls(false);
        return -EACCES;
    }
    gt_heap_take_stock();
    return 0;
}

int gt_attach_again(const char *path)
{
    GT_HEAP_OWN(own);
    if (gt_attach_begun)
        return -EAGAIN;
    if (gt_attached != GT_ATTACHED_UNDONE)
        return gt_attached == GT_ATTACHED_NEVER ? -EOPNOTSUPP : -EALREADY;
    if (path && !gt_process_set_output(path))
        return -ENAMETOOLONG;
    gt_hot_reset();
    return bind_to_hooks();
}

int gt_attach_undo(void)
{
    GT_HEAP_OWN(own);
    if (gt_attach_begun)
        return -EAGAIN;
    if (gt_attached != GT_ATTACHED_BOUND)
        return gt_attached == GT_ATTACHED_NEVER ? -EOPNOTSUPP : -EALREADY;
    gt_sampler_doubt_stacks(); /* we see no sigaltstack(2) from here on */
    gt_python_hold();          /* and would not see Python being unloaded */
    return move_calls(false) ? 0 : -EACCES;
}

static int bind_first(const char *settings, const struct gt_picture *picture)
{
    gt_met_expect(picture);
    bool may = gt_attached == GT_ATTACHED_NEVER || gt_attached == GT_ATTACHED_FREE;
    int error = may ? gt_process_attach(settings) : -EALREADY;
    if (error)
        return error;
    gt_met_await();
    return bind_to_hooks();
}

/*
 * Attaches. settings: as for gt_options_read. 0 or -errno; after an error no call is bound, and the
 * library stays loaded, inert. The program's threads are met before they can call a hook.
 */
GT_EXPORT int gotrace_attached(const char *settings, const struct gt_picture *picture);
int gotrace_attached(const char *settings, const struct gt_picture *picture)
{
    GT_HEAP_OWN(own);
    gt_attach_begun = true;
    int error = bind_first(settings, picture);
    gt_attach_begun = false;
    return error;
}
