/* See box_names.h. Does what preload/process/process_names.c does in the process itself. */
#include "box_names.h"

#include "encoder/base/strbuf.h"
#include "encoder/file/frames.h"
#include "encoder/read/need.h"
#include "preload/shared/leaves.h"
#include "symbolize/phrases.h"
#include "symbolize/symbolize.h"

#include <stdio.h>
#include <stdlib.h>

enum { EPOCH = 1, INLINES_MAX = 32 }; /* EPOCH: of this process, which has unloaded nothing */

/* A module of the process, at lo to hi there. The trace has the addresses of `module` instead. */
static struct loaded {
    uint64_t lo, hi, since;
    const struct gt_module *module;
    const char *description;
} * all;
static size_t n;

static struct gt_symbolizer *symbolizer;

void gt_recovered_module(const struct gt_boxed_module *m)
{
    const struct gt_module *module = gt_modules_add(m->description);
    if (!module)
        return;
    *GT_ADD(all, n) = (struct loaded){m->lo, m->hi, m->loaded, module, m->description};
}

/* The module at pc in that epoch: of several in turn, the last one loaded by then. */
static const struct loaded *find(uint64_t pc, uint32_t epoch)
{
    const struct loaded *found = NULL;
    for (size_t i = 0; i < n; i++) {
        bool fits = pc >= all[i].lo && pc < all[i].hi && all[i].since <= epoch;
        if (fits && (!found || all[i].since > found->since))
            found = &all[i];
    }
    if (!symbolizer)
        symbolizer = gt_symbolizer_new();
    return found;
}

static uint64_t shown(const struct loaded *m, uint64_t pc)
{
    return pc - m->lo + m->module->lo;
}

int gt_recovered_resolve(const struct gt_stack *s, uint32_t index, struct gt_frame *out, int max)
{
    static char unknown[32];
    struct gt_sym_frame frames[INLINES_MAX];
    uint64_t pc = s->pcs[index], at = pc - (index > 0);
    if (index == 0 && pc < GT_LEAVES_END) {
        *out = (struct gt_frame){.func = gt_real_name((enum gt_hook)pc), .file = "libc.so.6"};
        return 1;
    }
    const struct loaded *m = find(at, gt_stack_epoch(s));
    if (!m) {
        snprintf(unknown, sizeof unknown, "0x%llx", (unsigned long long)pc);
        *out = (struct gt_frame){.func = unknown, .file = "", .pc = at};
        return 1;
    }
    int most = max < INLINES_MAX ? max : INLINES_MAX;
    int count = gt_symbolize(symbolizer, EPOCH, shown(m, pc), index > 0, frames, most);
    for (int i = 0; i < count; i++)
        out[i] = (struct gt_frame){
            .func = frames[i].func, .file = frames[i].file, .line = frames[i].line};
    out[count - 1].pc = shown(m, at);
    out[count - 1].module = m->description;
    return count;
}

const char *gt_recovered_lock(uint64_t address, uint32_t epoch, bool shared)
{
    (void)shared; /* the box has no list of mappings */
    static char text[GT_STRING_MAX];
    const struct loaded *m = find(address, epoch);
    struct gt_strbuf t = gt_strbuf_start(text, sizeof text);
    if (!m || !gt_phrase_add(&t, symbolizer, GT_PHRASE_VARIABLE, EPOCH, shown(m, address)))
        snprintf(text, sizeof text, "0x%llx", (unsigned long long)address);
    return text;
}

const char *gt_recovered_function(uint64_t address, uint32_t epoch)
{
    static char text[GT_STRING_MAX / 2];
    const struct loaded *m = find(address, epoch);
    struct gt_strbuf t = gt_strbuf_start(text, sizeof text);
    return m && gt_phrase_add(&t, symbolizer, GT_PHRASE_FUNCTION, EPOCH, shown(m, address)) ? text
                                                                                            : NULL;
}
