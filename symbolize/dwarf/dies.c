/* See dies.h. */
#include "dies.h"

#include "encoder/base/varint.h"

#include <dwarf.h>
#include <string.h>

/* Forms -------------------------------------------------------------------------------------- */

/* The size of a form's values, if it is the same in all DIEs of the unit; -1: it varies. */
static int size_of(const struct gt_dies *d, uint64_t form)
{
    switch (form) {
    case DW_FORM_flag_present:
    case DW_FORM_implicit_const: return 0;
    case DW_FORM_data1:
    case DW_FORM_ref1:
    case DW_FORM_flag:
    case DW_FORM_strx1:
    case DW_FORM_addrx1: return 1;
    case DW_FORM_data2:
    case DW_FORM_ref2:
    case DW_FORM_strx2:
    case DW_FORM_addrx2: return 2;
    case DW_FORM_strx3:
    case DW_FORM_addrx3: return 3;
    case DW_FORM_data4:
    case DW_FORM_ref4:
    case DW_FORM_ref_sup4:
    case DW_FORM_strx4:
    case DW_FORM_addrx4: return 4;
    case DW_FORM_data8:
    case DW_FORM_ref8:
    case DW_FORM_ref_sup8:
    case DW_FORM_ref_sig8: return 8;
    case DW_FORM_data16: return 16;
    case DW_FORM_strp:
    case DW_FORM_line_strp:
    case DW_FORM_strp_sup:
    case DW_FORM_sec_offset:
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_GNU_strp_alt: return d->offset_size;
    case DW_FORM_addr: return d->address_size;
    case DW_FORM_ref_addr: return d->version <= 2 ? d->address_size : d->offset_size;
    default: return -1;
    }
}

static const uint8_t *skip(const uint8_t *p, const uint8_t *end, uint64_t n)
{
    return n <= (uint64_t)(end - p) ? p + n : NULL;
}

static const uint8_t *skip_block(const uint8_t *p, const uint8_t *end, size_t length_bytes)
{
    uint64_t n = 0;
    if ((size_t)(end - p) < length_bytes)
        return NULL;
    for (size_t i = 0; i < length_bytes; i++)
        n |= (uint64_t)p[i] << 8 * i;
    return skip(p + length_bytes, end, n);
}

/* The address behind a value; NULL: it ends behind the unit, or the form is not known. */
static const uint8_t *skip_value(const struct gt_dies *d, uint64_t form, const uint8_t *p,
                                 const uint8_t *end)
{
    while (form == DW_FORM_indirect && p < end)
        form = gt_varint_get(&p, end);
    int size = size_of(d, form);
    if (size >= 0)
        return skip(p, end, (uint64_t)size);
    switch (form) {
    case DW_FORM_string: p = memchr(p, 0, (size_t)(end - p)); return p ? p + 1 : NULL;
    case DW_FORM_block1: return skip_block(p, end, 1);
    case DW_FORM_block2: return skip_block(p, end, 2);
    case DW_FORM_block4: return skip_block(p, end, 4);
    case DW_FORM_block:
    case DW_FORM_exprloc: {
        uint64_t length = gt_varint_get(&p, end);
        return skip(p, end, length);
    }
    case DW_FORM_udata:
    case DW_FORM_sdata:
    case DW_FORM_ref_udata:
    case DW_FORM_strx:
    case DW_FORM_addrx:
    case DW_FORM_loclistx:
    case DW_FORM_rnglistx:
    case DW_FORM_GNU_addr_index:
    case DW_FORM_GNU_str_index: gt_varint_get(&p, end); return p;
    default: return NULL;
    }
}

/* Abbreviations ------------------------------------------------------------------------------ */

struct spec {
    uint64_t name, form; /* both 0: end of the list */
};

static struct spec next_spec(const uint8_t **p, const uint8_t *end)
{
    struct spec s = {gt_varint_get(p, end), 0};
    s.form = gt_varint_get(p, end);
    if (s.form == DW_FORM_implicit_const)
        gt_varint_get(p, end); /* signed, but as long as an unsigned one */
    return s;
}

/* Adds the size of one more attribute. */
static void add_size(const struct gt_dies *d, struct gt_shape *shape, struct spec s)
{
    int more = size_of(d, s.form);
    bool fixed = more >= 0, fits = shape->size + more < GT_SIZE_VARIES;
    if (shape->size == GT_SIZE_VARIES)
        return;
    if (s.name == DW_AT_sibling && s.form == DW_FORM_ref4 && !shape->varying)
        shape->sibling_at = shape->size;
    if (fixed && fits) {
        shape->size += (uint16_t)more;
    } else if (!fixed && !shape->varying && s.form < UINT16_MAX) {
        shape->varying = (uint16_t)s.form;
        shape->varying_at = shape->size;
    } else
        shape->size = GT_SIZE_VARIES;
}

