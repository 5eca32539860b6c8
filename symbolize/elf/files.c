/* See files.h. The places of debug files follow gdb's documented convention. */
#include "files.h"

#include "elfutils.h"

#include "encoder/base/arena.h"
#include "encoder/base/libc.h"
#include "encoder/base/path.h"
#include "encoder/base/strbuf.h"

#include <sys/auxv.h>

#define DEBUG_ROOT "/usr/lib/debug"
#define MINI_MAX ((size_t)256 << 20)

static const struct gt_files_elsewhere *elsewhere;

void gt_files_set_elsewhere(const struct gt_files_elsewhere *places)
{
    elsewhere = places;
}

/* The module's own file ---------------------------------------------------------------------- */

static bool is_executable(const struct gt_module *m)
{
    uint64_t headers = getauxval(AT_PHDR);
    return headers >= m->lo && headers < m->hi;
}

/* Whether the file is the loaded one: it may have been replaced since. */
static bool is_loaded_file(const struct gt_image *image, const struct gt_module *m)
{
    return gt_image_is(image, m->build_id, m->build_id_len);
}

/* Opens the vDSO. Its section headers lie behind its segment, on the same pages. */
static void open_vdso(struct gt_image *image, const struct gt_module *m)
{
    size_t page = (size_t)getauxval(AT_PAGESZ);
    size_t size = (size_t)(((m->hi + page - 1) & ~(uint64_t)(page - 1)) - m->lo);
    void *pages = gt_pages_alloc(size);
    if (pages)
        gt_image_adopt(image, memcpy(pages, (const void *)(uintptr_t)m->lo, size), size);
}

static void open_main(struct gt_image *image, const struct gt_module *m)
{
    if (strcmp(m->path, "[vdso]") == 0) {
        open_vdso(image, m);
        return;
    }
    gt_image_open(image, m->path);
    if (is_loaded_file(image, m))
        return;
    gt_image_close(image);
    /* The running executable stays reachable even if its name is gone. */
    if (is_executable(m) && gt_image_open(image, "/proc/self/exe") == 0 &&
        !is_loaded_file(image, m))
        gt_image_close(image);
}

/* Split debug information -------------------------------------------------------------------- */

static uint32_t crc32_of(const uint8_t *p, size_t n)
{
    uint32_t table[256], crc = ~0u;
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; bit++)
            c = c & 1 ? 0xEDB88320u ^ c >> 1 : c >> 1;
        table[i] = c;
    }
    while (n--)
        crc = table[(crc ^ *p++) & 255] ^ crc >> 8;
    return ~crc;
}

/* Whether the file has the CRC of .gnu_debuglink, for files without build IDs. Reads the file a
 * second time. */
static bool has_crc(const char *path, uint32_t expected)
{
    size_t size = 0;
    void *pages = gt_read_file(path, &size);
    bool same = pages && crc32_of(pages, size) == expected;
    gt_pages_free(pages, size);
    return same;
}

/* Opens the file if it is of use and has the build ID; a `len` of 0 accepts any build ID. */
static bool open_if(struct gt_image *image, const char *path, const uint8_t *id, size_t len)
{
    if (gt_image_open(image, path) != 0)
        return false;
    if ((len == 0 || gt_image_is(image, id, len)) && (image->has_dwarf || image->has_symtab))
        return true;
    gt_image_close(image);
    return false;
}

static bool open_by_build_id_in(struct gt_image *image, const char *root, const uint8_t *id,
                                size_t len)
{
    char path[1024];
    struct gt_strbuf t = gt_strbuf_start(path, sizeof path);
    if (len < 2)
        return false;
    gt_strbuf_add(&t, root);
    gt_strbuf_add(&t, "/.build-id/");
    gt_strbuf_hex_bytes(&t, id, 1);
    gt_strbuf_add(&t, "/");
    gt_strbuf_hex_bytes(&t, id + 1, len - 1);
    gt_strbuf_add(&t, ".debug");
    return open_if(image, path, id, len);
}

static bool open_by_build_id(struct gt_image *image, const uint8_t *id, size_t len)
{
    for (const char *const *d = elsewhere ? elsewhere->directories : NULL; d && *d; d++) {
        if (open_by_build_id_in(image, *d, id, len))
            return true;
    }
    return open_by_build_id_in(image, DEBUG_ROOT, id, len);
}

static struct gt_strbuf start_in_dir_of(const struct gt_image *image, char *buf, size_t size,
                                        const char *before)
{
    struct gt_strbuf t = gt_strbuf_start(buf, size);
    gt_strbuf_add(&t, before);
    gt_strbuf_add_n(&t, image->path, (size_t)(gt_path_name(image->path) - image->path));
    return t;
}

static bool open_linked(struct gt_image *image, const struct gt_image *main)
{
    static const struct {
        const char *before, *after;
    } places[] = {{"", ""}, {"", ".debug/"}, {DEBUG_ROOT, ""}};
    char path[1024];
    uint32_t crc;
    size_t size;
    const char *link = gt_image_section(main, ".gnu_debuglink", &size);
    size_t len = link ? strnlen(link, size) : 0;
    size_t crc_at = (len + 4) & ~(size_t)3;
    if (!len || crc_at + sizeof crc > size || memchr(link, '/', len))
        return false;
    memcpy(&crc, link + crc_at, sizeof crc);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct gt_strbuf t = start_in_dir_of(main, path, sizeof path, places[i].before);
        gt_strbuf_add(&t, places[i].after);
        gt_strbuf_add(&t, link);
        if (strcmp(path, main->path) == 0 || (!main->build_id_len && !has_crc(path, crc)))
            continue;
        if (open_if(image, path, main->build_id, main->build_id_len))
            return true;
    }
    return false;
}

