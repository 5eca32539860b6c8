"""build/test/bench/big: 10,000 return addresses behind inlined calls, out of 100 MB of debug information.
Arguments: the directory for it; fewer copies of its unit, and members of its types."""

import pathlib
import subprocess
import sys

COPIES, FUNCTIONS = 40, 250
STRUCTS, MEMBERS = 4500, 40
UNIT = """
#include <sched.h>
template <int N> inline __attribute__((always_inline)) void inner() { sched_yield(); }
template <int N> inline __attribute__((always_inline)) void middle() { inner<N>(); __asm__ volatile(""); }
#define F(n) extern "C" __attribute__((noinline)) void f##n() { middle<n>(); __asm__ volatile(""); }
"""


def types(members):
    """Debug information to look past, as a large program's headers bring along."""
    for i in range(STRUCTS):
        yield f"struct type_{i} {{ " + " ".join(f"long member_{i}_{k};" for k in range(members)) + " };\n"


def main(directory, copies=COPIES, members=MEMBERS):
    def run(*argv):
        subprocess.run([str(a) for a in argv], check=True)

    names = [f"f{i}" for i in range(FUNCTIONS)]
    unit, objects = directory / "unit.cc", [directory / "main.o"]
    unit.write_text("".join(types(members)) + UNIT + "\n".join(f"F({i})" for i in range(FUNCTIONS)))
    run("g++", "-O1", "-g", "-fno-eliminate-unused-debug-types", "-c", unit, "-o", directory / "unit.o")
    for k in range(copies):
        renames = directory / "renames"
        renames.write_text("".join(f"{name} k{k}_{name}\n" for name in names))
        objects.append(directory / f"unit{k}.o")
        run("objcopy", f"--redefine-syms={renames}", directory / "unit.o", objects[-1])
    calls = [f"k{k}_{name}" for k in range(copies) for name in names]
    source = "".join(f"void {c}(void);\n" for c in calls)
    source += "int main(void)\n{\n" + "".join(f"    {c}();\n" for c in calls) + "    return 0;\n}\n"
    (directory / "main.c").write_text(source)
    run("gcc", "-O0", "-c", directory / "main.c", "-o", directory / "main.o")
    run("g++", "-pthread", *objects, "-o", directory / "big")
    for path in objects:
        path.unlink()


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), *map(int, sys.argv[2:]))
