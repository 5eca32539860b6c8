/*
 * See die_names.h. A linkage name is a complete name. Functions without external linkage have none:
 * their names are composed from the scopes around the DIE that declares them.
 */
#include "die_names.h"

#include "demangle.h"

#include "encoder/base/strbuf.h"

#define HOPS_MAX 16   /* abstract origin → specification → …; damaged DWARF has cycles */
#define SCOPES_MAX 32 /* namespaces within namespaces */
#define UNNAMED "{unnamed}"

/* Keeps a text under the address of the DIE or mangled name from which it was made. */
static const char *remember(struct gt_names *names, const void *origin, const char *text)
{
    const char *kept = gt_arena_text(names->arena, text);
    uint64_t *slot = gt_memo_at(&names->memo, (uint64_t)(uintptr_t)origin);
    if (slot)
        *slot = (uint64_t)(uintptr_t)kept;
    return kept;
}

static const char *known(struct gt_names *names, const void *origin)
{
    return (const char *)(uintptr_t)gt_memo_find(&names->memo, (uint64_t)(uintptr_t)origin);
}

const char *gt_names_of_symbol(struct gt_names *names, const char *symbol)
{
    const char *name = known(names, symbol);
    if (name)
        return name;
    name = gt_demangle(symbol, names->buf, sizeof names->buf);
    return name == symbol ? symbol : remember(names, symbol, name);
}

static const char *text_of(const struct gt_elfutils *dw, Dwarf_Die *die, unsigned attribute)
{
    Dwarf_Attribute a;
    return dw->dwarf_formstring(dw->dwarf_attr(die, attribute, &a));
}

static bool stays_in_unit(const Dwarf_Attribute *reference)
{
    switch (reference->form) {
    case DW_FORM_ref1:
    case DW_FORM_ref2:
    case DW_FORM_ref4:
    case DW_FORM_ref8:
    case DW_FORM_ref_udata: return true;
    default: return false;
    }
}

/* Moves *die to the DIE of which it is an instance or the definition. */
static bool follow(struct gt_units *units, Dwarf_Die *die)
{
    const struct gt_elfutils *dw = units->dw;
    Dwarf_Attribute a;
    Dwarf_Die origin;
    if (!dw->dwarf_attr(die, DW_AT_abstract_origin, &a) &&
        !dw->dwarf_attr(die, DW_AT_specification, &a))
        return false;
    if (!stays_in_unit(&a) && !gt_units_need_all(units))
        return false;
    if (!dw->dwarf_formref_die(&a, &origin))
        return false;
    *die = origin;
    return true;
}

/* The mangled name of a DIE, or of the DIE of which it is an instance. *at ends where the chain
 * ends. */
static const char *linkage_name(struct gt_units *units, Dwarf_Die *at, const char **plain)
{
    const struct gt_elfutils *dw = units->dw;
    *plain = NULL;
    int hops = 0;
    do {
        const char *mangled = text_of(dw, at, DW_AT_linkage_name);
        if (!mangled)
            mangled = text_of(dw, at, DW_AT_MIPS_linkage_name);
        if (mangled)
            return mangled;
        if (!*plain)
            *plain = text_of(dw, at, DW_AT_name);
    } while (hops++ < HOPS_MAX && follow(units, at));
    return NULL;
}

static bool in_file(const struct gt_units *units, const Dwarf_Die *die)
{
    return units->dw->dwarf_cu_getdwarf(die->cu) == units->dwarf;
}

/*
 * The name of a scope. *whole: the name includes all scopes around it. Moves *die to the scope's
 * declaration, since a definition may stand outside the scopes of its declaration.
 */
static const char *scope_name(struct gt_names *names, struct gt_units *units, Dwarf_Die *die,
                              bool *whole)
{
    int tag = units->dw->dwarf_tag(die);
    const char *plain, *mangled = linkage_name(units, die, &plain);
    *whole = mangled && tag == DW_TAG_subprogram;
    if (*whole)
        return gt_names_of_symbol(names, mangled);
    return plain ? plain : tag == DW_TAG_namespace ? "(anonymous namespace)" : UNNAMED;
}

/* Appends "a::b::" for the scopes around the DIE at offset. */
static void qualify(struct gt_names *names, struct gt_units *units, struct gt_strbuf *t,
                    Dwarf_Off offset)
{
    const char *name[SCOPES_MAX];
    int n = 0;
    bool whole = false;
    struct gt_found scope;
    struct gt_unit *unit = gt_units_scope_of(units, offset, &scope);
    while (unit && scope.in && n < SCOPES_MAX && !whole) {
        Dwarf_Die die;
        Dwarf_Off where = unit->start + scope.in->scope[scope.id].start;
        scope = gt_scope_around(scope);
        if (!units->dw->dwarf_offdie(units->dwarf, where, &die))
            continue;
        bool function = units->dw->dwarf_tag(&die) == DW_TAG_subprogram;
        name[n++] = scope_name(names, units, &die, &whole);
        if (function && in_file(units, &die) && units->dw->dwarf_dieoffset(&die) != where)
            unit = gt_units_scope_of(units, units->dw->dwarf_dieoffset(&die), &scope);
    }
    while (n--) {
        gt_strbuf_add(t, name[n]);
        gt_strbuf_add(t, "::");
    }
}

/* Names the class of a lambda, which gcc leaves without a name. */
static void name_lambda(struct gt_strbuf *scopes, const char *start, const char *function)
{
    static const char unnamed[] = UNNAMED "::";
    size_t n = sizeof unnamed - 1;
    if (strcmp(function, "operator()") == 0 && (size_t)(scopes->pos - start) >= n &&
        memcmp(scopes->pos - n, unnamed, n) == 0) {
        scopes->pos -= n;
        gt_strbuf_add(scopes, "{lambda}::");
    }
}

static const char *compose(struct gt_names *names, struct gt_units *units, Dwarf_Die *origin,
                           const char *name)
{
    const char *text = known(names, origin->addr);
    if (text)
        return text;
    struct gt_strbuf t = gt_strbuf_start(names->more, sizeof names->more);
    /* A DIE in dwz's common part has its scopes there, which our index does not cover. */
    if (in_file(units, origin))
        qualify(names, units, &t, units->dw->dwarf_dieoffset(origin));
    name_lambda(&t, names->more, name);
    gt_strbuf_add(&t, name);
    return remember(names, origin->addr, names->more);
}

const char *gt_names_of_die(struct gt_names *names, struct gt_units *units, Dwarf_Die *die,
                            bool *linked)
{
    Dwarf_Die at = *die;
    const char *plain, *mangled = linkage_name(units, &at, &plain);
    *linked = mangled != NULL;
    if (mangled)
        return gt_names_of_symbol(names, mangled);
    return plain ? compose(names, units, &at, plain) : NULL;
}
