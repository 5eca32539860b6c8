/* See units.h. */
#include "units.h"

#include <string.h>

enum { HEADER_MAX = 64 };    /* bytes of a unit's header, and some to spare */
enum { ROOM_MAX = 1 << 20 }; /* bytes of room kept from one walk to the next */

#define DEPTH_MAX 200 /* of DIEs within DIEs; ours stay below 40 */

struct walk {
    struct gt_units *units;
    struct gt_unit *unit;
    bool wants_nodes, wants_scopes;
    bool enters_functions; /* else functions are walked on first use */
    const uint8_t *last;   /* the last DIE visited */
};

static void *append(struct gt_list *list)
{
    void *p = gt_pages_grow(list->items, list->n, &list->capacity, list->item);
    if (!p)
        return NULL;
    list->items = p;
    return (char *)p + list->item * list->n++;
}

static void free_list(struct gt_list *list)
{
    gt_pages_free(list->items, list->capacity * list->item);
    *list = (struct gt_list){.item = list->item};
}

/* Copies a list to the arena and empties it. */
static void *settle(struct gt_list *list, struct gt_arena *arena, uint32_t *n)
{
    void *copy = list->n ? gt_arena_copy(arena, list->items, list->n * list->item) : NULL;
    *n = copy ? (uint32_t)list->n : 0;
    list->n = 0;
    return copy;
}

static void add_ranges(struct gt_units *units, Dwarf_Die *die, uint32_t id)
{
    Dwarf_Addr base, start, end;
    for (ptrdiff_t at = 0; (at = units->dw->dwarf_ranges(die, at, &base, &start, &end)) > 0;)
        gt_ranges_add(&units->ranges, start, end, id);
}

/* Units -------------------------------------------------------------------------------------- */

static bool language_qualifies(int language)
{
    switch (language) {
    case DW_LANG_C:
    case DW_LANG_C89:
    case DW_LANG_C99:
    case DW_LANG_C11:
    case DW_LANG_Mips_Assembler: return false;
    default: return true;
    }
}

/* The last known unit that begins at or before the offset. */
static struct gt_unit *last_up_to(const struct gt_units *units, Dwarf_Off offset)
{
    size_t n = GT_COUNT_FIRST(units->n, i, units->unit[i]->start <= offset);
    return n ? units->unit[n - 1] : NULL;
}

/* Unpacks what libdw reads on its way to `upto`: before DWARF 5 it looks into the abbreviations of
 * every unit that it passes. */
static bool need_passed(struct gt_units *units, Dwarf_Off upto)
{
    Dwarf_Off next;
    Dwarf_Half version;
    bool good = gt_packed_need(units->packed, GT_PACKED_INFO, upto);
    while (good && units->seen < upto &&
           units->dw->dwarf_next_unit(units->dwarf, units->seen, &next, NULL, &version, NULL, NULL,
                                      NULL, NULL, NULL) == 0 &&
           next > units->seen) {
        units->seen = next;
        good = version >= 5 || gt_packed_need(units->packed, GT_PACKED_ABBREV, SIZE_MAX);
    }
    return good;
}

/* Reads the header at unit->start, and unpacks the sections that libdw needs for the unit. Whether
 * the unit is good. */
static bool read_header(struct gt_units *units, struct gt_unit *unit)
{
    const struct gt_elfutils *dw = units->dw;
    struct gt_dies *dies = &unit->dies;
    size_t header;
    Dwarf_Die die;
    if (unit->end)
        return unit->good;
    unit->end = unit->start + 1;
    if (!gt_packed_need(units->packed, GT_PACKED_INFO, unit->start + HEADER_MAX) ||
        dw->dwarf_next_unit(units->dwarf, unit->start, &unit->end, &header, &dies->version,
                            &dies->abbrevs, &dies->address_size, &dies->offset_size, NULL, NULL) ||
        unit->end <= unit->start || unit->end - unit->start > UINT32_MAX ||
        !need_passed(units, unit->end) || !gt_packed_need_abbrevs(units->packed, dies->abbrevs))
        return false;
    unit->die = unit->start + header;
    if (!dw->dwarf_offdie(units->dwarf, unit->die, &die))
        return false;
    unit->qualifies = language_qualifies(dw->dwarf_srclang(&die));
    return unit->good = true;
}

/* Appends the unit at `start` to the list. A known unit keeps its place in memory: it may be in
 * use. */
static struct gt_unit *new_unit(struct gt_units *units, struct gt_list *list, Dwarf_Off start)
{
    struct gt_unit **slot = append(list), *unit = last_up_to(units, start);
    if ((!unit || unit->start != start) && (unit = gt_arena_alloc(units->arena, sizeof *unit)))
        unit->start = start;
    if (slot)
        *slot = unit;
    list->n -= slot && !unit;
    return slot ? unit : NULL;
}

