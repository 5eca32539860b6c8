"""The manual pages under scripts/man: each command, option, switch and format has its place, and no link leads nowhere."""

import re

import pytest

from lib import ROOT, gotools, proc

MAN = ROOT / "scripts/man"
TOOL = ROOT / "scripts/tool"
GOTRACE = ROOT / "scripts/gotrace"
PAGES = {path.name.removesuffix(".md"): path.read_text() for path in sorted(MAN.glob("*.md"))}
TEXTS = {MAN / f"{name}.md": text for name, text in PAGES.items()} | {
    ROOT / name: (ROOT / name).read_text() for name in ("README.md", "CONTRIBUTING.md")
}
NAMES = [path.name for path in TEXTS]
COMMANDS = re.findall(r'^    {"([a-z]+)", "[^"]*"', (TOOL / "launch/main.c").read_text(), re.M)
LIBRARY = PAGES["libgotrace.7"]


def reference(name):
    """As other pages name a page: gotrace-top(1)."""
    return re.sub(r"\.(\d)$", r"(\1)", name)


def names_of(page):
    """The commands that a page is about, by its section NAME."""
    return re.search(r"^# NAME\n\n(.*) - ", page, re.M)[1].split(", ")


def page_of(command):
    (page,) = (page for page in PAGES.values() if f"gotrace-{command}" in names_of(page))
    return page


def help_of(*command):
    return proc.run([GOTRACE, *command, "--help"]).ok().stdout


def anchors(text):
    """What GitHub makes of headings."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


# --- the pages themselves


@pytest.mark.needs("go-md2man", "mandoc", "man")
def test_pages_are_clean():
    """Each becomes a page that two readers of manual pages take without a warning, with a name and a heading of its own."""
    proc.run(["make", "-s", "-C", ROOT, "man"]).ok()
    for name in PAGES:
        page = ROOT / "build/man" / name
        result = proc.run(["mandoc", "-Tlint", "-Wwarning", page])
        assert result.returncode == 0 and not result.stdout, result.stdout
        shown = proc.run(["man", "--warnings", "-l", page], env={"MAN_KEEP_FORMATTING": "", "LC_ALL": "C.UTF-8", "MANWIDTH": "80"}).ok()
        assert not shown.stderr and shown.stdout.startswith(reference(name)), shown.stderr or shown.stdout[:80]
        assert all(len(line) <= 80 for line in shown.stdout.splitlines() if "│" in line), f"{name}: a table is too wide"
    for command in COMMANDS:
        text = (ROOT / f"build/man/gotrace-{command}.1").read_text()
        assert text.startswith(".so man1/gotrace-") or f"gotrace-{command}" in text
        for page in re.findall(r"^\.so man1/(.*)", text):
            assert (ROOT / "build/man" / page).exists()


@pytest.mark.parametrize("name", PAGES)
def test_page_begins_as_pages_do(name):
    page = PAGES[name]
    title, section = name.rsplit(".", 1)
    assert re.match(rf'% {title} {section} "20\d\d-\d\d-\d\d"\n\n# NAME\n\n.*\b{title}\b.* - \S', page), page[:200]
    assert re.search(r"\n# SEE ALSO\n\n.*\[[^]]*\]\([^)]*\)", page), "names no other page"


@pytest.mark.parametrize("path", TEXTS, ids=NAMES)
def test_links(path):
    """Each leads to a file of the checkout, and to a heading that is there; a page is called by its own name."""
    text = re.sub(r"^```.*?^```", "", TEXTS[path], flags=re.M | re.S)
    for shown, link in re.findall(r"\[([^]]*)\]\(([^)\s]*)\)", text):
        if link.startswith("https://"):
            continue
        to, _, heading = link.partition("#")
        target = (path.parent / to).resolve() if to else path
        assert target.is_relative_to(ROOT) and target.exists(), (shown, link)
        assert not heading or heading in anchors(target.read_text()), (shown, link)
        if target.parent == MAN:
            assert shown in (target.name, reference(target.name.removesuffix(".md"))) or "gotrace" not in shown, (shown, link)
    for page in re.findall(r"(?<![\w-])((?:lib)?gotrace[\w-]*\(\d\))", text):
        assert page in map(reference, PAGES), page


def test_first_page_names_all():
    see_also = PAGES["gotrace.1"].split("# SEE ALSO")[1]
    assert set(map(reference, PAGES)) - {"gotrace(1)"} <= set(re.findall(r"[\w-]+\(\d\)", see_also))


# --- commands and their options


@pytest.mark.parametrize("command", COMMANDS)
def test_command_has_its_page(command):
    """With each option of its help, as an entry; and each option of the page is one."""
    assert re.search(rf"\*\*gotrace {command}\*\*", PAGES["gotrace.1"]), "not in the list of commands"
    page, text = page_of(command), help_of(command)
    usage = " ".join(re.findall(rf"gotrace {command} (.*)$", text, re.M))
    known = {*re.findall(r"^  (?:-\w, | {4})?(--[a-z-]+)", text, re.M), *re.findall(r"--[a-z-]+", usage)} - {"--help"}
    own = PAGES["gotrace.1"] if command == "attach" else page
    for option in known:
        assert re.search(rf"^\*\*[^:\n]*{option}\b", own, re.M) or re.search(rf"^\*\*gotrace.*{option}\b", page, re.M), option
    synopsis = re.search(r"^# SYNOPSIS\n(.*?)^# ", page, re.M | re.S)[1]
    for option in re.findall(r"--[a-z-]+", " ".join(re.findall(rf"gotrace {command}\b.*", synopsis))):
        assert option in text, option


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_names_options(command):
    """Not the library's variables: each of those in question has an option."""
    assert "GOTRACE_" not in help_of(*command.split())


