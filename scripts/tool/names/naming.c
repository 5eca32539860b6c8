/* See naming.h. */
#include "naming.h"

#include "encoder/read/need.h"
#include "symbolize/phrases.h"
#include "symbolize/symbolize.h"

#include <stdlib.h>
#include <string.h>

enum { INLINES_MAX = 32 };

/* The frames that take the place of one; those before the last are inlined. */
struct answer {
    uint32_t n; /* 0: the frame stays as it is */
    struct gt_where frame[];
};

#define NEW_PCS (1ull << 51) /* beyond the PCs that the encoder makes up */

void gt_naming_string(struct gt_naming *naming, uint64_t id, const struct gt_bytes *text)
{
    const char *its = gt_contents_text(&naming->contents, text->p, gt_bytes_left(text));
    *(uint64_t *)gt_need(gt_memo_at(&naming->texts, id)) = (uintptr_t)its;
    *(uint64_t *)gt_need(gt_memo_at(&naming->ids, (uintptr_t)its)) = id;
    naming->last_id = id > naming->last_id ? id : naming->last_id;
    uint64_t *known = gt_need(gt_memo_at(&naming->known, (uintptr_t)its));
    if (*known)
        return;
    *known = 1;
    const struct gt_module *module = gt_modules_add(its);
    if (!module)
        return;
    struct gt_named_module *m = gt_need(calloc(1, sizeof *m));
    *m = (struct gt_named_module){.next = naming->modules, .module = module};
    naming->modules = m;
}

static const char *text_of(const struct gt_naming *naming, uint64_t id)
{
    uint64_t text = gt_memo_find(&naming->texts, id);
    return text ? (const char *)(uintptr_t)text : "";
}

bool gt_naming_frame(struct gt_naming *naming, struct gt_bytes *bytes, struct gt_where *frame)
{
    frame->pc = gt_get_varint(bytes);
    frame->func = text_of(naming, gt_get_varint(bytes));
    frame->file = text_of(naming, gt_get_varint(bytes));
    frame->line = gt_get_varint(bytes);
    return !bytes->bad;
}

void gt_naming_pc(struct gt_naming *naming, uint64_t pc)
{
    if (naming->next_pc <= NEW_PCS)
        naming->next_pc = NEW_PCS + 1;
    if (pc >= naming->next_pc)
        naming->next_pc = pc + 1;
}

static struct gt_symbolizer *symbolizer(struct gt_naming *naming)
{
    if (!naming->symbolizer)
        naming->symbolizer = gt_symbolizer_new();
    return naming->symbolizer;
}

static struct gt_named_module *module_at(struct gt_naming *naming, uint64_t pc)
{
    struct gt_named_module *m = naming->modules;
    while (m && !(pc >= m->module->lo && pc < m->module->hi))
        m = m->next;
    return m;
}

static const char *kept(struct gt_naming *naming, const char *text)
{
    size_t n = strlen(text);
    return gt_contents_text(&naming->contents, text, n < GT_STRING_MAX ? n : GT_STRING_MAX);
}

/* Whether the answer knows more than the trace. */
static bool is_better(const struct gt_where *old, const struct gt_sym_frame *frames, int n)
{
    const struct gt_sym_frame *outer = &frames[n - 1];
    return outer->line || n > 1 || (strstr(old->func, "+0x") && !strstr(outer->func, "+0x"));
}

/*
 * Finds code made at run time, whose func in the trace is an address. That address is where the
 * code was interrupted if it equals the frame's PC, else a return address. It counts as a return
 * address, too, if the frame has another PC because its own was taken.
 */
static bool find_made(struct gt_naming *naming, const struct gt_where *frame,
                      struct gt_sym_frame *found)
{
    bool is_address = strncmp(frame->func, "0x", 2) == 0;
    uint64_t pc = is_address ? strtoull(frame->func, NULL, 16) : 0;
    return pc && gt_made_find(&naming->made, pc - (frame->pc != pc), 0, UINT64_MAX, found);
}

/* Looks the frame up in its module; how many frames: 0: no more than the trace knows. */
static int ask_module(struct gt_naming *naming, struct gt_named_module *m,
                      const struct gt_where *frame, struct gt_sym_frame *frames)
{
    if (m->module->path[0] == '[') /* the vDSO is in memory only */
        return 0;
    /* A trace has the addresses of calls, not their return addresses. */
    int n = gt_symbolize(symbolizer(naming), 1, frame->pc, false, frames, INLINES_MAX);
    m->without_line += !frames[n - 1].line;
    m->nameless += !frames[n - 1].line && strstr(frames[n - 1].func, "+0x");
    return is_better(frame, frames, n) ? n : 0;
}

