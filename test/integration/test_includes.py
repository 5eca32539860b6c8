"""A file includes a header of the project only for a name that this header declares."""

import functools
import re

import pytest

from lib import ROOT

PRODUCT = ("encoder", "preload", "symbolize", "scripts/tool")
# What a header provides besides the names that it declares: names of the headers that it wraps, or that a .def makes.
PROVIDES = {
    "arch.h": r"gt_\w+|GT_\w+",  # those of x86_64.h or aarch64.h
    "format.h": r"GT_EV_\w+",
    "libc.h": r"SYS_\w+",
    "exported.h": r"gotrace_\w+",
    "sqlite.h": r"sqlite3\w*|SQLITE_\w+",
    "elfutils.h": r"(dwarf|elf|dwfl|gelf|ebl)_\w+|(Dwarf|Elf|Dwfl|GElf)\w*",
}
WORDS_OF_C = set("""auto bool case char const default do double else enum extern float for goto if inline int long
register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while NULL
__typeof__ _Static_assert __attribute__""".split())
WORDS_OF_LIBC = r"u?int(8|16|32|64|ptr)_t|s?size_t|off(64)?_t|[a-z]id_t"
# Headers that hand others on: to those who use hooks, and to functions on memory that is read as the first one says.
HAND_ON = {("real.h", "undeclared.h"), ("python_memory.h", "with_blocks.h"), ("python_memory.h", "code_layouts.h")}
FILES = sorted(p for top in PRODUCT for p in (ROOT / top).rglob("*") if p.suffix in {".c", ".h"})


@functools.cache
def code(path):
    """A file's text without comments, contents of strings, and includes."""
    text = re.sub(r"^\s*#\s*include.*$", "", path.read_text(), flags=re.M)
    text = re.sub(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*', lambda m: '""' if m[0][0] == '"' else " ", text, flags=re.S)
    return re.sub(r"\\\n|__attribute__\s*\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)", " ", text)


def without_blocks(text):
    """`;` for each `{…}`."""
    while (less := re.sub(r"\{[^{}]*\}", ";", text)) != text:
        text = less
    return text


@functools.cache
def declared(path):
    """(names that a header declares, members of its structs)"""
    text = code(path)
    names = set(re.findall(r"^\s*#\s*define\s+(\w+)", text, re.M))
    text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
    outside = without_blocks(text)
    names |= set(re.findall(r"\b(\w+)\s*\(", outside))
    names |= set(re.findall(r"\(\s*\*?\s*(\w+)\s*\)\s*\(", outside))
    names |= set(re.findall(r"\b(\w+)\s*(?:\[[^\]]*\]\s*)*(?:=[^;]*)?;", outside))
    names -= set(re.findall(r"\b(?:struct|union|enum)\s+(\w+)\s*;", text))
    names = {name for name in names - WORDS_OF_C if not re.fullmatch(WORDS_OF_LIBC, name)}
    names |= set(re.findall(r"\b(?:struct|union|enum)\s+(\w+)\s*\{", text))
    for body in re.findall(r"\benum\b[^{};()]*\{([^}]*)\}", text):
        names |= set(re.findall(r"(?:^|,)\s*(\w+)", body))
    members = set()
    for body in re.findall(r"\b(?:struct|union)\b[^{};()]*(\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})", text):
        members |= set(re.findall(r"\b(\w+)\s*(?:\[[^\]]*\]\s*)*(?::\s*\w+\s*)?[;,]", body)) | set(re.findall(r"\(\*(\w+)\)", body))
    return names, members


def included(path):
    """Headers of the project that a file includes, but for NAME.h in NAME.c."""
    names = re.findall(r'^\s*#\s*include "([^"]+\.h)"', path.read_text(), re.M)
    found = [next((p for p in (path.parent / name, ROOT / name) if p.is_file()), None) for name in names]
    return [p for p in found if p and (p.stem != path.stem or p.parent != path.parent)]


def is_used(path, header):
    words = set(re.findall(r"\w+", code(path)))
    names, members = declared(header)
    if names & words or any(re.fullmatch(PROVIDES.get(header.name, "$"), word) for word in words):
        return True
    elsewhere = set().union(declared(path)[1], *(declared(other)[1] for other in included(path) if other != header))
    return bool((members - elsewhere) & set(re.findall(r"(?:->|\.)\s*(\w+)", code(path))))


@pytest.mark.parametrize("top", PRODUCT)
def test_no_include_hides(top):
    """Between <> a header of ours would be seen by no test."""
    assert not [(path, name) for path in FILES if path.is_relative_to(ROOT / top)
                for name in re.findall(r"^\s*#\s*include <([^>]+)>", path.read_text(), re.M)
                if (ROOT / name).exists()]


@pytest.mark.parametrize("top", PRODUCT)
def test_every_include_is_used(top):
    files = [path for path in FILES if path.is_relative_to(ROOT / top) and path.name != "arch.h"]
    unused = [(path, header) for path in files for header in included(path)
              if (path.name, header.name) not in HAND_ON and not is_used(path, header)]
    assert files and not [f"{path.relative_to(ROOT)}: {header.relative_to(ROOT)}" for path, header in unused]


def test_names_are_found(tmp_path):
    header = tmp_path / "x.h"
    header.write_text("""
        #define MACRO(a) f(a) /* comment(x); */
        struct forward;
        struct tag { int member; void (*call)(void); struct { int inner; } list[3]; };
        enum { FIRST, SECOND = 2 };
        typedef void type(int);
        extern const char *text __attribute__((visibility("hidden"))); static int many[] = {1, 2};
        void called(void (*f)(int), size_t n); enum { ALONE };
        static inline int function(struct forward *f) { return local(f->other); }
    """)
    names, members = declared(header)
    assert names >= {"MACRO", "tag", "FIRST", "SECOND", "type", "text", "many", "function"}
    assert not names & {"void", "enum", "int", "size_t", "forward", "member", "comment", "local", "other"}
    assert members >= {"member", "call", "inner"}