static void take(struct gt_units *units, struct gt_list *list)
{
    uint32_t n;
    units->unit = settle(list, units->arena, &n);
    units->n = n;
    free_list(list);
    gt_ranges_flatten(&units->ranges, &units->spans, units->arena);
}

bool gt_units_need_all(struct gt_units *units)
{
    return gt_packed_need(units->packed, GT_PACKED_INFO, SIZE_MAX) &&
           gt_packed_need(units->packed, GT_PACKED_ABBREV, SIZE_MAX);
}

/* Finds all units, by their headers. */
static void find_all(struct gt_units *units)
{
    const struct gt_elfutils *dw = units->dw;
    struct gt_list list = {.item = sizeof(struct gt_unit *)};
    Dwarf_Off next;
    units->all = true;
    if (!gt_units_need_all(units))
        return;
    for (Dwarf_Off at = 0; dw->dwarf_next_unit(units->dwarf, at, &next, NULL, NULL, NULL, NULL,
                                               NULL, NULL, NULL) == 0 &&
                           next > at;
         at = next) {
        Dwarf_Die die;
        struct gt_unit *unit = new_unit(units, &list, at);
        if (!unit)
            break;
        if (read_header(units, unit) && dw->dwarf_offdie(units->dwarf, unit->die, &die))
            add_ranges(units, &die, (uint32_t)list.n - 1);
    }
    take(units, &list);
}

/* An entry of .debug_aranges: the addresses of a unit, up to a pair of zeros. */
struct arange_head {
    uint32_t length; /* of the entry behind this field */
    uint16_t version;
    uint32_t unit;
    uint8_t address_size, segment_size;
    uint32_t padding;
} __attribute__((packed));

/* Adds the entry at p. Returns its size; 0: it is damaged, or not of the usual kind. */
static size_t add_arange(struct gt_units *units, struct gt_list *list, const uint8_t *p,
                         size_t rest)
{
    struct arange_head head;
    uint64_t pair[2];
    if (rest < sizeof head)
        return 0;
    memcpy(&head, p, sizeof head);
    size_t size = (size_t)head.length + 4;
    struct gt_unit *last = list->n ? ((struct gt_unit **)list->items)[list->n - 1] : NULL;
    if (size > rest || size % sizeof pair || head.version != 2 || head.address_size != 8 ||
        head.segment_size || (last && head.unit <= last->start) ||
        !new_unit(units, list, head.unit))
        return 0;
    for (size_t at = sizeof head; at < size; at += sizeof pair) {
        memcpy(pair, p + at, sizeof pair);
        gt_ranges_add(&units->ranges, pair[0], pair[0] + pair[1], (uint32_t)list->n - 1);
    }
    return size;
}

void gt_units_free(struct gt_units *units)
{
    free_list(&units->nodes);
    free_list(&units->scopes);
    gt_ranges_free(&units->ranges);
}

void gt_units_touch(struct gt_units *units, size_t bytes)
{
    enum { TOUCHED_MAX = 1 << 20 };
    units->touched += bytes;
    if (units->touched <= TOUCHED_MAX)
        return;
    units->touched = 0;
    for (int i = 0; i < 2; i++)
        gt_image_cool(units->image[i]);
}

/* The arena holds the units themselves and the names of their files, which callers keep. */
void gt_units_forget(struct gt_units *units)
{
    units->again = 0;
    for (size_t i = 0; i < units->n; i++) {
        struct gt_unit *unit = units->unit[i];
        unit->forgotten |= unit->walked;
        unit->walked = unit->whole = unit->lines.read = false;
        unit->all = (struct gt_inside){.outer = NULL};
        unit->dies.shape = NULL;
    }
}

void gt_units_init(struct gt_units *units, const void *aranges, size_t size)
{
    struct gt_list list = {.item = sizeof(struct gt_unit *)};
    const uint8_t *p = aranges, *end = p + (aranges ? size : 0);
    units->ranges = (struct gt_ranges){.base = units->base, .limit = units->limit};
    units->nodes.item = sizeof(struct gt_node);
    units->scopes.item = sizeof(struct gt_scope);
    size_t step = 0;
    while (p < end && (step = add_arange(units, &list, p, (size_t)(end - p))))
        p += step;
    take(units, &list);
    if (!step)
        find_all(units);
}

