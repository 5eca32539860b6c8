"""Names that threads may give themselves, for test/prog/named.c, and what each is shown as."""

import os

SHOWN = {
    b"\xff\xfe caf\xe9": "\ufffd\ufffd caf\ufffd",
    "grün €".encode(): "grün €",
    b'"\\}],': '"\\}],',
    b"\x01\x1b[31m\n\t": "??[31m??",
    b"\xed\xa0\x80\xf8": "\ufffd\ufffd\ufffd\ufffd",
    b"{\xc3": "{\ufffd",
    b"<a&b>]]>'": "<a&b>]]>'",
    b";a;b 12": ";a;b 12",
    "\ufffe".encode(): "\ufffe",
}
ARGUMENTS = [os.fsdecode(name) for name in SHOWN]
