/*
 * See packed.h. The checksum at the end of a zlib stream is not checked, since the stream is not
 * unpacked up to its end.
 */
#include "packed.h"

#include "encoder/base/arena.h"

#include <dwarf.h>
#include <string.h>
#include <zlib.h>

enum { STEP = 1 << 16, WINDOW = 1 << 16, RATIO_MAX = 1032 /* of deflate */ };

/* The part of the file that was read last, and zlib's state after it. */
struct gt_window {
    z_stream z;
    uint8_t in[WINDOW];
    size_t used;
    _Alignas(16) uint8_t memory[48 << 10]; /* for zlib, which allocates 7 KiB and 32 KiB */
};

static const char *const names[GT_PACKED_SECTIONS] = {
    ".debug_info",     ".debug_abbrev", ".debug_line",     ".debug_str",
    ".debug_line_str", ".debug_ranges", ".debug_addr",     ".debug_str_offsets",
    ".debug_aranges",  ".debug_types",  ".debug_rnglists",
};

static size_t aligned(size_t size)
{
    return (size + 15) & ~(size_t)15;
}

static voidpf allocate(voidpf window, uInt n, uInt size)
{
    struct gt_window *w = window;
    size_t need = aligned((size_t)n * size), at = w->used;
    if (need > sizeof w->memory - at)
        return NULL;
    w->used += need;
    return w->memory + at;
}

static void release(voidpf window, voidpf p)
{
    (void)window, (void)p;
}

static bool refill(struct gt_packed_sections *p, struct gt_unpacking *u)
{
    struct gt_window *w = u->window;
    uint64_t rest = u->end - u->at;
    size_t size = rest < WINDOW ? (size_t)rest : WINDOW;
    if (!size || (!u->held && gt_image_read(p->image, w->in, size, u->at) != 0))
        return false;
    if (u->held)
        memcpy(w->in, u->held + (u->at - u->held_at), size);
    u->at += size;
    w->z.next_in = w->in;
    w->z.avail_in = (uInt)size;
    return true;
}

static void finish(struct gt_unpacking *u)
{
    gt_pages_free(u->window, sizeof *u->window);
    gt_pages_free(u->held, u->end - u->held_at);
    u->window = NULL;
    u->held = NULL;
}

/* Unpacks a part: zlib counts in 32 bits. */
static void unpack_some(struct gt_packed_sections *p, struct gt_unpacking *u, size_t upto)
{
    z_stream *z = &u->window->z;
    if (!z->avail_in && !refill(p, u)) {
        u->failed = true;
        return;
    }
    uInt room = upto - u->done < 1u << 30 ? (uInt)(upto - u->done) : 1u << 30;
    z->next_out = u->to + u->done;
    z->avail_out = room;
    int r = inflate(z, Z_NO_FLUSH);
    u->done += room - z->avail_out;
    u->failed = r != Z_OK && (r != Z_STREAM_END || u->done < upto);
}

static bool start(struct gt_unpacking *u)
{
    enum { RAW = -MAX_WBITS }; /* without zlib's header, whose two bytes are skipped */
    struct gt_window *w = u->window = gt_pages_alloc(sizeof *w);
    if (w)
        w->z = (z_stream){.zalloc = allocate, .zfree = release, .opaque = w};
    u->failed = !w || inflateInit2(&w->z, RAW) != Z_OK;
    return !u->failed;
}

static bool unpack(struct gt_packed_sections *p, struct gt_unpacking *u, size_t upto)
{
    if (u->failed || (!u->window && !start(u)))
        return false;
    while (u->done < upto && !u->failed)
        unpack_some(p, u, upto);
    if (u->done == u->size || u->failed)
        finish(u);
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

/* Makes the section appear uncompressed, at the offset in the image. */
static void open_section(struct gt_packed_sections *p, struct gt_unpacking *u, ElfW(Shdr) * sh,
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
}

bool gt_packed_open(struct gt_packed_sections *p, struct gt_image *image)
{
    size_t room = 0, at = aligned(image->size);
    ElfW(Chdr) head;
    *p = (struct gt_packed_sections){.image = image};
    for (int i = 0; i < GT_PACKED_SECTIONS; i++)
        room += find_packed(image, i, &head) ? aligned(head.ch_size) : 0;
    if (!room)
        return true;
    if (!gt_image_grow(image, at + room))
        return false;
    for (int i = 0; i < GT_PACKED_SECTIONS; i++) {
        ElfW(Shdr) *sh = find_packed(image, i, &head);
        if (!sh)
            continue;
        if (aligned(head.ch_size) > image->size - at) /* another section's change has damaged it */
            return false;
        open_section(p, &p->section[i], sh, &head, at);
        at += aligned(head.ch_size);
    }
    return true;
}

void gt_packed_close(struct gt_packed_sections *p)
{
    for (int i = 0; i < GT_PACKED_SECTIONS; i++)
        finish(&p->section[i]);
}

void gt_packed_hold(struct gt_packed_sections *p)
{
    for (int i = 0; i < GT_PACKED_SECTIONS; i++) {
        struct gt_unpacking *u = &p->section[i];
        size_t size = (size_t)(u->end - u->at);
        uint8_t *held = u->to && !u->failed && !u->held && size ? gt_pages_alloc(size) : NULL;
        if (held && gt_image_read(p->image, held, size, u->at) == 0) {
            u->held = held;
            u->held_at = u->at;
        } else {
            gt_pages_free(held, size);
        }
    }
}

bool gt_packed_need(struct gt_packed_sections *p, enum gt_packed_section section, size_t upto)
{
    struct gt_unpacking *u = &p->section[section];
    if (!u->to || upto <= u->done)
        return !u->failed;
    upto = upto < u->size - u->size % STEP ? (upto + STEP - 1) & ~(size_t)(STEP - 1) : u->size;
    return unpack(p, u, upto);
}

bool gt_packed_need_from(struct gt_packed_sections *p, enum gt_packed_section first)
{
    bool good = true;
    for (int i = (int)first; i < GT_PACKED_SECTIONS; i++)
        good &= gt_packed_need(p, (enum gt_packed_section)i, SIZE_MAX);
    return good;
}

static uint64_t next_uleb(struct gt_packed_sections *p, size_t *at)
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

bool gt_packed_need_abbrevs(struct gt_packed_sections *p, size_t at)
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
