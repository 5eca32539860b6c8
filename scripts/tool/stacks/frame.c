/*
 * See frame.h. Of a thread that was not stopped, the stack pointer is known but no frame pointer. A
 * function with a frame pointer sets it to the stack pointer at its beginning. Then it pushes
 * registers and makes room: its first instructions say how much. So the frame pointer is a known
 * distance above the stack pointer that the function had at its call. A candidate is right if the
 * return address beside it follows a call to this very function. (A call through a register may be
 * to any function. Then the size of the frame must do.)
 */
#include "frame.h"

#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)

enum { RBP = 6, CANDIDATES = 8, PROLOGUE = 96 };

struct function {
    const struct gt_still *still;
    Dwarf_CFI *cfi;
    Dwarf_Addr bias;
    uint64_t entry, set;       /* its first address, and where its frame pointer is set */
    uint64_t room[CANDIDATES]; /* possible distances from its stack pointer up to the frame */
    unsigned rooms;
};

static bool read_at(const struct gt_still *s, uint64_t at, void *to, size_t size)
{
    return pread(s->memory, to, size, (off_t)at) == (ssize_t)size;
}

/* The function's prologue -----------------------------------------------------------------------
 */

enum row { NO_ROW, BY_FRAME, BY_STACK, OTHER_ROW };

/* How the caller's frame is found at pc, and from which address on. */
static enum row row_at(const struct gt_elfutils *dw, const struct function *f, uint64_t pc,
                       uint64_t *begin, Dwarf_Frame **row)
{
    enum { RSP = 7 };
    Dwarf_Op *ops;
    size_t n;
    Dwarf_Addr from, to;
    bool signal;
    if (dw->dwarf_cfi_addrframe(f->cfi, pc - f->bias, row) != 0 || /* never freed: by whose libc? */
        dw->dwarf_frame_info(*row, &from, &to, &signal) < 0 ||
        dw->dwarf_frame_cfa(*row, &ops, &n) != 0 || n != 1)
        return NO_ROW;
    *begin = from + f->bias;
    bool wide = ops->atom == DW_OP_bregx;
    uint64_t base = wide ? ops->number : (uint64_t)ops->atom - DW_OP_breg0;
    uint64_t offset = wide ? ops->number2 : ops->number;
    return base == RBP && offset == 16  ? BY_FRAME
           : base == RSP && offset == 8 ? BY_STACK
                                        : OTHER_ROW;
}

/* The bytes of registers that the function saves below its frame pointer, by the lowest one. */
static uint64_t kept_below(const struct gt_elfutils *dw, Dwarf_Frame *row)
{
    static const int saved[] = {3, 12, 13, 14, 15};
    uint64_t most = 0;
    for (size_t i = 0; i < sizeof saved / sizeof *saved; i++) {
        Dwarf_Op memory[3], *ops;
        size_t n;
        if (dw->dwarf_frame_register(row, saved[i], memory, &ops, &n) != 0 || n != 2 ||
            ops[0].atom != DW_OP_call_frame_cfa || ops[1].atom != DW_OP_plus_uconst)
            continue;
        uint64_t below = -ops[1].number - 16;
        if (below > most && below <= sizeof saved / sizeof *saved * 8)
            most = below;
    }
    return most;
}

static void add_room(struct function *f, uint64_t room)
{
    for (unsigned i = 0; i < f->rooms; i++) {
        if (f->room[i] == room)
            return;
    }
    if (f->rooms < CANDIDATES)
        f->room[f->rooms++] = room;
}

/* Finds every "sub $n,%rsp" in the prologue: one of them makes the room. */
static void find_rooms(struct function *f, const uint8_t *code, size_t size, uint64_t kept)
{
    for (size_t i = 0; i + 7 <= size; i++) {
        int32_t wide;
        memcpy(&wide, code + i + 3, sizeof wide);
        if (code[i] != 0x48 || code[i + 2] != 0xec)
            continue;
        if (code[i + 1] == 0x83)
            add_room(f, kept + code[i + 3]);
        else if (code[i + 1] == 0x81)
            add_room(f, kept + (uint32_t)wide);
    }
    add_room(f, kept);
}

/* Examines the function's prologue. False: it sets no frame pointer, or not as compilers do. */
static bool look_at_function(const struct gt_elfutils *dw, Dwfl *dwfl, struct function *f,
                             uint64_t pc)
{
    uint8_t code[PROLOGUE];
    Dwarf_Frame *row, *earlier;
    Dwfl_Module *m = dw->dwfl_addrmodule(dwfl, pc);
    f->cfi = m ? dw->dwfl_module_eh_cfi(m, &f->bias) : NULL;
    if (!f->cfi || row_at(dw, f, pc, &f->set, &row) != BY_FRAME)
        return false;
    f->entry = f->set;
    for (enum row kind = BY_FRAME; kind != BY_STACK;) {
        kind = row_at(dw, f, f->entry - 1, &f->entry, &earlier);
        if (kind == NO_ROW)
            return false;
        f->set = kind == BY_FRAME ? f->entry : f->set;
    }
    size_t size = pc - f->set < sizeof code ? pc - f->set : sizeof code;
    if (!read_at(f->still, f->set, code, size))
        return false;
    find_rooms(f, code, size, kept_below(dw, row));
    return true;
}

