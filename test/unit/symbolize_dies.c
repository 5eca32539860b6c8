/* Our walk over the DIEs of a file finds what libdw's does, whatever wrote them. */
#include "symbolize/dwarf/dies.h"
#include "symbolize/elf/elfutils.h"
#include "symbolize/elf/image.h"

#include "symbolize_sample.h"

/* Blocks, strings within DIEs, children without and with siblings, declarations, inlined calls. */
static const char source[] =
    "#include <map>\n#include <string>\n#include <vector>\n"
    "namespace a { namespace { struct x { static int f(int n) { struct in { int g(int k)\n"
    "  { auto l = [k](int m) { return k * m; }; return l(2) + l(k); } }; return in{}.g(n); } }; }\n"
    "template <class T> inline T twice(T t) { { T u = t; try { u += t; } catch (int) {} return u; "
    "} }\n"
    "int h(std::map<std::string, std::vector<int>> &m)\n"
    "{ int s = 0; for (auto &e : m) s += x::f((int)e.second.size()); return twice(s); } }\n";

static const char *const compilers[] = {
    "g++ -gdwarf-2 -gstrict-dwarf",
    "g++ -gdwarf-3 -gstrict-dwarf",
    "g++ -gdwarf-4",
    "g++ -gdwarf-5",
    "g++ -gdwarf-5 -gdwarf64",
    "g++ -g3 -O0",
    "g++ -g -fdebug-types-section",
    "clang++ -gdwarf-4",
    "clang++ -gdwarf-5",
    "clang++ -gdwarf-5 -flto=thin",
};

static const struct gt_elfutils *dw;
static Dwarf *dwarf;
static long dies;

static void compare(const struct gt_dies *d, Dwarf_Off unit, Dwarf_Die its, struct gt_die ours)
{
    Dwarf_Die its_child;
    struct gt_die child;
    for (;;) {
        uint64_t at = unit + (uint64_t)(ours.at - d->unit.at);
        CHECK(dw->dwarf_dieoffset(&its) == at && dw->dwarf_tag(&its) == ours.shape->tag,
              "libdw has a DIE at %lx, here it is at %lx", (long)dw->dwarf_dieoffset(&its),
              (long)at);
        CHECK(!!dw->dwarf_hasattr(&its, DW_AT_declaration) == ours.shape->declares &&
                  !!dw->dwarf_hasattr(&its, DW_AT_inline) == ours.shape->inlined,
              "attributes at %lx", (long)at);
        dies++;
        bool has = dw->dwarf_child(&its, &its_child) == 0;
        CHECK(gt_die_child(d, &ours, &child) == has, "children at %lx", (long)at);
        if (has)
            compare(d, unit, its_child, child);
        bool more = dw->dwarf_siblingof(&its, &its) == 0;
        CHECK(gt_die_next(d, &ours) == more, "siblings at %lx", (long)at);
        if (!more)
            return;
    }
}

static void compare_file(const char *compiler, const char *path)
{
    struct gt_image image;
    struct gt_arena arena = {.chunk = NULL};
    Dwarf_Off next;
    CHECK(gt_image_open(&image, path) == 0, "%s", path);
    Elf *elf = dw->elf_memory(image.base, image.size);
    CHECK((dwarf = dw->dwarf_begin_elf(elf, DWARF_C_READ, NULL)), "%s", compiler);
    struct gt_dies d = {0};
    struct gt_dwarf_section info;
    info.at = gt_image_section(&image, ".debug_info", &info.size);
    d.abbrev.at = gt_image_section(&image, ".debug_abbrev", &d.abbrev.size);
    dies = 0;
    for (Dwarf_Off at = 0;; at = next) {
        size_t header;
        Dwarf_Die its;
        struct gt_die ours;
        if (dw->dwarf_next_unit(dwarf, at, &next, &header, &d.version, &d.abbrevs, &d.address_size,
                                &d.offset_size, NULL, NULL))
            break;
        d.unit = (struct gt_dwarf_section){info.at + at, next - at};
        CHECK(gt_dies_open(&d, &arena), "%s: abbreviations of %lx", compiler, (long)at);
        CHECK(dw->dwarf_offdie(dwarf, at + header, &its) && gt_die_at(&d, header, &ours), "%s",
              compiler);
        compare(&d, at, its, ours);
    }
    CHECK(dies > 1000, "%s: only %ld", compiler, dies);
    dw->dwarf_end(dwarf);
    dw->elf_end(elf);
    gt_image_close(&image);
    gt_arena_free(&arena);
}

/* A library of each compiler that is here; then as dwz makes it. */
static void compare_all(void)
{
    int compared = 0;
    for (size_t i = 0; i < sizeof compilers / sizeof *compilers; i++) {
        char path[256];
        snprintf(path, sizeof path, "%s/%zu.so", dir, i);
        if (!run("%s -O2 -shared -fPIC dies.cc -o %s", compilers[i], path)) {
            fprintf(stderr, "left out: %s\n", compilers[i]);
            continue;
        }
        compare_file(compilers[i], path);
        compared++;
        if (run("cp %s dwz.so && dwz dwz.so", path)) {
            snprintf(path, sizeof path, "%s/dwz.so", dir);
            compare_file("dwz", path);
        }
    }
    CHECK(compared >= 4, "%d", compared);
}

int main(void)
{
    static jmp_buf bail;
    need("g++");
    make_dir();
    write_file("dies.cc", source);
    if (setjmp(bail) != 0)
        CHECK(false, "libdw gave up");
    gt_elfutils_enter(&bail);
    dw = gt_elfutils_get();
    if (!dw) {
        fprintf(stderr, "skipped: no libdw\n");
        return 77;
    }
    compare_all();
    gt_elfutils_leave();
    return 0;
}
