/* See spin_loop.h. Instructions: Intel's manual, volume 2, appendix A. */
#include "spin_loop.h"

#include <string.h>

/*
 * What a turn reads and changes: bits 0 to 15 are registers, the others are words of the frame,
 * several of which may share a bit.
 */
struct turn {
    uint64_t written, handed_on; /* handed_on: read before the turn has written it */
    bool looks, pauses;          /* looks: reads memory other than its frame */
};

struct code {
    const uint8_t *p, *end;
    struct turn *turn;
    uint8_t rex;
    bool bad;
};

struct jump {
    bool is, always;
    int32_t by;
};

enum { RAX = 0, RSP = 4, RBP = 5, NONE = -1 };

static uint8_t byte(struct code *c)
{
    c->bad |= c->p == c->end;
    return c->bad ? 0 : *c->p++;
}

static int32_t number(struct code *c, size_t size)
{
    uint32_t value = 0;
    for (size_t i = 0; i < size; i++)
        value |= (uint32_t)byte(c) << 8 * i;
    return size == 1 ? (int8_t)value : (int32_t)value;
}

static void reads(struct code *c, int bit)
{
    c->turn->handed_on |= ~c->turn->written & UINT64_C(1) << bit;
}

static void writes(struct code *c, int bit)
{
    c->turn->written |= UINT64_C(1) << bit;
}

/* An operand: a register, a word of the frame, or other memory. */
struct operand {
    int bit; /* NONE: memory */
};

struct operands {
    int reg, extension; /* extension: the bits of `reg` where they are part of the opcode */
    struct operand rm;
    bool is_register;
};

/* Reads ModRM and what belongs to it, with the registers of the address. */
static struct operands operands(struct code *c)
{
    enum { FRAME_BITS = 48 };
    uint8_t modrm = byte(c), mod = modrm >> 6, low = modrm & 7;
    struct operands o = {.reg = (modrm >> 3 & 7) | (c->rex & 4) << 1, .extension = modrm >> 3 & 7};
    int base = low | (c->rex & 1) << 3, index = NONE;
    if (mod == 3) {
        o.rm.bit = base;
        o.is_register = true;
        return o;
    }
    if (low == 4) {
        uint8_t sib = byte(c);
        base = (sib & 7) | (c->rex & 1) << 3;
        index = (sib >> 3 & 7) | (c->rex & 2) << 2;
        index = index == RSP ? NONE : index;
        low = sib & 7;
    }
    bool none = low == 5 && mod == 0; /* an address alone, or one relative to the code */
    int32_t offset = number(c, mod == 1 ? 1 : mod == 2 || none ? 4 : 0);
    if (!none)
        reads(c, base);
    if (index != NONE)
        reads(c, index);
    bool frame = !none && index == NONE && (base == RSP || base == RBP);
    o.rm.bit = frame ? 16 + (int)((uint32_t)(offset >> 3) % FRAME_BITS) : NONE;
    return o;
}

static void read_rm(struct code *c, const struct operands *o)
{
    if (o->rm.bit != NONE)
        reads(c, o->rm.bit);
    else
        c->turn->looks = true;
}

/* Other threads would see what is written to other memory than the frame. */
static void write_rm(struct code *c, const struct operands *o)
{
    c->bad |= o->rm.bit == NONE;
    if (o->rm.bit != NONE)
        writes(c, o->rm.bit);
}

/* add, or, adc, sbb, and, sub, xor, cmp: opcodes 00 to 3d, six forms each. */
static void arithmetic(struct code *c, uint8_t opcode)
{
    enum { XOR = 6, COMPARE = 7 };
    int what = opcode >> 3, form = opcode & 7;
    if (form >= 4) {
        number(c, form == 4 ? 1 : 4);
        reads(c, RAX);
        if (what != COMPARE)
            writes(c, RAX);
        return;
    }
    struct operands o = operands(c);
    bool zeroes = what == XOR && o.rm.bit == o.reg;
    if (!zeroes) {
        read_rm(c, &o);
        reads(c, o.reg);
    }
    if (what == COMPARE)
        return;
    if (form < 2)
        write_rm(c, &o);
    else
        writes(c, o.reg);
}

/* 80, 81, 83: the same with a number. */
static void arithmetic_by_number(struct code *c, uint8_t opcode)
{
    enum { COMPARE = 7 };
    struct operands o = operands(c);
    number(c, opcode == 0x81 ? 4 : 1);
    read_rm(c, &o);
    if (o.extension != COMPARE)
        write_rm(c, &o);
}

/* f6, f7: test with a number, not, neg; fe, ff: inc, dec. */
static void one_operand(struct code *c, uint8_t opcode)
{
    struct operands o = operands(c);
    bool tests = opcode < 0xf8 && o.extension == 0;
    c->bad |= opcode < 0xf8 ? o.extension > 3 || o.extension == 1 : o.extension > 1;
    if (tests)
        number(c, opcode == 0xf6 ? 1 : 4);
    read_rm(c, &o);
    if (!tests)
        write_rm(c, &o);
}