/* Fills the shape from the attributes at *p, and moves *p behind them. */
static void describe(const struct gt_dies *d, struct gt_shape *shape, const uint8_t **p,
                     const uint8_t *end)
{
    struct spec s;
    shape->specs = (uint32_t)(*p - d->abbrev.at);
    shape->sibling_at = GT_SIZE_VARIES;
    while ((s = next_spec(p, end)).name || s.form) {
        shape->declares |= s.name == DW_AT_declaration;
        shape->inlined |= s.name == DW_AT_inline;
        shape->has_code |= s.name == DW_AT_high_pc || s.name == DW_AT_ranges;
        add_size(d, shape, s);
    }
}

/* Reads the table up to its end, and stores the shapes for which there is room. Returns the number
 * of codes. */
static size_t read_table(const struct gt_dies *d, struct gt_shape *shape, size_t room)
{
    const uint8_t *p = d->abbrev.at + d->abbrevs, *end = d->abbrev.at + d->abbrev.size;
    uint64_t code, codes = 0;
    while ((code = gt_varint_get(&p, end))) {
        struct gt_shape none, *s = code < room ? &shape[code] : &none;
        *s = (struct gt_shape){.tag = (uint16_t)gt_varint_get(&p, end)};
        s->parent = gt_varint_get(&p, end); /* a byte, 0 or 1 */
        describe(d, s, &p, end);
        codes = code >= codes ? code + 1 : codes;
    }
    return codes;
}

bool gt_dies_open(struct gt_dies *d, struct gt_arena *arena)
{
    if (d->abbrevs >= d->abbrev.size || d->abbrev.size > UINT32_MAX)
        return false;
    size_t codes = read_table(d, NULL, 0);
    /* The codes count from 1, so there are at most as many as the section has bytes. */
    d->shape = codes <= d->abbrev.size ? gt_arena_alloc(arena, codes * sizeof *d->shape) : NULL;
    d->shapes = d->shape ? codes : 0;
    if (d->shape)
        read_table(d, d->shape, codes);
    return d->shape;
}

/* DIEs --------------------------------------------------------------------------------------- */

static const uint8_t *end_of(const struct gt_dies *d)
{
    return d->unit.at + d->unit.size;
}

static bool read_die(const struct gt_dies *d, const uint8_t *at, struct gt_die *die)
{
    const uint8_t *p = at, *end = end_of(d);
    uint64_t code = gt_varint_get(&p, end);
    if (!code || code >= d->shapes || !d->shape[code].specs)
        return false;
    *die = (struct gt_die){at, p, &d->shape[code]};
    return true;
}

/* The address behind a DIE's attributes; NULL: damaged. */
static const uint8_t *skip_attributes(const struct gt_dies *d, const struct gt_die *die)
{
    const uint8_t *p = die->attributes, *end = end_of(d);
    const struct gt_shape *shape = die->shape;
    if (shape->size != GT_SIZE_VARIES && shape->varying) {
        p = skip(p, end, shape->varying_at);
        p = p ? skip_value(d, shape->varying, p, end) : NULL;
        return p ? skip(p, end, (uint64_t)shape->size - shape->varying_at) : NULL;
    }
    if (shape->size != GT_SIZE_VARIES)
        return skip(p, end, shape->size);
    const uint8_t *at = d->abbrev.at + shape->specs;
    const uint8_t *specs_end = d->abbrev.at + d->abbrev.size;
    for (struct spec s; p && ((s = next_spec(&at, specs_end)).name || s.form);)
        p = skip_value(d, s.form, p, end);
    return p;
}

/* The address in a DIE's sibling attribute; NULL: it has none. */
static const uint8_t *said_sibling(const struct gt_dies *d, const struct gt_die *die)
{
    const uint8_t *p = die->attributes, *end = end_of(d);
    uint32_t offset;
    if (die->shape->sibling_at == GT_SIZE_VARIES)
        return NULL;
    p = skip(p, end, die->shape->sibling_at);
    if (!p || (size_t)(end - p) < sizeof offset)
        return NULL;
    memcpy(&offset, p, sizeof offset);
    return offset < d->unit.size && d->unit.at + offset > die->at ? d->unit.at + offset : NULL;
}

/* The address behind a DIE and all its children; NULL: damaged. */
static const uint8_t *skip_die(const struct gt_dies *d, struct gt_die die)
{
    const uint8_t *p = NULL, *end = end_of(d);
    size_t depth = 0;
    for (;;) {
        const uint8_t *sibling = die.shape->parent ? said_sibling(d, &die) : NULL;
        p = sibling ? sibling : skip_attributes(d, &die);
        depth += die.shape->parent && !sibling;
        for (; depth && p && p < end && !*p; p++)
            depth--;
        if (!depth || !p || p >= end)
            return p;
        if (!read_die(d, p, &die))
            return NULL;
    }
}

bool gt_die_at(const struct gt_dies *d, size_t offset, struct gt_die *die)
{
    return offset < d->unit.size && read_die(d, d->unit.at + offset, die);
}

bool gt_die_child(const struct gt_dies *d, const struct gt_die *die, struct gt_die *child)
{
    const uint8_t *p = die->shape->parent ? skip_attributes(d, die) : NULL;
    return p && read_die(d, p, child);
}

bool gt_die_next(const struct gt_dies *d, struct gt_die *die)
{
    const uint8_t *p = skip_die(d, *die);
    return p && read_die(d, p, die);
}
