"""Functions and files with names of letters that take one to four bytes."""

text = "def größe(): nap()\ndef 日本(): größe()\ndef 𐐨(): 日本()\n"
for name in ("plain.py", "größe.py", "日本.py", "𐐨.py"):
    exec(compile(text, name, "exec"))
    𐐨()
