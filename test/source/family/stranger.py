"""Tries to list the folder that the argument names, and to make a file in the folder."""

import os, pathlib, sys
outer = pathlib.Path(sys.argv[1])
for attempt in (lambda: os.listdir(outer), lambda: (outer / "1-1-x").write_text("")):
    try:
        print(attempt())
    except PermissionError:
        print("refused")
