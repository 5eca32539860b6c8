"""60 functions of one name and file, each given back before the next one is made, nap in 31 different lines."""

for i in range(60):
    at = i * 7 % 31
    text = "def made():\n" + "    1\n" * at + "    nap()\n" + "    1\n" * (31 - at)
    exec(compile(text, "made.py", "exec"))
    made()
    del made
