"""usage: python -m gotrace [options of gotrace] SCRIPT|-m MODULE|-c CODE [arguments]

Runs a program in this Python and records it, as `gotrace [options] -- python SCRIPT` does: see `gotrace --help`.
"""

import os
import shutil
import sys
import sysconfig

WITH_VALUE = {"-o", "-F", "-s"}  # short options of gotrace whose value may be the next word
OF_PYTHON = {"-m", "-c"}  # they begin what Python runs


def split(words):
    """The options of gotrace, and what Python runs."""
    i = 0
    while i < len(words) and words[i].startswith("-") and words[i] not in OF_PYTHON:
        if words[i] == "--":
            return words[:i], words[i + 1:]
        i += 2 if words[i] in WITH_VALUE else 1
    return words[:i], words[i:]


def command():
    """The command of this installation, or else the one that a shell finds."""
    here = os.path.join(sysconfig.get_path("scripts"), "gotrace")
    return here if os.access(here, os.X_OK) else shutil.which("gotrace")


def main():
    options, program = split(sys.argv[1:])
    gotrace = command()
    if not program and not {"-h", "--help", "-V", "--version"} & set(options):
        sys.exit(__doc__)
    if not gotrace:
        sys.exit("gotrace: the command is not installed beside this Python, nor on PATH")
    os.execv(gotrace, ["gotrace", *options, *(["--", sys.executable, *program] if program else [])])


if __name__ == "__main__":
    main()