/*
 * Opens dwz's common part: dwz -m moves the parts that several files share to a file of their own,
 * and leaves that file's name and build ID. If we do not find it, its section is hidden from libdw,
 * which would look for it, accept any build ID, and keep the file open.
 */
static void open_alt(struct gt_image *image, struct gt_image *user)
{
    char path[1024];
    size_t size;
    const char *link = gt_image_section(user, ".gnu_debugaltlink", &size);
    size_t len = link ? strnlen(link, size) : 0;
    if (!len || len + 1 >= size || size - len - 1 > 32)
        return;
    const uint8_t *id = (const uint8_t *)link + len + 1;
    size_t id_len = size - len - 1;
    struct gt_strbuf t = start_in_dir_of(user, path, sizeof path, "");
    if (*link == '/')
        t = gt_strbuf_start(path, sizeof path);
    gt_strbuf_add(&t, link);
    if (!open_if(image, path, id, id_len) && !open_by_build_id(image, id, id_len))
        gt_image_header(user, ".gnu_debugaltlink")->sh_type = SHT_NOBITS; /* hides it from libelf */
}

/* Mini debug information --------------------------------------------------------------------- */

static void open_mini(struct gt_image *image, const struct gt_image *main)
{
    size_t size;
    const uint8_t *packed = gt_image_section(main, ".gnu_debugdata", &size);
    const struct gt_elfutils *dw = packed ? gt_elfutils_get() : NULL;
    if (!dw || !dw->lzma_stream_buffer_decode)
        return;
    for (size_t room = size * 8 + 65536; room <= MINI_MAX; room *= 4) {
        uint64_t memory = 256 << 20;
        size_t in = 0, out = 0;
        uint8_t *pages = gt_pages_alloc(room);
        if (!pages)
            return;
        lzma_ret r =
            dw->lzma_stream_buffer_decode(&memory, 0, NULL, packed, &in, size, pages, &out, room);
        if (r == LZMA_OK) {
            gt_image_adopt(image, pages, room);
            return;
        }
        gt_pages_free(pages, room);
        if (r != LZMA_BUF_ERROR)
            return;
    }
}

/* Elsewhere ---------------------------------------------------------------------------------- */

/* Opens a file found by the module's name, which may be another module's. */
static bool open_named(struct gt_image *image, const struct gt_module *m, const char *directory,
                       const char *name, const char *after)
{
    char path[1024];
    struct gt_strbuf t = gt_strbuf_start(path, sizeof path);
    gt_strbuf_add(&t, directory);
    gt_strbuf_add(&t, *name == '/' ? "" : "/");
    gt_strbuf_add(&t, name);
    gt_strbuf_add(&t, after);
    if (gt_image_open(image, path) != 0)
        return false;
    if (!gt_image_is(image, m->build_id, m->build_id_len))
        elsewhere->refused(m, path);
    else if (image->has_dwarf || image->has_symtab)
        return true;
    gt_image_close(image);
    return false;
}

static bool open_in(struct gt_image *image, const struct gt_module *m, const char *directory)
{
    const char *base = gt_path_name(m->path);
    return open_named(image, m, directory, m->path, ".debug") ||
           open_named(image, m, directory, m->path, "") ||
           (base - m->path > 1 && /* not "/name" */
            (open_named(image, m, directory, base, ".debug") ||
             open_named(image, m, directory, base, "")));
}

static void open_elsewhere(struct gt_files *files, const struct gt_module *m)
{
    struct gt_image *debug = &files->debug;
    bool found = open_by_build_id(debug, m->build_id, m->build_id_len);
    for (const char *const *d = elsewhere->directories; !found && *d; d++)
        found = open_in(debug, m, *d);
    struct stat st;
    if (gt_stat(m->path, &st) == 0 &&
        S_ISREG(st.st_mode)) /* the file is on this machine, and no device */
        gt_image_open(&files->main, m->path);
    if (!is_loaded_file(&files->main, m))
        gt_image_close(&files->main);
    if (!found && files->main.base && !files->main.has_dwarf)
        found = open_linked(debug, &files->main);
    const char *path = found || files->main.has_dwarf || !elsewhere->fetch || !m->build_id_len
                           ? NULL
                           : elsewhere->fetch(m);
    if (path)
        open_if(debug, path, m->build_id, m->build_id_len);
}

static void open_here(struct gt_files *files, const struct gt_module *m)
{
    open_main(&files->main, m);
    if (files->main.base && !files->main.has_dwarf &&
        !open_by_build_id(&files->debug, files->main.build_id, files->main.build_id_len))
        open_linked(&files->debug, &files->main);
}

void gt_files_open(struct gt_files *files, const struct gt_module *m)
{
    *files = (struct gt_files){0};
    if (elsewhere)
        open_elsewhere(files, m);
    else
        open_here(files, m);
    if (files->main.base && !files->main.has_symtab && !files->debug.has_symtab)
        open_mini(&files->mini, &files->main);
    if (gt_files_dwarf(files))
        open_alt(&files->alt, gt_files_dwarf(files));
}

void gt_files_close(struct gt_files *files)
{
    gt_image_close(&files->main);
    gt_image_close(&files->debug);
    gt_image_close(&files->mini);
    gt_image_close(&files->alt);
}

bool gt_files_have_changed(const struct gt_files *files)
{
    return gt_image_has_changed(&files->main) || gt_image_has_changed(&files->debug) ||
           gt_image_has_changed(&files->alt);
}

struct gt_image *gt_files_dwarf(struct gt_files *files)
{
    if (files->main.has_dwarf)
        return &files->main;
    return files->debug.has_dwarf ? &files->debug : NULL;
}
