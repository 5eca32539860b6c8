"""Prints where Python's library is, for embeds.c."""

import os, sysconfig
directory, name = map(sysconfig.get_config_var, ("LIBDIR", "INSTSONAME"))
path = f"{directory}/{name}"
print(path if os.path.exists(path) else name)
