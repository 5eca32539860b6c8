/* See attach.h. */
#include "attach.h"

#include "control.h"
#include "met.h"
#include "process.h"
#include "real.h"
#include "sampler.h"

#include "encoder/base/futex.h"
#include "encoder/base/sparse.h"
#include "preload/heap/heap.h"
#include "preload/hooks/foreign.h"
#include "preload/hooks/hot.h"
#include "preload/stacks/python.h"
#include "symbolize/elf_names.h"

static struct gt_elf_binding bindings[GT_BINDINGS_MAX] GT_SPARSE; /* from libc's to our hooks */

static struct {
    enum { NEVER, BOUND, UNDONE, FREE } state; /* FREE: a child of one in which it was UNDONE */
    int n, of_libc; /* behind those, what is other libraries' while we are attached */
    /* For the loader, see bind_by_loader; volatile: dlsym says of itself that it calls nobody. */
    volatile enum { NOTHING, TO_HOOKS, TO_LIBC } due;
    volatile bool done;
} attached;

bool gt_attach_is_under_way(void)
{
    char name[16];
    return gt_syscall(SYS_prctl, PR_GET_NAME, name) == 0 && strcmp(name, GT_CONTROL_THREAD) == 0;
}

bool gt_attach_is_undone(void)
{
    return attached.state == UNDONE;
}

bool gt_attach_is_free(void)
{
    return attached.state == FREE;
}

void gt_attach_after_fork(void)
{
    if (attached.state == UNDONE)
        attached.state = FREE;
}

static bool is_loaded(const struct link_map *map)
{
    const struct link_map *m = _r_debug.r_map;
    while (m && m != map)
        m = m->l_next;
    return m;
}

/*
 * Look-ups first: what is bound meanwhile is bound as it shall be. Other libraries may be gone.
 * Ours is left out: its gt_syscall stays libc's.
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
 * What is looked up to have bind_by_loader called. The loader calls it with the lock held under
 * which it loads, relocates and unloads modules, so that none is half done meanwhile: that lock has
 * no other door.
 */
GT_EXPORT void gotrace_bind(void) __attribute__((ifunc("bind_by_loader")));

static bool move_calls(bool to_hooks)
{
    attached.done = false;
    attached.due = to_hooks ? TO_HOOKS : TO_LIBC;
    dlsym(RTLD_DEFAULT, "gotrace_bind");
    attached.due = NOTHING;
    attached.state = to_hooks ? BOUND : UNDONE;
    return attached.done;
}

/* All of them or none. */
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
    if (attached.state != UNDONE)
        return attached.state == NEVER ? -EOPNOTSUPP : -EALREADY;
    if (path && !gt_process_set_output(path))
        return -ENAMETOOLONG;
    gt_hot_reset();
    return bind_to_hooks();
}

int gt_attach_undo(void)
{
    GT_HEAP_OWN(own);
    if (attached.state != BOUND)
        return attached.state == NEVER ? -EOPNOTSUPP : -EALREADY;
    gt_sampler_doubt_stacks(); /* of which nothing is seen from here on */
    gt_python_hold();          /* nor when it is unloaded */
    return move_calls(false) ? 0 : -EACCES;
}

/*
 * settings: as gt_options_read has them. 0 or -errno: nothing is bound, and we stay, inert. The
 * program's threads are met before they can call a hook.
 */
GT_EXPORT int gotrace_attached(const char *settings, const struct gt_picture *picture);
int gotrace_attached(const char *settings, const struct gt_picture *picture)
{
    GT_HEAP_OWN(own);
    gt_met_expect(picture);
    bool may = attached.state == NEVER || attached.state == FREE;
    int error = may ? gt_process_attach(settings) : -EALREADY;
    if (error)
        return error;
    gt_met_await();
    return bind_to_hooks();
}
