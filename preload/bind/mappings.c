/* See mappings.h. Reads the mappings again in each generation that needs them: they come and go. */
#include "mappings.h"

#include "encoder/base/strbuf.h"
#include "encoder/format/lock_texts.h"
#include "symbolize/elf/maps.h"

#include <stdlib.h>
#include <string.h>

enum { KNOWN = 8, FILE_BYTES = 48 };

static struct mapping {
    uint64_t lo, hi, offset;
    bool shared;
    char file[FILE_BYTES]; /* "00:19:4711": device and inode */
} known[KNOWN];
static unsigned next;

static bool has(const struct mapping *m, uint64_t address)
{
    return address >= m->lo && address < m->hi;
}

/* "7f1200000000-7f1200001000 rw-s 00000000 00:19 4711 ..." */
static bool take(void *arg, const char *line, const char *end)
{
    enum { SHARED = 3 }; /* "rw-s" */
    uint64_t address = *(const uint64_t *)arg;
    char *at;
    struct mapping m = {.lo = strtoull(line, &at, 16)};
    m.hi = strtoull(at + 1, &at, 16);
    if (!has(&m, address))
        return false;
    m.shared = at[1 + SHARED] == 's';
    m.offset = strtoull(at + sizeof " rw-s", &at, 16);
    const char *device = at + 1, *inode = memchr(device, ' ', (size_t)(end - device));
    struct gt_strbuf t = gt_strbuf_start(m.file, sizeof m.file);
    if (inode) {
        gt_strbuf_add_n(&t, device, (size_t)(inode - device));
        gt_strbuf_add(&t, ":");
        gt_strbuf_decimal(&t, strtoull(inode, NULL, 10));
    }
    known[next++ % KNOWN] = m;
    return true;
}

static const struct mapping *find(uint64_t address)
{
    for (unsigned i = 0; i < KNOWN; i++) {
        if (has(&known[i], address))
            return &known[i];
    }
    return gt_maps_look("/proc/self/maps", take, &address) ? &known[(next - 1) % KNOWN] : NULL;
}

bool gt_mappings_name(uint64_t address, char *name, size_t size)
{
    const struct mapping *m = find(address);
    struct gt_strbuf t = gt_strbuf_start(name, size);
    if (!m || !m->shared)
        return false;
    gt_strbuf_add(&t, GT_SHARED);
    gt_strbuf_add(&t, m->file);
    gt_strbuf_add(&t, "+0x");
    gt_strbuf_hex(&t, address - m->lo + m->offset);
    return true;
}

void gt_mappings_forget(void)
{
    memset(known, 0, sizeof known);
}