/* The address shown; marked if the code was made at run time: see symbolize/elf/modules.h. */
static uint64_t shown_for(const struct gt_named_module *m, uint64_t pc)
{
    return m ? pc : pc | GT_MODULES_MADE;
}

static const struct answer *ask(struct gt_naming *naming, const struct gt_where *frame)
{
    static const struct answer none;
    struct gt_sym_frame frames[INLINES_MAX];
    uint64_t *slot = gt_need(gt_memo_at(&naming->answers, frame->pc));
    if (*slot)
        return (const void *)(uintptr_t)*slot;
    *slot = (uintptr_t)&none;
    struct gt_named_module *m = frame->line ? NULL : module_at(naming, frame->pc);
    int n = m ? ask_module(naming, m, frame, frames) : find_made(naming, frame, frames);
    if (!n)
        return &none;
    struct answer *answer = gt_need(malloc(sizeof *answer + (size_t)n * sizeof *answer->frame));
    *slot = (uintptr_t)answer;
    naming->named++;
    answer->n = (uint32_t)n;
    for (int i = 0; i < n; i++)
        answer->frame[i] =
            (struct gt_where){.pc = i < n - 1 ? naming->next_pc++ : shown_for(m, frame->pc),
                              .func = kept(naming, frames[i].func),
                              .file = kept(naming, frames[i].file),
                              .line = frames[i].line};
    return answer;
}

uint32_t gt_naming_put(struct gt_naming *naming, const struct gt_where *frame, uint32_t n,
                       struct gt_where out[GT_FRAMES_MAX])
{
    const struct answer *answer = ask(naming, frame);
    if (!answer->n && n < GT_FRAMES_MAX)
        out[n++] = *frame;
    for (uint32_t i = 0; i < answer->n && n < GT_FRAMES_MAX; i++)
        out[n++] = answer->frame[i];
    return n;
}

/* Texts -------------------------------------------------------------------------------------- */

static bool is_here(struct gt_naming *naming, const struct gt_named_module *m)
{
    return gt_symbolize_has_files(symbolizer(naming), 1, m->module->lo, false);
}

bool gt_naming_stays_later(struct gt_naming *naming)
{
    bool stays = false;
    for (const struct gt_named_module *m = naming->modules; m && naming->was_later; m = m->next)
        stays |= m->module->path[0] != '[' && !is_here(naming, m);
    return stays && !naming->last;
}

/* Appends the address's text; false: a later reader that has the module's file may know more. */
static bool add_phrase(struct gt_naming *naming, struct gt_strbuf *t, enum gt_phrase which,
                       uint64_t shown)
{
    struct gt_named_module *m = module_at(naming, shown);
    bool here = m && is_here(naming, m);
    if (!here && !naming->last)
        return false;
    if (m && gt_phrase_add(t, symbolizer(naming), which, 1, shown)) {
        m->nameless += !here;
        return true;
    }
    gt_strbuf_add(t, "0x");
    gt_strbuf_hex(t, shown);
    return true;
}

const char *gt_naming_text(struct gt_naming *naming, const struct gt_bytes *text)
{
    char old[GT_STRING_MAX + 1], fresh[GT_STRING_MAX + 1];
    size_t size = gt_bytes_left(text);
    const char *from = old, *at, *end;
    enum gt_phrase which;
    uint64_t shown;
    if (!naming->was_later || size > GT_STRING_MAX ||
        !memmem(text->p, size, GT_OWN, sizeof GT_OWN - 1))
        return NULL;
    *(char *)mempcpy(old, text->p, size) = 0;
    struct gt_strbuf t = gt_strbuf_start(fresh, sizeof fresh);
    while ((at = gt_phrase_find(from, &which, &shown, &end))) {
        gt_strbuf_add_n(&t, from, (size_t)(at - from));
        if (!add_phrase(naming, &t, which, shown))
            gt_strbuf_add_n(&t, at, (size_t)(end - at));
        from = end;
    }
    if (from == old)
        return NULL;
    gt_strbuf_add(&t, from);
    return gt_contents_text(&naming->contents, fresh, strlen(fresh));
}
