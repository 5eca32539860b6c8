/*
 * See elf.h. The table has the format of Go 1.2, of all formats that debug/gosym reads: it is
 * simple, and has everything in one section. Its parts, one after the other:
 *
 *   header | functions: address, offset of record | file table's offset | records | file table |
 *   for each frame: function's name, file's name, file by PC, line by PC
 *
 * Every frame has its own entry in each part. Nothing is shared: a side file need not be small.
 */
#include "elf.h"

#include "encoder/base/arch/arch.h"
#include "encoder/base/arena.h"
#include "encoder/base/memo.h"
#include "encoder/base/varint.h"
#include "encoder/file/output.h"
#include "encoder/thread/strings.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#define FIRST_PC (1ull << 40) /* beyond all ids of stacks: see gt_v1_tables_routine */
#define PC_STEP 16u           /* the addresses that a frame takes */
#define MAGIC 0xfffffffbu
#define RECORD_SIZE (8 + 8 * 4)
#define PC_TABLE_MAX (2 * GT_VARINT_MAX + 2)

static struct {
    struct gt_vector frames; /* of struct gt_named_frame *, in order of address */
    struct gt_memo leaves;   /* by stack id: its leaf's number */
    uint32_t n, written;
} table;

static struct gt_named_frame **frames(void)
{
    return table.frames.at;
}

void gt_v1_elf_close(void)
{
    for (uint32_t i = 0; i < table.n; i++)
        frames()[i]->entry = 0;
    table.n = table.written = 0;
    gt_vector_empty(&table.frames);
    gt_memo_free(&table.leaves);
}

void gt_v1_elf_open(void)
{
    gt_v1_elf_close();
}

static uint64_t pc_of(uint32_t entry)
{
    return entry ? FIRST_PC + (entry - 1) * (uint64_t)PC_STEP : 0;
}

uint32_t gt_v1_elf_entry(uint64_t pc)
{
    return pc < FIRST_PC || pc - FIRST_PC >= PC_STEP * (uint64_t)UINT32_MAX
               ? 0
               : (uint32_t)((pc - FIRST_PC) / PC_STEP) + 1;
}

uint64_t gt_v1_elf_next_pc(void)
{
    return pc_of(table.n + 1);
}

uint64_t gt_v1_elf_pc(struct gt_named_frame *frame)
{
    if (!frame->entry && gt_vector_reserve(&table.frames, (table.n + 1) * sizeof(void *))) {
        frames()[table.n] = frame;
        frame->entry = ++table.n;
    }
    return pc_of(frame->entry);
}

struct gt_named_frame *gt_v1_elf_frame(uint64_t pc)
{
    return pc ? frames()[(pc - FIRST_PC) / PC_STEP] : NULL;
}

void gt_v1_elf_set_leaf(uint32_t stack_id, struct gt_named_frame *frame)
{
    uint64_t *leaf = gt_memo_at(&table.leaves, stack_id);
    if (leaf)
        *leaf = frame->entry;
}

uint64_t gt_v1_elf_leaf(uint32_t stack_id)
{
    return pc_of((uint32_t)gt_memo_find(&table.leaves, stack_id));
}

/* The line table ----------------------------------------------------------------------------- */

/* A place in the table that is being put together: an offset counts from begin. */
struct cursor {
    uint8_t *begin, *pos;
};

static void put4(uint8_t *p, uint64_t v)
{
    uint32_t word = (uint32_t)v;
    memcpy(p, &word, sizeof word);
}

static void put8(uint8_t *p, uint64_t v)
{
    memcpy(p, &v, sizeof v);
}

/* Both return the offset of the entry that they put. */

static size_t put_text(struct cursor *c, const struct gt_string *s)
{
    size_t at = (size_t)(c->pos - c->begin);
    memcpy(c->pos, s->text, s->len);
    c->pos += s->len;
    *c->pos++ = 0;
    return at;
}

/*
 * Puts a value that all PCs of a frame have. That is three varints: value + 1 (the difference from
 * -1) in zigzag, the number of PCs, and 0 as the end.
 */
