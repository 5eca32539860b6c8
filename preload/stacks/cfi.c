/*
 * See cfi.h. The formats are those of DWARF 5, section 6.4, with the changes of the System V and
 * Linux ABIs (LSB core, "Exception Frames").
 *
 * A table sorted by address (.eh_frame_hdr) leads to the frame description entry (FDE) of a
 * function. The FDE leads to the part that it has in common with others (CIE). Both hold programs.
 * Run up to an address, they say where registers are saved there.
 */
#include "cfi.h"

#include "encoder/base/sort.h"

#include <stdbool.h>
#include <string.h>

/* Reading ------------------------------------------------------------------------------------ */

struct reader {
    const uint8_t *p, *end;
    bool bad; /* went past the end, or met something unknown; all that is read afterwards is 0 */
};

static bool take(struct reader *r, size_t n)
{
    if (r->bad || (size_t)(r->end - r->p) < n) {
        r->bad = true;
        return false;
    }
    r->p += n;
    return true;
}

static uint64_t read_uint(struct reader *r, size_t n)
{
    uint64_t v = 0;
    if (take(r, n))
        memcpy(&v, r->p - n, n); /* little-endian, as all architectures we run on */
    return v;
}

static int64_t read_int(struct reader *r, size_t n)
{
    unsigned unused = 64 - 8 * (unsigned)n;
    return (int64_t)(read_uint(r, n) << unused) >> unused;
}

static uint64_t read_uleb(struct reader *r)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = (uint8_t)read_uint(r, 1);
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return v;
    }
    r->bad = true;
    return 0;
}

static int64_t read_sleb(struct reader *r)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = (uint8_t)read_uint(r, 1);
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return (byte & 0x40) && shift < 57 ? (int64_t)(v | -(1ull << (shift + 7))) : (int64_t)v;
    }
    r->bad = true;
    return 0;
}

/* Encoded pointers (DW_EH_PE_*): a format, and what the value is relative to. */
enum { PE_ABSPTR = 0, PE_UDATA2 = 2, PE_UDATA4, PE_UDATA8, PE_SDATA2 = 10, PE_SDATA4, PE_SDATA8 };
enum { PE_PCREL = 0x10, PE_DATAREL = 0x30, PE_INDIRECT = 0x80, PE_OMIT = 0xff };

static uint64_t read_format(struct reader *r, uint8_t encoding)
{
    switch (encoding & 0x0f) {
    case PE_ABSPTR:
    case PE_UDATA8:
    case PE_SDATA8: return read_uint(r, 8);
    case PE_UDATA2: return read_uint(r, 2);
    case PE_UDATA4: return read_uint(r, 4);
    case PE_SDATA2: return (uint64_t)read_int(r, 2);
    case PE_SDATA4: return (uint64_t)read_int(r, 4);
    }
    r->bad = true;
    return 0;
}

static uint64_t read_pointer(struct reader *r, uint8_t encoding)
{
    uint64_t at = (uintptr_t)r->p;
    uint64_t v = read_format(r, encoding);
    switch (encoding & 0xf0) {
    case 0: return v;
    case PE_PCREL: return at + v;
    }
    r->bad = true;
    return 0;
}

/* Rules -------------------------------------------------------------------------------------- */

enum where {
    SAME,
    UNDEFINED,
    SAVED,  /* at CFA + offset */
    AT_FP,  /* at the address in fp */
    OFFSET, /* CFA only: reg + offset */
    DEREF,  /* CFA only: the word at reg + offset */
    PLT,    /* CFA only: see cfa_expression; offset: 8 times the first byte after the push */
    ODD,
};

struct rule {
    uint8_t where; /* enum where */
    uint8_t reg;
    int32_t offset;
};

struct rules {
    struct rule cfa, fp, ra;
};