static struct gt_unit *unit_of_offset(struct gt_units *units, Dwarf_Off offset)
{
    for (;;) {
        struct gt_unit *unit = last_up_to(units, offset);
        if (unit && read_header(units, unit) && offset < unit->end)
            return unit;
        if (units->all)
            return NULL;
        find_all(units);
    }
}

/* The walk ----------------------------------------------------------------------------------- */

static uint32_t offset_in(const struct walk *w, const struct gt_die *die)
{
    return (uint32_t)(die->at - w->unit->dies.unit.at);
}

static uint32_t add_scope(struct walk *w, const struct gt_die *die, uint32_t parent, bool closed)
{
    struct gt_list *scopes = &w->units->scopes;
    struct gt_scope *scope = w->wants_scopes ? append(scopes) : NULL;
    if (!scope)
        return GT_NO_ID;
    *scope = (struct gt_scope){offset_in(w, die), 0, parent, closed, NULL};
    return (uint32_t)scopes->n - 1;
}

static uint32_t add_node(struct walk *w, const struct gt_die *die, uint32_t parent)
{
    struct gt_units *units = w->units;
    struct gt_node *node = w->wants_nodes ? append(&units->nodes) : NULL;
    Dwarf_Die of;
    if (!node)
        return parent;
    *node = (struct gt_node){offset_in(w, die), parent, NULL};
    uint32_t id = (uint32_t)units->nodes.n - 1;
    if (die->shape->has_code &&
        units->dw->dwarf_offdie(units->dwarf, w->unit->start + node->offset, &of))
        add_ranges(units, &of, id);
    return id;
}

static void walk_children(struct walk *w, const struct gt_die *die, uint32_t node, uint32_t scope,
                          int depth);

/* Visits one DIE. Returns the scope that it opened, or GT_NO_ID. */
static uint32_t visit(struct walk *w, const struct gt_die *die, uint32_t node, uint32_t scope,
                      int depth)
{
    uint32_t inner = GT_NO_ID;
    switch (die->shape->tag) {
    case DW_TAG_subprogram:
        if (die->shape->declares)
            return GT_NO_ID;
        node = die->shape->inlined ? GT_NO_ID : add_node(w, die, GT_NO_ID);
        inner = add_scope(w, die, scope, !w->enters_functions);
        if (!w->enters_functions)
            return inner;
        break;
    case DW_TAG_inlined_subroutine: node = add_node(w, die, node); break;
    case DW_TAG_lexical_block:
    case DW_TAG_try_block:
    case DW_TAG_catch_block: break;
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
    case DW_TAG_interface_type:
        if (!w->unit->qualifies)
            return GT_NO_ID;
        bool closed = !w->enters_functions && die->shape->tag != DW_TAG_namespace &&
                      die->shape->tag != DW_TAG_module;
        inner = add_scope(w, die, scope, closed);
        if (closed)
            return inner;
        break;
    default: return GT_NO_ID;
    }
    walk_children(w, die, node, inner != GT_NO_ID ? inner : scope, depth + 1);
    return inner;
}

static void walk_children(struct walk *w, const struct gt_die *die, uint32_t node, uint32_t scope,
                          int depth)
{
    const struct gt_dies *dies = &w->unit->dies;
    struct gt_die child;
    if (depth > DEPTH_MAX || !gt_die_child(dies, die, &child))
        return;
    for (;;) {
        /* Damage: this sibling lies among the children and was visited before. */
        if (child.at <= w->last)
            return;
        gt_units_touch(w->units, (size_t)(child.at - w->last));
        w->last = child.at;
        uint32_t opened = visit(w, &child, node, scope, depth);
        if (!gt_die_next(dies, &child))
            return;
        if (opened != GT_NO_ID)
            ((struct gt_scope *)w->units->scopes.items)[opened].end = offset_in(w, &child);
    }
}

/* Walks the children of the DIE at an offset in the unit. */
static void walk(struct walk *w, size_t at, struct gt_inside *found)
{
    struct gt_units *units = w->units;
    struct gt_die die;
    if (!gt_die_at(&w->unit->dies, at, &die))
        return;
    w->last = die.at;
    walk_children(w, &die, GT_NO_ID, GT_NO_ID, 0);
    found->node = settle(&units->nodes, units->walks, &found->nodes);
    found->scope = settle(&units->scopes, units->walks, &found->scopes);
    gt_ranges_flatten(&units->ranges, &found->spans, units->walks);
    if (!found->node)
        found->spans.n = 0;
    if (units->nodes.capacity * units->nodes.item > ROOM_MAX)
        gt_units_free(units);
}