static size_t put_pc_value(struct cursor *c, uint32_t value)
{
    size_t at = (size_t)(c->pos - c->begin);
    c->pos = gt_varint_put(c->pos, ((uint64_t)value + 1) << 1);
    c->pos = gt_varint_put(c->pos, PC_STEP);
    *c->pos++ = 0;
    return at;
}

static size_t line_table_max(void)
{
    size_t size = 64;
    for (uint32_t i = 0; i < table.n; i++)
        size += 16 + RECORD_SIZE + 4 + frames()[i]->func->len + frames()[i]->file->len + 2 +
                2 * PC_TABLE_MAX;
    return size;
}

static size_t put_line_table(uint8_t *begin)
{
    uint32_t n = table.n;
    uint8_t *functions = begin + 16;
    uint8_t *records = functions + 16 * (size_t)n + 8 + 4;
    uint8_t *files = records + RECORD_SIZE * (size_t)n;
    struct cursor c = {begin, files + 4 * ((size_t)n + 1)};
    put4(begin, MAGIC);
    begin[6] = 1; /* smallest instruction */
    begin[7] = 8; /* size of an address */
    put8(begin + 8, n);
    put8(functions + 16 * (size_t)n, pc_of(n + 1));
    put4(functions + 16 * (size_t)n + 8, (uint64_t)(files - begin));
    put4(files, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        const struct gt_named_frame *frame = frames()[i];
        uint8_t *record = records + RECORD_SIZE * (size_t)i;
        put8(functions + 16 * (size_t)i, pc_of(i + 1));
        put8(functions + 16 * (size_t)i + 8, (uint64_t)(record - begin));
        put4(files + 4 * ((size_t)i + 1), put_text(&c, frame->file));
        put8(record, pc_of(i + 1));
        put4(record + 8, put_text(&c, frame->func));
        put4(record + 24, put_pc_value(&c, i + 1)); /* file by PC */
        put4(record + 28, put_pc_value(&c, frame->line));
    }
    return (size_t)(c.pos - begin);
}

/* The file ----------------------------------------------------------------------------------- */

static const char section_names[] = "\0.text\0.gopclntab\0.shstrtab";
enum { NAME_TEXT = 1, NAME_TABLE = 7, NAME_NAMES = 18, SECTIONS = 4 };

static size_t put_file(uint8_t *file)
{
    size_t at = sizeof(Elf64_Ehdr), size = put_line_table(file + at);
    size_t names_at = at + size, headers_at = (names_at + sizeof section_names + 7) & ~(size_t)7;
    memcpy(file + names_at, section_names, sizeof section_names);
    Elf64_Shdr sections[SECTIONS] = {
        {0},
        {.sh_name = NAME_TEXT,
         .sh_type = SHT_NOBITS,
         .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
         .sh_addr = FIRST_PC,
         .sh_size = (uint64_t)table.n * PC_STEP},
        {.sh_name = NAME_TABLE, .sh_type = SHT_PROGBITS, .sh_offset = at, .sh_size = size},
        {.sh_name = NAME_NAMES,
         .sh_type = SHT_STRTAB,
         .sh_offset = names_at,
         .sh_size = sizeof section_names},
    };
    Elf64_Ehdr header = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_EXEC,
        .e_machine = GT_ARCH_MACHINE,
        .e_version = EV_CURRENT,
        .e_ehsize = sizeof(Elf64_Ehdr),
        .e_shoff = headers_at,
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = SECTIONS,
        .e_shstrndx = SECTIONS - 1,
    };
    memcpy(file, &header, sizeof header);
    memcpy(file + headers_at, sections, sizeof sections);
    return headers_at + sizeof sections;
}

int gt_v1_elf_write(void)
{
    if (table.n == table.written && table.n)
        return 0;
    size_t bytes = sizeof(Elf64_Ehdr) + line_table_max() + sizeof section_names + 8 +
                   SECTIONS * sizeof(Elf64_Shdr);
    uint8_t *file = gt_pages_alloc(bytes);
    if (!file)
        return -ENOMEM;
    int error = gt_output_beside(GT_V1_ELF_SUFFIX, file, put_file(file));
    gt_pages_free(file, bytes);
    table.written = table.n;
    return error;
}