/* An offset that no frame has makes the rule odd, not wrong. */
static struct rule rule_of(enum where where, uint64_t reg, int64_t offset)
{
    bool fits = reg <= UINT8_MAX && offset >= INT32_MIN && offset <= INT32_MAX;
    return fits ? (struct rule){(uint8_t)where, (uint8_t)reg, (int32_t)offset}
                : (struct rule){.where = ODD};
}

enum { OP_DEREF = 0x06, OP_LIT0 = 0x30, OP_BREG0 = 0x70, OP_BREG_LAST = 0x8f };

/* reg + offset, perhaps followed by one more operation. */
static struct rule simple_expression(struct reader e, enum where plain, enum where deref)
{
    uint64_t op = read_uint(&e, 1);
    int64_t offset = read_sleb(&e);
    if (e.bad || op < OP_BREG0 || op > OP_BREG_LAST)
        return (struct rule){.where = ODD};
    if (e.p == e.end)
        return rule_of(plain, op - OP_BREG0, offset);
    if (e.end - e.p == 1 && *e.p == OP_DEREF)
        return rule_of(deref, op - OP_BREG0, offset);
    return (struct rule){.where = ODD};
}

/*
 * The CFA by an expression. Linkers write one for the procedure linkage table of x86-64. In each
 * 16-byte entry the CFA is rsp + 8 for the first instructions, and rsp + 16 for those after the
 * push.
 */
static struct rule cfa_expression(struct reader e)
{
    /* breg7+8, breg16+0, lit15, and, lit<n>, ge, lit3, shl, plus */
    static const uint8_t plt[] = {0x77, 8, 0x80, 0, 0x3f, 0x1a, 0, 0x2a, 0x33, 0x24, 0x22};
    enum { LIT = 6 };
    if (!e.bad && GT_ARCH_REG_SP == 7 && e.end - e.p == sizeof plt && memcmp(e.p, plt, LIT) == 0 &&
        memcmp(e.p + LIT + 1, plt + LIT + 1, sizeof plt - LIT - 1) == 0)
        return rule_of(PLT, GT_ARCH_REG_SP, 8 * (e.p[LIT] - OP_LIT0));
    return simple_expression(e, OFFSET, DEREF);
}

static struct rule register_expression(struct reader e)
{
    struct rule r = simple_expression(e, AT_FP, ODD);
    return r.reg == (uint8_t)GT_ARCH_REG_FP && r.offset == 0 ? r : (struct rule){.where = ODD};
}

/* Programs ----------------------------------------------------------------------------------- */

struct cie {
    struct reader program;
    uint64_t code_align;
    int64_t data_align;
    uint8_t pointer_encoding;
    bool augmented; /* FDEs have augmentation data */
    bool signal;
};

#define REMEMBERED_MAX 8

struct machine {
    const struct cie *cie;
    struct rules now, initial;
    struct rules remembered[REMEMBERED_MAX];
    uint32_t depth;
    uint64_t loc, pc;
};

static void set_rule(struct machine *m, uint64_t reg, struct rule rule)
{
    if (reg == (uint64_t)GT_ARCH_REG_FP)
        m->now.fp = rule;
    else if (reg == (uint64_t)GT_ARCH_REG_RA)
        m->now.ra = rule;
}

static void set_saved(struct machine *m, uint64_t reg, uint64_t factored)
{
    set_rule(m, reg, rule_of(SAVED, 0, (int64_t)(factored * (uint64_t)m->cie->data_align)));
}

static void restore(struct machine *m, uint64_t reg)
{
    set_rule(m, reg, reg == (uint64_t)GT_ARCH_REG_FP ? m->initial.fp : m->initial.ra);
}

static void set_cfa_offset(struct machine *m, int64_t offset)
{
    m->now.cfa = m->now.cfa.where == OFFSET ? rule_of(OFFSET, m->now.cfa.reg, offset)
                                            : (struct rule){.where = ODD};
}

static struct reader read_block(struct reader *r)
{
    uint64_t n = read_uleb(r);
    struct reader block = {r->p, r->p, false};
    if (take(r, n))
        block.end = r->p;
    block.bad = r->bad;
    return block;
}

