/* See made.h. */
#include "made.h"

#include "symbolize/symbolize.h"

#include "encoder/base/arch/arch.h"
#include "encoder/base/sort.h"
#include "encoder/base/strbuf.h"

/* Limits of a look-up: entries that were at an address in turn, and entries passed on the way. */
enum { TURNS_MAX = 32, STEPS_MAX = 4096 };

enum { UNSORTED_MAX = 256, ROOM_MIN = 1 << 16, CODES_MAX = 1 << 20 };

struct slot {
    uint64_t lo, reach; /* reach: the highest end of this entry and all before */
    uint32_t code;
};

static struct gt_made_code *codes_of(const struct gt_made_functions *made)
{
    return made->codes.at;
}

/* The index ---------------------------------------------------------------------------------- */

static bool sort_all(struct gt_made_functions *made, struct gt_pair *pairs)
{
    const struct gt_made_code *code = codes_of(made);
    for (size_t i = 0; i < made->n; i++)
        pairs[i] = (struct gt_pair){code[i].lo, i};
    return gt_sort(pairs, made->n) &&
           gt_vector_reserve(&made->index, made->n * sizeof(struct slot));
}

static void fill_index(struct gt_made_functions *made, const struct gt_pair *pairs)
{
    struct slot *slot = made->index.at;
    uint64_t reach = 0;
    for (size_t i = 0; i < made->n; i++) {
        uint64_t hi = codes_of(made)[pairs[i].value].hi;
        reach = hi > reach ? hi : reach;
        slot[i] = (struct slot){pairs[i].key, reach, (uint32_t)pairs[i].value};
    }
    made->indexed = made->n;
}

/* Makes the index again if more than `unsorted` entries are not in it. */
static void update_index(struct gt_made_functions *made, size_t unsorted)
{
    if (made->n - made->indexed <= unsorted)
        return;
    struct gt_pair *pairs = gt_pages_alloc(made->n * sizeof *pairs);
    made->indexed = 0; /* until the index is complete: a fork may come between */
    if (pairs && sort_all(made, pairs))
        fill_index(made, pairs);
    else
        made->broken = true;
    gt_pages_free(pairs, made->n * sizeof *pairs);
}

static bool covers(const struct gt_made_code *code, uint64_t pc)
{
    return pc >= code->lo && pc < code->hi;
}

/* Calls fn for all entries at pc, in any order, until fn returns false. false: fn did so, or there
 * were too many steps. */
static bool each_at(const struct gt_made_functions *made, uint64_t pc,
                    bool (*fn)(void *arg, uint32_t code), void *arg)
{
    const struct gt_made_code *code = codes_of(made);
    const struct slot *slot = made->index.at;
    for (size_t i = made->n; i-- > made->indexed;) {
        if (covers(&code[i], pc) && !fn(arg, (uint32_t)i))
            return false;
    }
    size_t from = gt_count_up_to(slot, made->indexed, sizeof *slot, sizeof slot->lo, pc);
    for (int steps = 0; from && slot[from - 1].reach > pc; from--, steps++) {
        uint32_t at = slot[from - 1].code;
        if (steps == STEPS_MAX || (covers(&code[at], pc) && !fn(arg, at)))
            return false;
    }
    return true;
}

/* Dropping ----------------------------------------------------------------------------------- */

static bool note_newest(void *newest, uint32_t code)
{
    uint32_t *last = newest;
    *last = code > *last ? code : *last;
    return true;
}

struct later {
    const struct gt_made_functions *made;
    uint32_t than;
    uint64_t hi, known; /* highest end of a later entry; time when the last one came */
};

static bool note_later(void *arg, uint32_t code)
{
    struct later *later = arg;
    const struct gt_made_code *its = &codes_of(later->made)[code];
    if (code > later->than && its->hi > later->hi) {
        later->hi = its->hi;
        later->known = its->known > later->known ? its->known : later->known;
    }
    return true;
}

/* Whether later entries cover all addresses of entry i, so that no look-up needs it any more; and
 * since when. */
static bool is_replaced(const struct gt_made_functions *made, uint32_t i, uint64_t *since_ns)
{
    const struct gt_made_code *code = &codes_of(made)[i];
    struct later later = {.made = made, .than = i, .hi = code->lo};
    *since_ns = made->gone_ns;
    if (i < made->gone)
        return true;
    for (uint64_t at = code->lo; at < code->hi; at = later.hi) {
        if (!each_at(made, at, note_later, &later) || later.hi <= at)
            return false;
    }
    *since_ns = later.known;
    return true;
}