/* Its caller ------------------------------------------------------------------------------------
 */

/* The target of a linker's stub; or `target` itself. */
static uint64_t behind_stub(const struct function *f, uint64_t target)
{
    uint8_t code[16];
    int32_t to;
    uint64_t real;
    if (!read_at(f->still, target, code, sizeof code))
        return target;
    size_t i = code[0] == 0xf3 && code[1] == 0x0f ? 4 : 0;
    i += code[i] == 0xf2;
    memcpy(&to, code + i + 2, sizeof to);
    bool stub = code[i] == 0xff && code[i + 1] == 0x25;
    return stub && read_at(f->still, target + i + 6 + (uint64_t)(int64_t)to, &real, sizeof real)
               ? real
               : target;
}

static bool is_entry(const struct function *f, uint64_t target)
{
    target = behind_stub(f, target);
    return target == f->entry || target == f->entry + 4; /* behind the endbr64 */
}

/* The length of an indirect call by its ModRM and SIB bytes; 0: it is no call. */
static size_t length_of_call(uint8_t modrm, uint8_t sib)
{
    static const size_t more[] = {0, 1, 4, 0};
    unsigned mode = modrm >> 6, base = modrm & 7;
    bool scaled = mode != 3 && base == 4;
    if ((modrm >> 3 & 7) != 2)
        return 0;
    base = scaled ? sib & 7 : base;
    return 2 + more[mode] + scaled + (mode == 0 && base == 5 ? 4 : 0);
}

/* Whether a call ends at `back` that calls this function, or an address only known at run time. */
static bool is_called_before(const struct function *f, uint64_t back)
{
    uint8_t code[8];
    int32_t to;
    uint64_t real;
    const struct gt_mapping *m = gt_still_mapping(f->still, back);
    if (!m || m->writable || !read_at(f->still, back - sizeof code, code, sizeof code))
        return false;
    memcpy(&to, code + 4, sizeof to);
    uint64_t target = back + (uint64_t)(int64_t)to;
    if (code[3] == 0xe8 && is_entry(f, target))
        return true;
    if (code[2] == 0xff && code[3] == 0x15)
        return read_at(f->still, target, &real, sizeof real) && is_entry(f, real);
    for (size_t n = 2; n <= 7; n++) {
        if (code[8 - n] == 0xff && length_of_call(code[9 - n], n > 2 ? code[10 - n] : 0) == n)
            return true;
    }
    return false;
}

/* Candidates ------------------------------------------------------------------------------------
 */

/*
 * Looks for the frame pointer, with sp as the function's stack pointer at its call. 0: none; 1:
 * several.
 */
static uint64_t find(const struct function *f, uint64_t sp, uint64_t found)
{
    for (unsigned i = 0; i < f->rooms; i++) {
        uint64_t at = sp + f->room[i], words[2];
        if (gt_still_read(f->still, at, words, sizeof words) && is_called_before(f, words[1]) &&
            at != found)
            found = found ? 1 : at;
    }
    return found;
}

uint64_t gt_frame_pointer(const struct gt_elfutils *dw, Dwfl *dwfl, const struct gt_still *still,
                          const struct gt_still_thread *t)
{
    enum { FAR = 4096 };
    struct function f = {.still = still};
    uint64_t sp = gt_registers_sp(&t->registers), word, found = 0;
    if (!t->frames)
        return 0;
    uint64_t pc = t->frame[t->frames - 1].pc;
    if (!look_at_function(dw, dwfl, &f, pc))
        return 0;
    gt_still_prefer(t);
    if (t->frames == 1)
        found = find(&f, sp, 0);
    for (uint64_t at = sp; t->frames > 1 && at < sp + FAR && found != 1; at += sizeof word) {
        if (gt_still_read(still, at, &word, sizeof word) && word == pc + 1)
            found = find(&f, at + sizeof word, found);
    }
    return found > 1 ? found : 0;
}

#else

uint64_t gt_frame_pointer(const struct gt_elfutils *dw, Dwfl *dwfl, const struct gt_still *still,
                          const struct gt_still_thread *t)
{
    (void)dw;
    (void)dwfl;
    (void)still;
    (void)t;
    return 0;
}

#endif