enum {
    CFA_ADVANCE_LOC = 0x40, /* these three have an operand in the low six bits */
    CFA_OFFSET = 0x80,
    CFA_RESTORE = 0xc0,
    CFA_NOP = 0,
    CFA_SET_LOC,
    CFA_ADVANCE_LOC1,
    CFA_ADVANCE_LOC2,
    CFA_ADVANCE_LOC4,
    CFA_OFFSET_EXTENDED,
    CFA_RESTORE_EXTENDED,
    CFA_UNDEFINED,
    CFA_SAME_VALUE,
    CFA_REGISTER,
    CFA_REMEMBER_STATE,
    CFA_RESTORE_STATE,
    CFA_DEF_CFA,
    CFA_DEF_CFA_REGISTER,
    CFA_DEF_CFA_OFFSET,
    CFA_DEF_CFA_EXPRESSION,
    CFA_EXPRESSION,
    CFA_OFFSET_EXTENDED_SF,
    CFA_DEF_CFA_SF,
    CFA_DEF_CFA_OFFSET_SF,
    CFA_VAL_OFFSET,
    CFA_VAL_OFFSET_SF,
    CFA_VAL_EXPRESSION,
    CFA_AARCH64_NEGATE_RA_STATE_WITH_PC = 0x2c,
    CFA_AARCH64_NEGATE_RA_STATE = 0x2d, /* the return address is signed, see gt_arch_code */
    CFA_GNU_ARGS_SIZE = 0x2e,
    CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

static void advance(struct machine *m, uint64_t delta)
{
    m->loc += delta * m->cie->code_align;
}

static void remember(struct machine *m, struct reader *r)
{
    if (m->depth < REMEMBERED_MAX)
        m->remembered[m->depth++] = m->now;
    else
        r->bad = true;
}

static void recall(struct machine *m, struct reader *r)
{
    if (m->depth > 0)
        m->now = m->remembered[--m->depth];
    else
        r->bad = true;
}

/* Operands are read in separate statements: the order of evaluation in a call is not defined. */
static void extended(struct machine *m, struct reader *r, uint8_t op)
{
    uint64_t reg;
    switch (op) {
    case CFA_NOP:
    case CFA_AARCH64_NEGATE_RA_STATE_WITH_PC:
    case CFA_AARCH64_NEGATE_RA_STATE: break;
    case CFA_SET_LOC: m->loc = read_pointer(r, m->cie->pointer_encoding); break;
    case CFA_ADVANCE_LOC1: advance(m, read_uint(r, 1)); break;
    case CFA_ADVANCE_LOC2: advance(m, read_uint(r, 2)); break;
    case CFA_ADVANCE_LOC4: advance(m, read_uint(r, 4)); break;
    case CFA_OFFSET_EXTENDED:
        reg = read_uleb(r);
        set_saved(m, reg, read_uleb(r));
        break;
    case CFA_RESTORE_EXTENDED: restore(m, read_uleb(r)); break;
    case CFA_UNDEFINED: set_rule(m, read_uleb(r), (struct rule){.where = UNDEFINED}); break;
    case CFA_SAME_VALUE: set_rule(m, read_uleb(r), (struct rule){.where = SAME}); break;
    case CFA_REGISTER:
    case CFA_VAL_OFFSET:
    case CFA_VAL_OFFSET_SF: /* the operand has as many bytes, signed or not */
        reg = read_uleb(r);
        read_uleb(r);
        set_rule(m, reg, (struct rule){.where = ODD});
        break;
    case CFA_REMEMBER_STATE: remember(m, r); break;
    case CFA_RESTORE_STATE: recall(m, r); break;
    case CFA_DEF_CFA:
        reg = read_uleb(r);
        m->now.cfa = rule_of(OFFSET, reg, (int64_t)read_uleb(r));
        break;
    case CFA_DEF_CFA_SF:
        reg = read_uleb(r);
        m->now.cfa =
            rule_of(OFFSET, reg, (int64_t)((uint64_t)read_sleb(r) * (uint64_t)m->cie->data_align));
        break;
    case CFA_DEF_CFA_REGISTER:
        m->now.cfa = m->now.cfa.where == OFFSET ? rule_of(OFFSET, read_uleb(r), m->now.cfa.offset)
                                                : rule_of(ODD, read_uleb(r), 0);
        break;
    case CFA_DEF_CFA_OFFSET: set_cfa_offset(m, (int64_t)read_uleb(r)); break;
    case CFA_DEF_CFA_OFFSET_SF:
        set_cfa_offset(m, (int64_t)((uint64_t)read_sleb(r) * (uint64_t)m->cie->data_align));
        break;
    case CFA_DEF_CFA_EXPRESSION: m->now.cfa = cfa_expression(read_block(r)); break;
    case CFA_EXPRESSION:
        reg = read_uleb(r);
        set_rule(m, reg, register_expression(read_block(r)));
        break;
    case CFA_VAL_EXPRESSION:
        reg = read_uleb(r);
        read_block(r);
        set_rule(m, reg, (struct rule){.where = ODD});
        break;
    case CFA_OFFSET_EXTENDED_SF:
        reg = read_uleb(r);
        set_saved(m, reg, (uint64_t)read_sleb(r));
        break;
    case CFA_GNU_ARGS_SIZE: read_uleb(r); break;
    case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
        reg = read_uleb(r);
        set_saved(m, reg, -read_uleb(r));
        break;
    default: r->bad = true;
    }
}

/* Runs a program up to m->pc. false: the program cannot be understood. */
static bool run(struct machine *m, struct reader r)
{
    while (!r.bad && r.p < r.end && m->loc <= m->pc) {
        uint8_t op = (uint8_t)read_uint(&r, 1), low = op & 0x3f;
        switch (op & 0xc0) {
        case CFA_ADVANCE_LOC: advance(m, low); break;
        case CFA_OFFSET: set_saved(m, low, read_uleb(&r)); break;
        case CFA_RESTORE: restore(m, low); break;
        default: extended(m, &r, op);
        }
        if (m->loc > m->pc)
            break; /* the rest is for later addresses: its bytes are not read */
    }
    return !r.bad;
}

/* Entries ------------------------------------------------------------------------------------ */

/* A reader of the entry at p, from behind its length to its end. */
static struct reader entry_at(const struct gt_cfi_object *o, const uint8_t *p)
{
    struct reader r = {p, o->hi, p < o->lo || p >= o->hi};
    uint64_t length = read_uint(&r, 4);
    if (length == 0 || length >= 0xfffffff0u || r.bad || length > (uint64_t)(r.end - r.p))
        r.bad = true;
    else
        r.end = r.p + length;
    return r;
}

/* Reads the augmentation "zPLRSB…" and its data. false: it is unknown. */
static bool read_augmentation(struct reader *r, const char *text, struct cie *cie)
{
    if (!*text)
        return true;
    if (*text != 'z')
        return false;
    cie->augmented = true;
    struct reader data = read_block(r);
    for (const char *c = text + 1; *c; c++) {
        uint8_t encoding;
        switch (*c) {
        case 'R': cie->pointer_encoding = (uint8_t)read_uint(&data, 1); break;
        case 'P':
            encoding = (uint8_t)read_uint(&data, 1);
            read_format(&data, encoding);
            break;
        case 'L': read_uint(&data, 1); break;
        case 'S': cie->signal = true; break;
        case 'B': /* aarch64: return addresses are signed with the other key */ break;
        default: return false;
        }
    }
    return !data.bad;
}

static bool read_cie(const struct gt_cfi_object *o, const uint8_t *p, struct cie *cie)
{
    struct reader r = entry_at(o, p);
    uint64_t id = read_uint(&r, 4), version = read_uint(&r, 1);
    const char *text = (const char *)r.p;
    while (read_uint(&r, 1))
        ;
    *cie = (struct cie){.code_align = read_uleb(&r)};
    cie->data_align = read_sleb(&r);
    uint64_t ra = version == 1 ? read_uint(&r, 1) : read_uleb(&r);
    if (r.bad || id != 0 || (version != 1 && version != 3) || ra != (uint64_t)GT_ARCH_REG_RA)
        return false;
    if (!read_augmentation(&r, text, cie))
        return false;
    cie->program = r;
    return !r.bad;
}

static bool aligned(int32_t offset)
{
    return offset % (int)sizeof(uintptr_t) == 0;
}

/* Where a register is saved, in words below the CFA; 0: not saved. -1: saved elsewhere. */
static int64_t words_below(struct rule rule)
{
    if (rule.where == SAME || rule.where == UNDEFINED)
        return 0;
    return rule.where == SAVED && aligned(rule.offset) && rule.offset < 0 ? -(rule.offset / 8) : -1;
}

static struct rule moved(struct rule rule, int32_t by)
{
    return rule_of(rule.where, rule.reg, (int64_t)rule.offset + by);
}

/*
 * The rules with the CFA above the return address, where the caller's stack pointer is. The entry
 * may give a CFA below it, for words that the procedure linkage table has pushed: so it is on
 * aarch64 while ld.so binds a function.
 */
static struct rules as_caller_sees(struct rules r)
{
    enum { FAR = 512 };
    if (r.cfa.where != OFFSET || r.ra.where != SAVED || r.ra.offset < 0 || r.ra.offset > FAR)
        return r;
    int32_t above = r.ra.offset + (int32_t)sizeof(uintptr_t);
    struct rule fp = r.fp.where == SAVED ? moved(r.fp, -above) : r.fp;
    return (struct rules){moved(r.cfa, above), fp, moved(r.ra, -above)};
}

/* Sets in *l where registers are saved; its kind and CFA are set. false: not expressible. */
static bool set_saved_in(struct gt_layout *l, const struct rules *now)
{
    int64_t ra = words_below(now->ra), fp = words_below(now->fp);
    /*
     * Words below sp are freed. Where calls leave the return address in a register, it is there
     * again.
     */
    if (!GT_ARCH_RA_BELOW && l->kind == GT_FRAME_SP && ra > l->cfa)
        ra = 0;
    int64_t from_ra = fp - ra + 1;
    bool near = GT_ARCH_RA_BELOW
                    ? ra * 8 == GT_ARCH_RA_BELOW
                    : ra <= GT_LAYOUT_RA_MAX || (ra <= l->cfa && l->cfa - ra <= GT_LAYOUT_RA_MAX);
    if (ra < 0 || fp < 0 || !near || (fp && (from_ra < 1 || from_ra > GT_LAYOUT_FP_MAX)))
        return false;
    l->ra_words = (uint32_t)ra;
    l->fp_words = (uint32_t)fp;
    return true;
}

static struct gt_layout layout_of(const struct machine *m)
{
    const struct rules seen = as_caller_sees(m->now), *now = &seen;
    struct gt_layout odd = {.kind = GT_FRAME_ODD}, l = {.cfa = now->cfa.offset / 8};
    if (now->ra.where == UNDEFINED)
        return (struct gt_layout){.kind = GT_FRAME_OUTERMOST};
    if (m->cie->signal && !GT_ARCH_SIGNAL_SP)
        return (struct gt_layout){.kind = GT_FRAME_UNKNOWN};
    if (m->cie->signal) {
        bool linux_frame = now->cfa.where == DEREF && now->cfa.reg == GT_ARCH_REG_SP &&
                           now->cfa.offset == GT_ARCH_SIGNAL_SP;
        return linux_frame ? (struct gt_layout){.kind = GT_FRAME_SIGNAL} : odd;
    }
    if (now->cfa.offset % (1 << GT_ARCH_STACK_ALIGN) || l.cfa < -GT_LAYOUT_CFA_MAX ||
        l.cfa >= GT_LAYOUT_CFA_MAX)
        return odd;
    if (now->cfa.where == DEREF && now->cfa.reg == (uint8_t)GT_ARCH_REG_FP &&
        now->fp.where == AT_FP && GT_ARCH_RA_BELOW != 0 &&
        words_below(now->ra) * 8 == GT_ARCH_RA_BELOW) {
        l.kind = GT_FRAME_REALIGNED;
        l.ra_words = 1;
        return l;
    }
    if (now->cfa.where == PLT) {
        l.kind = GT_FRAME_SP;
        l.cfa = (int64_t)(m->pc & 15) * 8 >= now->cfa.offset ? 2 : 1;
    } else if (now->cfa.where == OFFSET && now->cfa.reg == (uint8_t)GT_ARCH_REG_SP) {
        l.kind = GT_FRAME_SP;
    } else if (now->cfa.where == OFFSET && now->cfa.reg == (uint8_t)GT_ARCH_REG_FP) {
        l.kind = GT_FRAME_FP;
    } else {
        return odd;
    }
    return set_saved_in(&l, now) ? l : odd;
}

static struct gt_layout layout_in_fde(const struct gt_cfi_object *o, const uint8_t *p, uintptr_t pc)
{
    struct gt_layout odd = {.kind = GT_FRAME_ODD};
    struct cie cie;
    struct reader r = entry_at(o, p);
    uint64_t at = (uintptr_t)r.p;
    uint64_t back = read_uint(&r, 4);
    if (r.bad || back == 0 || at - back < (uintptr_t)o->lo || back > at ||
        !read_cie(o, (const uint8_t *)(uintptr_t)(at - back), &cie))
        return odd;
    uint64_t start = read_pointer(&r, cie.pointer_encoding);
    uint64_t size = read_format(&r, cie.pointer_encoding & 0x0f);
    if (cie.augmented)
        read_block(&r);
    if (r.bad)
        return odd;
    if (pc - start >= size)
        return (struct gt_layout){.kind = GT_FRAME_UNKNOWN};
    struct machine m = {.cie = &cie, .loc = start, .pc = pc};
    if (!run(&m, cie.program))
        return odd;
    m.initial = m.now;
    return run(&m, r) ? layout_of(&m) : odd;
}

/* An entry of .eh_frame_hdr's sorted table: two words relative to the start of .eh_frame_hdr. */
struct entry {
    int32_t start, fde;
};

static struct entry table_entry(const uint8_t *table, uint64_t i)
{
    struct entry e;
    memcpy(&e, table + i * sizeof e, sizeof e);
    return e;
}

struct gt_layout gt_cfi_layout(const struct gt_cfi_object *o, uintptr_t pc)
{
    struct gt_layout odd = {.kind = GT_FRAME_ODD};
    struct reader r = {o->hdr, o->hi, o->hdr < o->lo || o->hdr >= o->hi};
    uint8_t version = (uint8_t)read_uint(&r, 1), frame_encoding = (uint8_t)read_uint(&r, 1);
    uint8_t count_encoding = (uint8_t)read_uint(&r, 1), encoding = (uint8_t)read_uint(&r, 1);
    if (r.bad || version != 1 || encoding != (PE_DATAREL | PE_SDATA4) || count_encoding == PE_OMIT)
        return odd;
    read_format(&r, frame_encoding);
    uint64_t n = read_format(&r, count_encoding);
    if (r.bad || n > (uint64_t)(r.end - r.p) / sizeof(struct entry))
        return odd;
    uint64_t base = (uintptr_t)o->hdr;
    size_t before = GT_COUNT_FIRST(n, i, base + (uint64_t)(int64_t)table_entry(r.p, i).start <= pc);
    if (before == 0)
        return (struct gt_layout){.kind = GT_FRAME_UNKNOWN};
    int64_t at = table_entry(r.p, before - 1).fde;
    if (at < o->lo - o->hdr || at >= o->hi - o->hdr)
        return odd;
    return layout_in_fde(o, o->hdr + at, pc);
}