static const struct gt_made_lines *copy_lines(struct gt_arena *arena, struct gt_made_lines *copy)
{
    for (uint32_t i = 0; copy && i < copy->n; i++) {
        struct gt_made_line *line = &copy->line[i];
        bool same = i && strcmp(line->file, copy->line[i - 1].file) == 0;
        line->file = same ? copy->line[i - 1].file : gt_arena_text(arena, line->file);
    }
    return copy;
}

static struct gt_made_code copy_of(struct gt_arena *arena, struct gt_made_code code)
{
    code.name = code.name ? gt_arena_text(arena, code.name) : NULL;
    if (code.lines)
        code.lines = copy_lines(
            arena, gt_arena_copy(arena, code.lines,
                                 sizeof *code.lines + code.lines->n * sizeof *code.lines->line));
    return code;
}

/* Drops the entries that others have replaced, with their names. Look-ups of earlier times may miss
 * them (dropped_ns). */
static void drop_replaced(struct gt_made_functions *made)
{
    struct gt_made_functions kept = {.room = ROOM_MIN, .dropped_ns = made->dropped_ns};
    update_index(made, 0);
    if (made->broken || !gt_vector_reserve(&kept.codes, made->codes.bytes))
        return;
    for (uint32_t i = 0; i < made->n; i++) {
        uint64_t since_ns;
        if (!is_replaced(made, i, &since_ns))
            codes_of(&kept)[kept.n++] = copy_of(&kept.arena, codes_of(made)[i]);
        else if (since_ns > kept.dropped_ns)
            kept.dropped_ns = since_ns;
    }
    while (kept.room < 2 * kept.n)
        kept.room *= 2;
    gt_made_clear(made);
    made->codes = kept.codes;
    made->n = kept.n;
    made->room = kept.room;
    made->dropped_ns = kept.dropped_ns;
    made->arena.chunk = kept.arena.chunk;
}

/* Adding ------------------------------------------------------------------------------------- */

void gt_made_begin(struct gt_made_functions *made)
{
    atomic_store(&made->changing, true);
    if (made->n >= (made->room ? made->room : ROOM_MIN))
        drop_replaced(made);
}

void gt_made_end(struct gt_made_functions *made)
{
    atomic_store(&made->changing, false);
}

void gt_made_all_gone(struct gt_made_functions *made, uint64_t now_ns)
{
    if (made->gone)
        drop_replaced(made);
    made->gone = made->n;
    made->gone_ns = now_ns;
}

void gt_made_add(struct gt_made_functions *made, const struct gt_made_code *code, size_t length)
{
    if (made->broken || code->lo >= code->hi || code->hi > GT_ARCH_USER_END)
        return;
    char *name = code->name ? gt_arena_alloc(&made->arena, length + 1) : NULL;
    if (made->n == CODES_MAX || (code->name && !name) ||
        !gt_vector_reserve(&made->codes, (made->n + 1) * sizeof *code)) {
        made->broken = true;
        return;
    }
    if (name)
        memcpy(name, code->name, length);
    struct gt_made_code *fresh = &codes_of(made)[made->n++];
    *fresh = *code;
    fresh->name = name;
}

/* Finding ------------------------------------------------------------------------------------ */

/* The entries that were at an address in turn, newest first. */
struct turns {
    uint32_t n, code[TURNS_MAX];
    bool cut; /* there were older entries, too */
};

static bool note_turn(void *arg, uint32_t code)
{
    struct turns *turns = arg;
    turns->cut |= turns->n == TURNS_MAX;
    uint32_t i = turns->n == TURNS_MAX ? turns->n - 1 : turns->n++;
    if (turns->cut && turns->code[i] > code)
        return true;
    for (; i && turns->code[i - 1] < code; i--)
        turns->code[i] = turns->code[i - 1];
    turns->code[i] = code;
    return true;
}

enum { NAMED_MAX = 3 };

struct named {
    uint32_t n, codes;
    const struct gt_made_code *code[NAMED_MAX]; /* with different names, newest first */
};