static void two_byte(struct code *c, bool repeats, struct jump *jump)
{
    uint8_t opcode = byte(c);
    if (opcode >> 4 == 8) { /* jcc */
        *jump = (struct jump){.is = true, .by = number(c, 4)};
        return;
    }
    struct operands o = operands(c);
    switch (opcode) {
    case 0x1e: /* endbr64 */ c->bad |= !repeats; break;
    case 0x1f: break; /* nop */
    case 0xae: /* lfence, mfence, sfence */ c->bad |= !o.is_register || o.extension < 5; break;
    case 0xb0: /* cmpxchg: it stores what it always stores, or nothing */
    case 0xb1:
        read_rm(c, &o);
        reads(c, RAX);
        reads(c, o.reg);
        writes(c, RAX);
        break;
    case 0xb6: /* movzx, movsx */
    case 0xb7:
    case 0xbe:
    case 0xbf:
        read_rm(c, &o);
        writes(c, o.reg);
        break;
    default:
        if (opcode >> 4 == 9) { /* setcc: only the low byte */
            write_rm(c, &o);
        } else if (opcode >> 4 == 4) { /* cmovcc */
            read_rm(c, &o);
            reads(c, o.reg);
            writes(c, o.reg);
        } else {
            c->bad = true;
        }
    }
}

static void one_byte(struct code *c, uint8_t opcode, bool repeats, struct jump *jump)
{
    struct operands o;
    if (opcode < 0x40 && (opcode & 7) < 6) {
        arithmetic(c, opcode);
        return;
    }
    if (opcode >> 4 == 7 || opcode == 0xeb || opcode == 0xe9) {
        jump->is = true;
        jump->always = opcode >> 4 != 7;
        jump->by = number(c, opcode == 0xe9 ? 4 : 1);
        return;
    }
    if (opcode >> 4 == 0xb) { /* mov register, number */
        bool eight = c->rex & 8 && opcode >= 0xb8;
        number(c, opcode < 0xb8 ? 1 : 4);
        if (eight)
            number(c, 4);
        writes(c, (opcode & 7) | (c->rex & 1) << 3);
        return;
    }
    switch (opcode) {
    case 0x0f: two_byte(c, repeats, jump); break;
    case 0x63: /* movsxd, mov register, operand */
    case 0x8a:
    case 0x8b:
        o = operands(c);
        read_rm(c, &o);
        writes(c, o.reg);
        break;
    case 0x80:
    case 0x81:
    case 0x83: arithmetic_by_number(c, opcode); break;
    case 0x84: /* test */
    case 0x85:
        o = operands(c);
        read_rm(c, &o);
        reads(c, o.reg);
        break;
    case 0x86: /* xchg: it stores what it always stores, if the register is written each turn */
    case 0x87:
        o = operands(c);
        read_rm(c, &o);
        reads(c, o.reg);
        if (o.rm.bit != NONE)
            writes(c, o.rm.bit);
        writes(c, o.reg);
        break;
    case 0x88: /* mov operand, register */
    case 0x89:
        o = operands(c);
        reads(c, o.reg);
        write_rm(c, &o);
        break;
    case 0x8d: /* lea */
        o = operands(c);
        writes(c, o.reg);
        break;
    case 0x90: c->turn->pauses |= repeats; break;
    case 0xa8:
        number(c, 1);
        reads(c, RAX);
        break;
    case 0xa9:
        number(c, 4);
        reads(c, RAX);
        break;
    case 0xc6: /* mov operand, number */
    case 0xc7:
        o = operands(c);
        number(c, opcode == 0xc6 ? 1 : 4);
        write_rm(c, &o);
        break;
    case 0xf6:
    case 0xf7:
    case 0xfe:
    case 0xff: one_operand(c, opcode); break;
    default: c->bad = true;
    }
}

static struct jump instruction(struct code *c)
{
    struct jump jump = {0};
    bool repeats = false;
    uint8_t opcode = byte(c);
    for (; opcode == 0xf3 || opcode == 0xf0 || opcode == 0x3e; opcode = byte(c)) /* 0xf0: lock */
        repeats |= opcode == 0xf3;
    c->rex = 0;
    if (opcode >> 4 == 4) {
        c->rex = opcode;
        opcode = byte(c);
    }
    one_byte(c, opcode, repeats, &jump);
    return jump;
}

/* The end of the loop that the instruction at `pc` is in, as it begins at *begin. NULL: none. */
static const uint8_t *find_end(const uint8_t *code, size_t size, size_t pc, const uint8_t **begin)
{
    struct turn unused = {0};
    struct code c = {.p = code + pc, .end = code + size, .turn = &unused};
    while (!c.bad) {
        struct jump jump = instruction(&c);
        if (!jump.is || c.bad)
            continue;
        ptrdiff_t to = c.p - code + jump.by;
        if (to >= 0 && to <= (ptrdiff_t)pc) {
            *begin = code + to;
            return c.p;
        }
        if (jump.always || to < (ptrdiff_t)pc)
            return NULL;
    }
    return NULL;
}

bool gt_spin_loop_at(const uint8_t *code, size_t size, size_t pc)
{
    const uint8_t *begin = NULL, *end = find_end(code, size, pc, &begin);
    if (!end || end - begin > GT_SPIN_LOOP_MAX)
        return false;
    struct turn turn = {0};
    struct code c = {.p = begin, .end = end, .turn = &turn};
    bool meets = false; /* the instruction at pc is one of these */
    while (!c.bad && c.p < end) {
        meets |= c.p == code + pc;
        struct jump jump = instruction(&c);
        ptrdiff_t to = c.p - begin + jump.by; /* 0: the next turn begins */
        c.bad |= jump.is && c.p < end && to > 0 && to < end - begin;
    }
    return !c.bad && meets && turn.looks && (turn.pauses || !(turn.handed_on & turn.written));
}
