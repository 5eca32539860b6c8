/* See target_modules.h. */
#include "target_modules.h"

#include "encoder/base/path.h"
#include "scripts/tool/elf_view.h"
#include "scripts/tool/tool.h"

#include "symbolize/elf/image.h"

#include <string.h>
#include <unistd.h>

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* The function by this name that a look-up without a version would find; 0: none. */
static uint64_t function_in(const struct gt_image *image, uint64_t bias, const char *name)
{
    enum { HIDDEN = 0x8000 };
    size_t bytes, text_bytes, version_bytes;
    const ElfW(Sym) *symbol = gt_image_section(image, ".dynsym", &bytes);
    const char *text = gt_image_section(image, ".dynstr", &text_bytes);
    const ElfW(Versym) *version = gt_image_section(image, ".gnu.version", &version_bytes);
    for (size_t i = 1; symbol && text && i < bytes / sizeof *symbol; i++) {
        const ElfW(Sym) *s = &symbol[i];
        bool is_default = !version || (i < version_bytes / 2 && !(version[i] & HIDDEN));
        if (s->st_shndx != SHN_UNDEF && ELF64_ST_TYPE(s->st_info) == STT_FUNC && is_default &&
            s->st_name < text_bytes &&
            strnlen(text + s->st_name, text_bytes - s->st_name) < text_bytes - s->st_name &&
            strcmp(text + s->st_name, name) == 0)
            return bias + s->st_value;
    }
    return 0;
}

static const struct gt_loaded *find(const struct gt_loaded *loaded, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (starts(gt_path_name(loaded[i].name), name))
            return &loaded[i];
    }
    return NULL;
}

/* Says why the process has no glibc: the executable, loaded[0], names its loader. */
static _Noreturn void has_no_libc(const struct gt_still *s, const struct gt_loaded *loaded,
                                  size_t n)
{
    struct gt_image image = {.base = NULL};
    struct gt_elf_view view;
    if (!n || !loaded->path || gt_image_open(&image, loaded->path) != 0 ||
        !gt_elf_view(&view, image.base, image.size))
        gt_fail(GT_EXIT_FAILED,
                "process %d has no libc that is glibc, and its program cannot be read", s->pid);
    if (!view.interpreter)
        gt_fail(GT_EXIT_FAILED, "process %d is statically linked: no library can be loaded into it",
                s->pid);
    gt_fail(GT_EXIT_FAILED,
            "process %d has another libc%s: its loader is %s, and libgotrace.so is made for glibc",
            s->pid, strstr(view.interpreter, "musl") ? ", musl" : "", view.interpreter);
}

static void refuse_sanitizers(const struct gt_still *s, const struct gt_loaded *loaded, size_t n)
{
    static const char *const names[] = {"libtsan.so", "libasan.so", "libhwasan.so", "libmsan.so"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (find(loaded, n, names[i]))
            gt_fail(GT_EXIT_FAILED, "process %d is built with a sanitizer, %s: not attached",
                    s->pid, names[i]);
    }
}

void gt_attach_functions(const struct gt_still *still, const struct gt_loaded *loaded, size_t n,
                         struct gt_stub_constants *functions)
{
    const struct {
        const char *name;
        uint64_t *at;
    } rows[] = {{"__errno_location", &functions->errno_location},
                {"pthread_create", &functions->pthread_create},
                {"pthread_detach", &functions->pthread_detach},
                {"dlopen", &functions->dlopen},
                {"dlsym", &functions->dlsym},
                {"dlerror", &functions->dlerror}};
    const struct gt_loaded *libc = find(loaded, n, "libc.so.6");
    struct gt_image image = {.base = NULL};
    refuse_sanitizers(still, loaded, n);
    if (!libc)
        has_no_libc(still, loaded, n);
    if (!libc->path || gt_image_open(&image, libc->path) != 0)
        gt_fail(GT_EXIT_FAILED, "process %d: %s cannot be read", still->pid, libc->name);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        *rows[i].at = function_in(&image, libc->bias, rows[i].name);
        if (!*rows[i].at)
            gt_fail(GT_EXIT_FAILED,
                    "process %d: its libc has no %s: attaching takes glibc 2.34 or later",
                    still->pid, rows[i].name);
    }
    gt_image_close(&image);
}

bool gt_attach_has_own_malloc(const struct gt_loaded *loaded)
{
    struct gt_image image = {.base = NULL};
    if (!loaded->path || gt_image_open(&image, loaded->path) != 0)
        return true;
    bool has = function_in(&image, 1, "malloc");
    gt_image_close(&image);
    return has;
}

/* Whether the module is never unloaded: the executable, which is first, the loader and libc are. */
static bool stays(const struct gt_loaded *all, const struct gt_loaded *m)
{
    const char *name = gt_path_name(m->name);
    return m == all || starts(name, "ld-linux") || starts(name, "libc.so.6");
}

static uint64_t room_in(const struct gt_still *still, const struct gt_loaded *m, size_t size)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), found = 0;
    struct gt_image image = {.base = NULL};
    if (!m->path || gt_image_open(&image, m->path) != 0)
        return 0;
    const ElfW(Ehdr) *eh = (const void *)image.base;
    const ElfW(Phdr) *ph = (const void *)(image.base + eh->e_phoff);
    bool readable =
        eh->e_phoff <= image.size && eh->e_phnum <= (image.size - eh->e_phoff) / sizeof(ElfW(Phdr));
    for (int i = 0; readable && i < eh->e_phnum; i++) {
        uint64_t end = (m->bias + ph[i].p_vaddr + ph[i].p_filesz + 15) & ~UINT64_C(15);
        const struct gt_mapping *mapping = gt_still_mapping(still, end);
        if (ph[i].p_type == PT_LOAD && (ph[i].p_flags & (PF_X | PF_W)) == PF_X &&
            ph[i].p_filesz == ph[i].p_memsz && (-end & (page - 1)) >= size && mapping &&
            mapping->hi - end >= size && strcmp(mapping->path, m->name) == 0)
            found = end;
    }
    gt_image_close(&image);
    return found;
}

uint64_t gt_attach_room(const struct gt_still *still, const struct gt_loaded *loaded, size_t n,
                        size_t size)
{
    uint64_t found = 0;
    for (size_t i = 0; i < n && !found; i++) {
        if (stays(loaded, &loaded[i]))
            found = room_in(still, &loaded[i], size);
    }
    return found;
}
