/* See process_names.h. */
#include "process_names.h"

#include "encoder/base/clock.h"
#include "encoder/base/debug.h"
#include "encoder/base/hash.h"
#include "encoder/base/path.h"
#include "encoder/base/sparse.h"
#include "encoder/base/strbuf.h"
#include "encoder/file/frames.h"
#include "preload/bind/file_lock_names.h"
#include "preload/bind/jit_names.h"
#include "preload/bind/mappings.h"
#include "preload/shared/leaves.h"
#include "preload/shared/options.h"
#include "preload/stacks/gil.h"
#include "symbolize/elf/loading.h"
#include "symbolize/elf/modules.h"
#include "symbolize/phrases.h"
#include "symbolize/python/python.h"
#include "symbolize/symbolize.h"

#include <limits.h>
#include <stdio.h>

static struct {
    struct gt_symbolizer *symbolizer;
    _Atomic uint64_t
        hurry_at;  /* no slow look-ups from this time on; 0: no signal is ending the process */
    bool roughly;  /* no look-ups at all: a signal handler writes */
    bool confined; /* files could not be opened again */
    bool epochs_unknown; /* used by gt_names_forget */
} names;

void gt_names_roughly(bool roughly)
{
    names.roughly = roughly;
}

void gt_names_die(uint64_t ns)
{
    gt_symbolize_freeze();
    atomic_store(&names.hurry_at, gt_clock_monotonic_raw() + ns);
}

void gt_names_confine(void)
{
    names.confined = true;
}

void gt_names_after_fork(void)
{
    names.hurry_at = 0;
    names.roughly = false;
}

static bool hurries(void)
{
    uint64_t at = atomic_load(&names.hurry_at);
    return names.roughly || (at && gt_clock_monotonic_raw() > at);
}

static int name_roughly(const struct gt_stack *s, uint64_t pc, struct gt_frame *out)
{
    static char name[PATH_MAX + 32] GT_SPARSE;
    const struct gt_module *m = gt_modules_find(s->epoch, pc);
    const char *file = m ? gt_module_name(m) : "";
    snprintf(name, sizeof name, "%s+0x%llx", gt_path_name(file),
             (unsigned long long)(m ? pc - m->bias : pc));
    *out = (struct gt_frame){.func = name, .file = file};
    return 1;
}

void gt_names_of_time(uint64_t begin_ns, uint64_t end_ns)
{
    gt_mappings_forget();
    gt_made_of_time(begin_ns, end_ns, end_ns && !hurries() && !names.confined);
}

/* An address that stands for code of this name at `at`. Other code may have been there before, or
 * may be there next: its name gives another address. */
static uint64_t shown_for(uint64_t at, const struct gt_sym_frame *frame)
{
    uint64_t hash = gt_hash_mix(at, frame->line);
    for (const char *c = frame->func; *c; c++)
        hash = gt_hash_mix(hash, (uint8_t)*c);
    for (const char *c = frame->file; *c; c++)
        hash = gt_hash_mix(hash, (uint8_t)*c);
    return GT_MODULES_MADE | (hash & (GT_MODULES_MADE - 1));
}

/* Names an address outside of all modules, mostly of code that was made at run time. */
static int name_passing(const struct gt_stack *s, uint64_t pc, bool is_call, struct gt_frame *out)
{
    struct gt_sym_frame frame;
    uint64_t at = pc - is_call;
    bool named = gt_made_name(at, &frame);
    if (!named)
        gt_symbolize(names.symbolizer, s->epoch, pc, is_call, &frame, 1);
    *out = (struct gt_frame){.func = frame.func,
                             .file = frame.file,
                             .line = frame.line,
                             .pc = named || s->epoch > 1 ? shown_for(at, &frame) : at,
                             .passing = true};
    return 1;
}

static struct gt_frame show_python(uint64_t at, const struct gt_sym_frame *frame)
{
    return (struct gt_frame){.func = frame->func,
                             .file = frame->file,
                             .line = frame->line,
                             .pc = shown_for(at & ~1ull, frame)};
}

/* Whether the reader of the trace looks up the module's names: it finds the file by build ID. */
static bool is_for_later(const struct gt_module *m)
{
    return gt_options.names_later && m && m->build_id_len && *m->path == '/';
}

/* The address in the trace for an address in a module: see symbolize/elf/modules.h. */
static uint64_t shown_in(const struct gt_module *m, uint64_t at)
{
    return at - m->lo + m->shown;
}

static int resolve(const struct gt_stack *s, uint32_t index, struct gt_frame *out, int max,
                   bool may_wait)
{
    GT_ASSERT_DRAIN_SIDE();
    static char description[GT_STRING_MAX + 1] GT_SPARSE; /* one caller at a time */
    struct gt_sym_frame frames[max];
    uint64_t pc = s->pcs[index], at = pc - (index > 0);
    if (index == 0 && pc < GT_LEAVES_END) {
        out[0] = (struct gt_frame){.func = gt_real_name((enum gt_hook)pc), .file = "libc.so.6"};
        return 1;
    }
    if (gt_python_name(at, frames)) {
        out[0] = show_python(at, frames);
        return 1;
    }
    if (!atomic_load(&names.hurry_at) && !names.roughly && !gt_modules_find(s->epoch, pc))
        gt_modules_refresh(); /* the module may have been loaded since the last refresh */
    const struct gt_module *m = gt_modules_find(s->epoch, at);
    bool rough = hurries() || (may_wait && is_for_later(m));
    if (!rough && !names.symbolizer)
        names.symbolizer = gt_symbolizer_new();
    if (!rough && !m)
        return name_passing(s, pc, index > 0, out);
    int n = rough ? name_roughly(s, at, out)
                  : gt_symbolize(names.symbolizer, s->epoch, pc, index > 0, frames, max);
    for (int i = 0; i < n && !rough; i++)
        out[i] = (struct gt_frame){frames[i].func, frames[i].file, frames[i].line, 0, false, NULL};
    if (m)
        out[n - 1].pc = shown_in(m, at);
    if (m && gt_modules_describe(m, description, sizeof description))
        out[n - 1].module = description;
    return n;
}