/* Adds an entry with its name. false: there are too many different names. */
static bool add_name(struct named *named, const struct gt_made_code *code)
{
    named->codes++;
    for (uint32_t i = 0; i < named->n; i++) {
        if (strcmp(named->code[i]->name, code->name) == 0)
            return true;
    }
    if (named->n == NAMED_MAX)
        return false;
    named->code[named->n++] = code;
    return true;
}

/* Chooses the entries that may have been at the address between begin_ns and end_ns: the one that
 * was there at the beginning, and all that came by the end. */
static bool choose(const struct gt_made_functions *made, const struct turns *turns,
                   uint64_t begin_ns, uint64_t end_ns, struct named *named)
{
    for (uint32_t i = 0; i < turns->n; i++) {
        const struct gt_made_code *code = &codes_of(made)[turns->code[i]];
        if (turns->code[i] < made->gone && made->gone_ns <= begin_ns)
            return named->n;
        if (code->since > end_ns)
            continue;
        if (code->name && !add_name(named, code))
            return false;
        if (code->known <= begin_ns)
            return named->n;
    }
    return named->n && begin_ns >= made->dropped_ns && !turns->cut;
}

static void place_in(const struct gt_made_code *code, uint64_t pc, struct gt_sym_frame *frame)
{
    const struct gt_made_lines *lines = code->lines;
    size_t n = lines ? gt_count_up_to(lines->line, lines->n, sizeof *lines->line,
                                      sizeof lines->line->at, pc - code->lo)
                     : 0;
    if (!n)
        return;
    frame->file = lines->line[n - 1].file;
    frame->line = lines->line[n - 1].line;
}

/* Splits Python's "py::function:file" into function and file. */
static void split_python(struct gt_made_functions *made, struct gt_sym_frame *frame)
{
    static const char python[] = "py::";
    const char *name = frame->func + sizeof python - 1;
    const char *colon =
        strncmp(frame->func, python, sizeof python - 1) == 0 ? strchr(name, ':') : NULL;
    if (!colon || colon == name)
        return;
    struct gt_strbuf t = gt_strbuf_start(made->text, sizeof made->text);
    gt_strbuf_add_n(&t, name, (size_t)(colon - name));
    frame->func = made->text;
    if (!*frame->file)
        frame->file = colon + 1;
}

static const char *name_all(char *text, size_t size, const struct named *named)
{
    struct gt_strbuf t = gt_strbuf_start(text, size);
    for (uint32_t i = named->n; i-- > 0;) {
        gt_strbuf_add(&t, named->code[i]->name);
        gt_strbuf_add(&t, i ? " or " : "");
    }
    return text;
}

bool gt_made_find(struct gt_made_functions *made, uint64_t pc, uint64_t begin_ns, uint64_t end_ns,
                  struct gt_sym_frame *frame)
{
    struct turns turns = {.cut = false};
    struct named named = {.n = 0};
    atomic_store(&made->changing, true);
    update_index(made, UNSORTED_MAX);
    atomic_store(&made->changing, false);
    if (made->broken || !each_at(made, pc, note_turn, &turns) ||
        !choose(made, &turns, begin_ns, end_ns, &named))
        return false;
    *frame = (struct gt_sym_frame){named.code[0]->name, "", 0};
    if (named.codes == 1)
        place_in(named.code[0], pc, frame);
    if (named.n > 1)
        frame->func = name_all(made->text, sizeof made->text, &named);
    else
        split_python(made, frame);
    return true;
}

const struct gt_made_code *gt_made_at(struct gt_made_functions *made, uint64_t lo)
{
    uint32_t newest = 0;
    if (made->broken || !each_at(made, lo, note_newest, &newest) || !made->n)
        return NULL;
    const struct gt_made_code *code = &codes_of(made)[newest];
    return newest >= made->gone && code->lo == lo && code->name ? code : NULL;
}

void gt_made_clear(struct gt_made_functions *made)
{
    gt_vector_empty(&made->codes);
    gt_vector_empty(&made->index);
    made->n = made->indexed = made->room = made->gone = 0;
    made->broken = false;
    made->dropped_ns = 0;
    gt_arena_free(&made->arena);
}

/* Drops everything if the fork came in the middle of a change; the memory is lost. */
void gt_made_inherit(struct gt_made_functions *made)
{
    if (atomic_load(&made->changing))
        *made = (struct gt_made_functions){.n = 0};
}