/* Prepares the walk of a unit's DIEs, up to the end of the section. */
static bool open_dies(struct gt_units *units, struct gt_unit *unit)
{
    struct gt_dies *dies = &unit->dies;
    uint64_t end = unit->end < units->info.size ? unit->end : units->info.size;
    if (unit->start >= end)
        return false;
    dies->unit =
        (struct gt_dwarf_section){units->info.at + unit->start, (size_t)(end - unit->start)};
    dies->abbrev = units->abbrev;
    return dies->shape || gt_dies_open(dies, units->walks);
}

static void walk_unit(struct gt_units *units, struct gt_unit *unit, bool whole)
{
    struct walk w = {.units = units,
                     .unit = unit,
                     .wants_nodes = true,
                     .wants_scopes = unit->qualifies,
                     .enters_functions = whole};
    units->again += unit->forgotten && !unit->walked;
    unit->walked = true;
    unit->whole = whole;
    if (open_dies(units, unit))
        walk(&w, (size_t)(unit->die - unit->start), &unit->all);
}

/* Walks the inside of a function. of: the function's node in the unit, or else its scope. */
static struct gt_inside *walk_function(struct gt_units *units, struct gt_unit *unit, uint32_t of,
                                       bool is_node)
{
    struct gt_inside *inside = gt_arena_alloc(units->walks, sizeof *inside);
    uint32_t offset = is_node ? unit->all.node[of].offset : unit->all.scope[of].start;
    struct walk w = {.units = units,
                     .unit = unit,
                     .wants_nodes = is_node,
                     .wants_scopes = !is_node,
                     .enters_functions = true};
    if (!inside)
        return NULL;
    *inside = (struct gt_inside){.outer = &unit->all, .of = of};
    walk(&w, offset, inside);
    return inside;
}

/* Lookups ------------------------------------------------------------------------------------ */

struct gt_found gt_units_node(struct gt_units *units, struct gt_unit *unit, uint64_t addr)
{
    if (!unit->walked)
        walk_unit(units, unit, false);
    uint32_t id = gt_spans_find(&unit->all.spans, units->base, addr);
    if (id == GT_NO_ID && !unit->whole) { /* nested functions may lie anywhere */
        walk_unit(units, unit, true);
        id = gt_spans_find(&unit->all.spans, units->base, addr);
    }
    if (id == GT_NO_ID)
        return (struct gt_found){.in = NULL};
    struct gt_node *function = &unit->all.node[id];
    if (!unit->whole && !function->inside)
        function->inside = walk_function(units, unit, id, true);
    const struct gt_inside *inside = unit->whole ? NULL : function->inside;
    uint32_t inner = inside ? gt_spans_find(&inside->spans, units->base, addr) : GT_NO_ID;
    return inner != GT_NO_ID ? (struct gt_found){inside, inner} : (struct gt_found){&unit->all, id};
}

struct gt_unit *gt_units_find(struct gt_units *units, uint64_t addr)
{
    uint32_t id = gt_spans_find(&units->spans, units->base, addr);
    if (id >= units->n && !units->all) {
        find_all(units);
        id = gt_spans_find(&units->spans, units->base, addr);
    }
    return id < units->n && read_header(units, units->unit[id]) ? units->unit[id] : NULL;
}

static bool scope_contains(struct gt_found scope, uint32_t offset)
{
    while (scope.in && scope.in->scope[scope.id].end == 0)
        scope = gt_scope_around(scope);
    return !scope.in || offset < scope.in->scope[scope.id].end;
}

/* The innermost scope of `in` that contains the offset. If there is none, the scope around `in`. */
static struct gt_found find_scope(const struct gt_inside *in, uint32_t offset)
{
    size_t n = offset ? gt_count_up_to(in->scope, in->scopes, sizeof *in->scope, 4, offset - 1) : 0;
    struct gt_found found =
        gt_found_around((struct gt_found){in, 0}, n ? (uint32_t)n - 1 : GT_NO_ID);
    while (found.in == in && !scope_contains(found, offset))
        found = gt_scope_around(found);
    return found;
}

struct gt_unit *gt_units_scope_of(struct gt_units *units, Dwarf_Off offset, struct gt_found *scope)
{
    struct gt_unit *unit = unit_of_offset(units, offset);
    *scope = (struct gt_found){.in = NULL};
    if (!unit || !unit->qualifies)
        return unit;
    if (!unit->walked)
        walk_unit(units, unit, false);
    uint32_t at = (uint32_t)(offset - unit->start);
    *scope = find_scope(&unit->all, at);
    struct gt_scope *function = scope->in ? &unit->all.scope[scope->id] : NULL;
    if (function && function->closed && !function->inside)
        function->inside = walk_function(units, unit, scope->id, false);
    if (function && function->inside)
        *scope = find_scope(function->inside, at);
    return unit;
}
