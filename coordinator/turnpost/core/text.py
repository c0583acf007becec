"""What a body and a name may be, and how either is shown.

A waiter holds this for as long as its agent idles, and a claim waits for it: `re` would be a third of the waiter's start
and a quarter of its memory, and `unicodedata` is for what is not ASCII.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

RESERVED = frozenset({"person", "system", "parent", "turnpost", "all"})
NAME_LIMIT = 64
SPACE = "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
"""All that `str.isspace` knows."""
_OURS = ("message", "system-reminder")
# The other letters that are ASCII ones when case is ignored.
_ALIKE = str.maketrans("\u0130\u0131\u017f\u212a", "iisk")


def clean(body: str) -> tuple[str, int]:
    """The body as it can be stored, and how many characters were replaced.

    NUL and lone surrogates are no text that JSON, UTF-8 and a model all accept: each becomes U+FFFD.
    """
    if body.isascii() and "\0" not in body:
        return body, 0
    fixed = "".join("\ufffd" if c == "\0" or "\ud800" <= c <= "\udfff" else c for c in body)
    return fixed, sum(a != b for a, b in zip(body, fixed, strict=True))


def units(text: str) -> int:
    """Length in UTF-16 units, which is how the harness counts a hook's context."""
    return len(text) + sum(c > "\uffff" for c in text)


def inert(body: str) -> str:
    """The body with the `<` of what would open or close our element, or the harness's, written as `&lt;`."""
    first, *rests = body.split("<")
    return "".join([first, *(("&lt;" if _names_an_element(rest) else "<") + rest for rest in rests)])


def tagged(body: str) -> bool:
    """Whether a body holds what looks like an element.

    In the text of a waiter Claude Code puts a backslash into every element that its own notifications know, `<summary>`
    and `<status>` among them. Added context it leaves alone.
    """
    return any("a" <= folded(rest.lstrip(SPACE + "\\/")[:1]) <= "z" for rest in body.split("<")[1:])


def folded(text: str) -> str:
    """A text as `re` compares it when case is ignored, as far as ASCII goes."""
    return text.translate(_ALIKE).lower()


def visible(text: str) -> str:
    """Text that is safe for a terminal: control and formatting characters are shown by their code, tabs and newlines kept."""
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    import unicodedata

    return "".join(c if c in "\n\t" or unicodedata.category(c)[0] != "C" else _code(c) for c in text)


def _names_an_element(rest: str) -> bool:
    """Whether what follows a `<` makes it the begin or the end of an element of ours or the harness's."""
    word = rest.lstrip(SPACE).removeprefix("/").lstrip(SPACE)
    for name in _OURS:
        after = word[len(name) : len(name) + 1]
        if folded(word[: len(name)]) == name and not (after.isalnum() or after in ("_", ".", "-")):
            return True
    return False


def _code(c: str) -> str:
    point = ord(c)
    if c in "\u200c\u200d":  # joiners: parts of emoji and of several scripts, harmless to a terminal
        return c
    return f"\\x{point:02x}" if point < 256 else f"\\u{point:04x}" if point < 65536 else f"\\U{point:08x}"


def one_line(words: str, limit: int = 300) -> str:
    """What a program printed, as one line: a bar stands where a line ended."""
    lines = (" ".join(line.split()) for line in words.splitlines())
    return " | ".join(filter(None, lines))[:limit] or "nothing"


def taken_out(secrets: int) -> str:
    """How many secrets were taken out of what was said."""
    return "1 secret was taken out" if secrets == 1 else f"{secrets} secrets were taken out"


def name_fault(name: str) -> str | None:
    """Why a text cannot name an agent; None when it can."""
    name = name_form(name)
    if not 1 <= len(name) <= NAME_LIMIT or len(name.encode("utf-8", "replace")) > 200:
        return f"a name has 1 to {NAME_LIMIT} characters, this one {len(name)}"
    if name.casefold() in RESERVED:
        return f"'{name}' is a reserved word"
    if not name[0].isalnum() or not all(c.isalnum() or c in "._-" for c in name):
        return "a name starts with a letter or digit and holds letters, digits, '.', '_' and '-'"
    if name.startswith(("msg-", "ag-")):
        return "a name does not begin like an id (msg-, ag-)"
    return None


def name_form(name: str) -> str:
    """A name as it is kept: composed, however its keyboard or file system wrote it."""
    return _composed(name)


def name_key(name: str) -> str:
    """The form names are compared in: two that differ in case or composition are one, on every file system."""
    return _composed(name.casefold())


def nearest(name: str, names: Iterable[str]) -> list[str]:
    """The names that a mistyped one may stand for, as they are written."""
    import difflib

    known = {name_key(one): one for one in names}
    return [known[key] for key in difflib.get_close_matches(name_key(name), known, 3, 0.6)]


def to_name(text: str) -> str:
    """The nearest thing to a text that is a name: for folders called `my project (2)`."""
    kept = "".join(c if c.isalnum() or c in "._-" else "-" for c in _composed(text)).strip("-._")
    return kept[: NAME_LIMIT - 16] or "agent"


def _composed(text: str) -> str:
    if text.isascii():
        return text
    import unicodedata

    return unicodedata.normalize("NFC", text)