def test_options_of_a_programs_start():
    """Each has an entry, which names the variable that it sets; the variable has one in libgotrace(7)."""
    rows = re.findall(r'^    {"([a-z-]+)", (?:0|\'(\w)\'), (?:NULL|"\w+"), "(\w+)", (?:NULL|"(\w+)"),', (TOOL / "run_options.c").read_text(), re.M)
    assert len(rows) > 20
    for name, letter, variable, value in rows:
        entry = re.search(rf"^(\*\*.*--{name}\*\*.*)\n:   ((?:.+\n)*)", PAGES["gotrace.1"], re.M)
        assert entry, name
        assert f"`{variable}{'=' + value if value else ''}`" in re.sub(r"`(GOTRACE_\w+)`, default", r"`\1`", entry[2]) or f"(`{variable}`" in entry[2], name
        assert not letter or f"**-{letter}**" in entry[1], name
        assert f"\n**{variable}**=" in LIBRARY, variable
    for name in "family", "wait", "force", "help", "version":
        assert re.search(rf"^\*\*.*--{name}\*\*", PAGES["gotrace.1"], re.M), name


# --- the library's tables


UNITS = ("time", "size", "bytes", "nanoseconds", "number", "directory", "path", "signal", "1M or more", "up to 10000")
VALUES = r"\b(?:on|off|0|1|all|auto|manual|now|later|blocking|none)\b"


def test_switches():
    """Each has an entry, with its values, their unit and its default as in the library's table; and there is no other entry."""
    rows = {name: (values, default) for name, values, default in re.findall(r"^\*\*(GOTRACE\w*)\*\*=(.*) \(default: (.*)\)\n:   ", LIBRARY, re.M)}
    options, *headers = ((ROOT / name).read_text() for name in ("preload/shared/options.c", "preload/shared/options.h", "encoder/format/format.h"))
    for name, default in re.findall(r'^#define (GT_\w+_DEFAULT) (".*")', "".join(headers), re.M):
        options = options.replace(name, default)
    known = re.findall(r'^    \{"(GOTRACE\w*)", (?:NULL|"([^"]*)"), "([^"]*)"', options, re.M)
    assert {name: default for name, (_, default) in rows.items()} == {name: f"`{default}`" if default else "none" for name, _, default in known}
    for name, accepted, _ in known:
        values = rows[name][0]
        for unit in UNITS:
            assert unit not in accepted.replace("a number of ", "") or unit in values, (name, unit, values)
        for value in re.findall(VALUES, accepted.split(", such as")[0]):
            assert f"`{value}`" in values, (name, value, values)


def test_formats():
    """Every format that there is, read by the versions that test_formats.py reads it with."""
    rows = re.findall(r"^- (`go1\..*?): that Go version (to 1\.22|and all newer ones)", LIBRARY, re.M)
    read = {name: 22 if upto == "to 1.22" else None for names, upto in rows for name in re.findall(r"`(go1\.\d+)`", names)}
    assert read == {name: last for name, (_, last) in gotools.FORMATS.items()}
    known = re.findall(r'^    \{"(go1\.\d+)", ', (ROOT / "encoder/format/format.c").read_text(), re.M)
    assert list(read) == known


def test_signals_that_save_the_flight_recorder():
    (said,) = re.findall(r"- when a signal ends the program: (.*?), where", LIBRARY, re.S)
    assert re.findall(r"SIG\w+", said) == re.findall(r"\{(SIG\w+), (?:true|false)\}", (ROOT / "preload/process/fatal.c").read_text())
