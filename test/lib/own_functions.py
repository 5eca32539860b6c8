"""Functions in place of libc's that say when libgotrace.so calls them: test/source/own_functions/own.c."""

import platform
import re

from . import LIBRARY, SOURCES, proc

ARE_THERE = platform.machine() == "x86_64"
WHERE = "the functions are written in assembly for x86-64"

# Imported functions that the program may have of its own, with the reason. All others that we import are libc's.
PROGRAMS_OWN = {
    # the program's own call, which a hook passes on: a sanitizer has to see it
    *("pthread_rwlock_tryrdlock", "pthread_spin_trylock", "ftrylockfile", "fork"),
    # compared with what the program passes to scandir, never called
    *("alphasort", "alphasort64", "versionsort", "versionsort64"),
    # may be called before all others are bound, by hooks that constructors of libraries call
    "__errno_location",
}

# Without vector registers, and without calls that the compiler makes up.
FLAGS = ["-mgeneral-regs-only", "-fno-builtin", "-fno-stack-protector", "-fno-tree-loop-distribute-patterns"]


def symbols(library, which):
    """Name → kind, as nm has it."""
    lines = proc.run(["nm", "-D", f"--{which}-only", "--format=posix", library]).ok().stdout.splitlines()
    return {line.split()[0].split("@")[0]: line.split()[1] for line in lines}


def names():
    """The functions of libc that libgotrace.so imports."""
    libc = re.search(r"libc\.so\.6 => (\S+)", proc.run(["ldd", LIBRARY]).ok().stdout)[1]
    functions = {name for name, kind in symbols(libc, "defined").items() if kind in "TWi"}
    return functions & set(symbols(LIBRARY, "undefined"))


def build(folder, name, *flags, but=PROGRAMS_OWN):
    """Compiles the functions, but for some, to the file `name` in the folder."""
    (folder / "names.h").write_text("".join(f"NAME({name})\n" for name in sorted(names() - but)))
    return proc.compile(SOURCES / "own_functions/own.c", folder / name, *FLAGS, f"-I{folder}", *flags)