int gt_names_resolve(const struct gt_stack *s, uint32_t index, struct gt_frame *out, int max)
{
    return resolve(s, index, out, max, true);
}

int gt_names_resolve_now(const struct gt_stack *s, uint32_t index, struct gt_frame *out, int max)
{
    return resolve(s, index, out, max, false);
}

/* Whether a name may be looked up now, and the address is in a module. */
static bool can_name(uint64_t address, uint32_t epoch)
{
    GT_ASSERT_DRAIN_SIDE();
    if (hurries() || !gt_modules_find(epoch, address))
        return false;
    if (!names.symbolizer)
        names.symbolizer = gt_symbolizer_new();
    return true;
}

/* A phrase about an address: a variable, function or place. NULL: nothing is known. */
static const char *phrase(enum gt_phrase which, uint64_t address, uint32_t epoch, bool may_wait)
{
    static char text[GT_STRING_MAX] GT_SPARSE;
    size_t size = which == GT_PHRASE_VARIABLE ? sizeof text : sizeof text / 2;
    struct gt_sym_frame python;
    if (which == GT_PHRASE_VARIABLE && gt_gil_name(address, text, size))
        return text;
    if (which == GT_PHRASE_FUNCTION && gt_python_name(address, &python))
        return python.func;
    struct gt_strbuf t = gt_strbuf_start(text, size);
    const struct gt_module *m = gt_modules_find(epoch, address);
    if (may_wait && is_for_later(m))
        gt_phrase_put_off(&t, which, shown_in(m, address));
    else if (!can_name(address, epoch) ||
             !gt_phrase_add(&t, names.symbolizer, which, epoch, address))
        return NULL;
    return text;
}

const char *gt_names_variable_now(uint64_t address, uint32_t epoch)
{
    return phrase(GT_PHRASE_VARIABLE, address, epoch, false);
}

const char *gt_names_lock(uint64_t address, uint32_t epoch, bool shared)
{
    static char text[96];
    const char *name = gt_file_lock_name_at(address);
    name = name ? name : phrase(GT_PHRASE_VARIABLE, address, epoch, true);
    if (!name && shared && !names.confined && gt_mappings_name(address, text, sizeof text))
        return text;
    snprintf(text, sizeof text, "0x%llx", (unsigned long long)address);
    return name ? name : text;
}

const char *gt_names_function(uint64_t address, uint32_t epoch)
{
    return phrase(GT_PHRASE_FUNCTION, address, epoch, true);
}

const char *gt_names_place(uint64_t address, uint32_t epoch)
{
    return phrase(GT_PHRASE_PLACE, address, epoch, true);
}

void gt_names_hold(void)
{
    GT_ASSERT_DRAIN_SIDE();
    if (gt_options.names_later)
        return;
    if (!names.symbolizer)
        names.symbolizer = gt_symbolizer_new();
    gt_symbolize_hold(names.symbolizer);
}

bool gt_names_same_code(uint64_t pc, uint32_t one, uint32_t other)
{
    const struct gt_module *m = pc < GT_LEAVES_END ? NULL : gt_modules_find(one, pc);
    if (m)
        return m == gt_modules_find(other, pc);
    return pc < GT_LEAVES_END || gt_modules_same(&pc, 1, one, other);
}

static void note_epoch(void *epochs, struct gt_stack *s)
{
    uint64_t *slot = gt_memo_at(epochs, gt_stack_epoch(s));
    if (slot)
        *slot = 1;
    else
        names.epochs_unknown = true;
}

/*
 * Forgets modules together with the symbolizer, which points to the modules' records and has some
 * of their files open. The next look-up makes a new symbolizer. The pointer is cleared first: in a
 * child that is forked meanwhile, there is no symbolizer rather than one with dangling records.
 */
static void forget_with_symbolizer(const struct gt_memo *epochs)
{
    struct gt_symbolizer *s = names.symbolizer;
    names.symbolizer = NULL;
    if (!gt_modules_forget(epochs))
        names.symbolizer = s;
    else if (s)
        gt_symbolizer_free(s);
}

/* Does nothing in a signal handler, or if the symbolizer's files could not be opened again. */
void gt_names_forget(void)
{
    GT_ASSERT_DRAIN_SIDE();
    enum { GONE_MAX = 64 };
    struct gt_memo epochs = {.slots = NULL};
    if (gt_modules_gone() < GONE_MAX || names.confined || names.roughly)
        return;
    names.epochs_unknown = false;
    gt_stacks_each_kept(note_epoch, &epochs);
    if (!names.epochs_unknown)
        forget_with_symbolizer(&epochs);
    gt_memo_free(&epochs);
}
