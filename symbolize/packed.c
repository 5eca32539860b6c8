/*
 * See packed.h. The checksum that ends a zlib stream is not looked at: it stands behind what is
 * never unpacked.
 */
#include "packed.h"

#include "../encoder/arena.h"

#include <dwarf.h>
#include <string.h>

enum { STEP = 1 << 16, WINDOW = 1 << 16, RATIO_MAX = 1032 /* of deflate */ };

/* What was read last, and the state in which that left us. */
struct gt_window {
    struct gt_inflate inflate;
    uint8_t in[WINDOW + GT_INFLATE_SLACK];
};

/* The first ones as in enum gt_packed_section; the others are small, or read all over. */
static const char *const names[] = {
    ".debug_info",     ".debug_abbrev", ".debug_line",     ".debug_str",
    ".debug_line_str", ".debug_ranges", ".debug_addr",     ".debug_str_offsets",
    ".debug_aranges",  ".debug_types",  ".debug_rnglists",
};
enum { SECTIONS = sizeof names / sizeof *names };

static bool refill(struct gt_packed *p, struct gt_unpacking *u)
{
    struct gt_window *w = u->window;
    struct gt_bits *input = &w->inflate.input;
    size_t left = (size_t)(input->end - input->in);
    uint64_t rest = u->end - u->at;
    size_t size = rest < WINDOW - left ? (size_t)rest : WINDOW - left;
    memmove(w->in, input->in, left);
    if (gt_image_read(p->image, w->in + left, size, u->at) != 0)
        return false;
    u->at += size;
    input->in = w->in;
    input->end = w->in + left + size;
    input->more = u->at < u->end;
    return true;
}

static void finish(struct gt_unpacking *u)
{
    if (u->window)
        gt_pages_free(u->window, sizeof *u->window);
    u->window = NULL;
}

static bool unpack(struct gt_packed *p, struct gt_unpacking *u, size_t upto)
{
    while (u->done < upto && !u->failed) {
        struct gt_inflate *inflate = &u->window->inflate;
        enum gt_inflated r = gt_inflate(inflate, u->to + upto);
        u->done = (size_t)(inflate->out - u->to);
        u->failed = r == GT_INFLATE_DAMAGED || (r == GT_INFLATE_HUNGRY && !refill(p, u)) ||
                    (r == GT_INFLATED && u->done < upto);
    }
    if (u->done == u->size || u->failed)
        finish(u);
    return !u->failed;
}

static bool start(struct gt_packed *p, struct gt_unpacking *u)
{
    struct gt_window *w = u->window = gt_pages_alloc(sizeof *w);
    if (w) {
        w->inflate.input.in = w->inflate.input.end = w->in;
        w->inflate.out = w->inflate.start = u->to;
        w->inflate.end = u->to + u->size;
    }
    u->failed = !w || !refill(p, u);
    return !u->failed;
}

/* The header of a section that can be unpacked, or NULL. */
static ElfW(Shdr) * find_packed(const struct gt_image *image, int i, ElfW(Chdr) * head)
{
    ElfW(Shdr) *sh = gt_image_header(image, names[i]);
    return sh && gt_image_put_off(image, sh, head) && head->ch_size / RATIO_MAX <= sh->sh_size
               ? sh
               : NULL;
}

static size_t aligned(size_t size)
{
    return (size + 15) & ~(size_t)15;
}

/* Lets the section appear as it was before it was compressed, at the offset in the image. */
static bool open_section(struct gt_packed *p, struct gt_unpacking *u, ElfW(Shdr) * sh,
                         const ElfW(Chdr) * head, size_t at)
{
    *u = (struct gt_unpacking){
        .to = (uint8_t *)p->image->base + at,
        .size = head->ch_size,
        .at = sh->sh_offset + sizeof *head + GT_ZLIB_HEADER,
        .end = sh->sh_offset + sh->sh_size,
    };
    sh->sh_flags &= ~(uint64_t)SHF_COMPRESSED;
    sh->sh_offset = at;
    sh->sh_size = head->ch_size;
    sh->sh_addralign = head->ch_addralign;
    return start(p, u);
}

bool gt_packed_open(struct gt_packed *p, struct gt_image *image)
{
    size_t room = 0, at = aligned(image->size);
    ElfW(Chdr) head;
    bool good = true;
    *p = (struct gt_packed){.image = image};
    for (int i = 0; i < SECTIONS; i++)
        room += find_packed(image, i, &head) ? aligned(head.ch_size) : 0;
    if (!room)
        return true;
    if (!gt_image_grow(image, at + room))
        return false;
    for (int i = 0; i < SECTIONS && good; i++) {
        struct gt_unpacking whole, *u = i < GT_PACKED_SECTIONS ? &p->section[i] : &whole;
        ElfW(Shdr) *sh = find_packed(image, i, &head);
        if (!sh)
            continue;
        good = open_section(p, u, sh, &head, at);
        at += aligned(head.ch_size);
        if (u == &whole) {
            good = good && unpack(p, u, u->size);
            finish(u);
        }
    }
    return good;
}

void gt_packed_close(struct gt_packed *p)
{
    for (int i = 0; i < GT_PACKED_SECTIONS; i++)
        finish(&p->section[i]);
}

bool gt_packed_need(struct gt_packed *p, enum gt_packed_section section, size_t upto)
{
    struct gt_unpacking *u = &p->section[section];
    if (!u->to || upto <= u->done)
        return !u->failed;
    upto = upto < u->size - u->size % STEP ? (upto + STEP - 1) & ~(size_t)(STEP - 1) : u->size;
    return unpack(p, u, upto);
}

bool gt_packed_need_all(struct gt_packed *p)
{
    bool good = true;
    for (int i = 0; i < GT_PACKED_SECTIONS; i++)
        good &= gt_packed_need(p, (enum gt_packed_section)i, SIZE_MAX);
    return good;
}

static uint64_t next_uleb(struct gt_packed *p, size_t *at)
{
    const struct gt_unpacking *u = &p->section[GT_PACKED_ABBREV];
    uint64_t value = 0;
    for (int shift = 0; gt_packed_need(p, GT_PACKED_ABBREV, *at + 1) && *at < u->size; shift += 7) {
        uint8_t byte = u->to[(*at)++];
        value |= shift < 64 ? (uint64_t)(byte & 127) << shift : 0;
        if (byte < 128)
            return value;
    }
    return 0;
}

bool gt_packed_need_abbrevs(struct gt_packed *p, size_t at)
{
    if (!p->section[GT_PACKED_ABBREV].to)
        return !p->section[GT_PACKED_ABBREV].failed;
    while (next_uleb(p, &at)) { /* code */
        next_uleb(p, &at);      /* tag */
        next_uleb(p, &at);      /* children: a byte, 0 or 1 */
        uint64_t name, form;
        do {
            name = next_uleb(p, &at);
            form = next_uleb(p, &at);
            if (form == DW_FORM_implicit_const)
                next_uleb(p, &at); /* signed, but of the same length */
        } while (name || form);
    }
    return !p->section[GT_PACKED_ABBREV].failed;
}
