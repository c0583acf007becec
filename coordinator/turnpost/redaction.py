"""Taking secrets out of what is sent, before anything is written: each becomes `[redacted: KIND]`.

Four finders look at the text as it was given: values of the environment variables that the person named, the person's
own patterns, a few shapes that are known here, and the detectors of `detect-secrets`. Importing those takes some 200 ms,
mostly for an HTTP client that is never used here; so they are asked only where `hints` says that one could find something.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

from turnpost.core import clock, text
from turnpost.core.errors import UsageError

PATTERN_SECONDS = 1.0
"""How long all of the person's own patterns may take on one text: some take for ever on a text that nearly fits."""
VALUE_LENGTH = 6
"""Characters from which the value of a variable counts: a shorter one stands in many a word."""
MARK = "[redacted: "
_ANY = "Secret Keyword"
"""What detect-secrets calls a value that only the word beside it gives away."""


class Secrets(NamedTuple):
    """What the person's policy says. `variables` are names, in which `*` stands for any text; `patterns` kind and expression."""

    redact: bool = True
    variables: tuple[str, ...] = ()
    patterns: tuple[tuple[str, str], ...] = ()


class Span(NamedTuple):
    """A secret in a text, and what kind it is."""

    start: int
    end: int
    kind: str


class Redacted(NamedTuple):
    """A text without its secrets, and how many there were."""

    text: str
    taken: int = 0


class _Shape(NamedTuple):
    """What a secret looks like: a group of the expression, where there is one, else all that it fits.

    Without one of the `words` it fits nothing, in a text as `text.folded` has it: making an expression takes longer than
    all else that is done with most texts.
    """

    kind: str
    words: tuple[str, ...]
    expression: str
    flags: int = 0


_CHARACTER = r"[^\s'\"`(){}<>\[\],;]"
"""What a value without quotes is made of."""
_NO_VALUE = r"(?!\$|https?://|[\w.]{1,100}[(\[]|[a-z_]{1,40}\d?(?:\.[a-z_]{1,40}\d?)+(?![^\s,;)]))"
"""What stands in the place of a value and is none: `$NAME`, an address, a call, a place in a list, `config.token2`."""
_MIXED = rf"{_NO_VALUE}(?={_CHARACTER}{{0,200}}[0-9])(?={_CHARACTER}{{0,200}}[A-Za-z])"
"""Before a value with letters and digits: no word of a sentence is like that."""

_PASSWORDS = ("password", "passwd", "passphrase")
# What detect-secrets does not know, and a private key with all its lines.
_SHAPES = (
    _Shape("Private Key", ("-----begin",), r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)", re.DOTALL),
    _Shape("Anthropic Key", ("sk-ant-",), r"\bsk-ant-[A-Za-z0-9_-]{16,}"),
    _Shape("OpenAI Token", ("sk-",), r"\bsk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,}"),
    _Shape("GitHub Token", ("github_pat_",), r"\bgithub_pat_[A-Za-z0-9_]{22,}"),
    _Shape("Google API Key", ("aiza",), r"\bAIza[0-9A-Za-z_-]{35}"),
    _Shape("Hugging Face Token", ("hf_",), r"\bhf_[A-Za-z0-9]{30,}"),
    _Shape("NPM tokens", ("npm_",), r"\bnpm_[A-Za-z0-9]{36}"),
    _Shape("Authorization", ("authorization",), r"\bauthorization['\"]?\s*[:=]\s*['\"]?(?:bearer|basic|token)\s+([\w.~+/=-]{8,})", re.IGNORECASE),
    # Without that word before it the value must look like one.
    _Shape("Authorization", ("bearer",), r"\bbearer\s+((?=[\w.~+/=-]{0,200}[0-9])(?=[\w.~+/=-]{0,200}[A-Za-z])[\w.~+/=-]{16,})", re.IGNORECASE),
    # All pairs of a header, from the first value on.
    _Shape("Cookie", ("cookie",), r"\bcookie['\"]?: ?['\"]?[\w.-]{1,100}=(?!\$)((?:[^\s;'\"<>{}\[\]]+; ?[\w.-]{1,100}=)*[^\s;'\"<>{}\[\]]{6,})", re.IGNORECASE),
    _Shape("Google OAuth Secret", ("gocspx-",), r"\bGOCSPX-[\w-]{20,}"),
    _Shape("Google OAuth Token", ("ya29.",), r"\bya29\.[\w-]{20,}"),
    _Shape("DigitalOcean Token", ("_v1_",), r"\bdo[opr]_v1_[0-9a-f]{32,}"),
    _Shape("Shopify Token", ("shp",), r"\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    _Shape("Vault Token", ("hvs.",), r"\bhvs\.[\w-]{20,}"),
    _Shape("Stripe Webhook Secret", ("whsec_",), r"\bwhsec_[A-Za-z0-9+/=]{24,}"),
    # NAME=value and `name: value`, of a header, an option, a variable or a line of a configuration.
    _Shape(_ANY, (*_PASSWORDS, "secret", "token", "key"),
        r"(?<![\w.-])[\w-]{0,60}?(?:password|passwd|passphrase|secret|token|(?:api|access|private|auth)[_-]?key)[\w-]{0,60}"
        rf"(?<!name)(?<![_-]id)(?<!file)(?<!path)(?<!ur[il])['\"]?[ \t]{{0,20}}[=:][ \t]{{0,20}}['\"]?{_MIXED}({_CHARACTER}{{8,}})", re.IGNORECASE),
    _Shape(_ANY, _PASSWORDS, rf"(?<![\w.-])[\w-]{{0,60}}?(?:password|passwd|passphrase)={_MIXED}({_CHARACTER}{{6,}})", re.IGNORECASE),
    # A word alone, in a variable of a shell or an option; a word in capitals is what a usage line says.
    _Shape(_ANY, (*_PASSWORDS, "secret", "_pwd", "_pass"),
        r"(?<![\w.-])(?:[A-Z0-9_]{0,60}?(?:PASSWORD|PASSWD|PASSPHRASE|SECRET|_PWD|_PASS)|--[a-z-]{0,60}?(?:password|passwd|passphrase|secret))="
        rf"(?![A-Z_]+(?!\S))(?![./~]){_NO_VALUE}({_CHARACTER}{{6,}})"),
    # Words in quotes, where detect-secrets wants one without a space.
    _Shape(_ANY, _PASSWORDS,
        r"(?:password|passwd|passphrase)['\"]?\]?[ \t]{0,20}==?[ \t]{0,20}"
        r"(?:'([^\s'<>${}()\[\]%][^'<>${}\[\]\n]{4,200})'|\"([^\s\"<>${}()\[\]%][^\"<>${}\[\]\n]{4,200})\")", re.IGNORECASE),
)  # fmt: skip
_WORDS = sorted({word for shape in _SHAPES for word in shape.words})

# Each begins with a letter or sign, never with a choice of them: only so does `re` pass over the others at a fifth of the time.
_PREFIX = re.compile(
    r"AKC[a-zA-Z0-9]{10}|AP[\dA-F][a-zA-Z0-9]{8}|A(?:3T[A-Z0-9]|BIA|CCA|KIA|SIA)[0-9A-Z]{16}|AccountKey=|eyJ"
    r"|\.[\w-]{6}\.[\w-]{27}|gh[pousr]_|gl(?:pat|dt|ft|soat|rt|imt|ptt|agent|oas|cbt)-|GR1348941|-us[0-9]|_authToken"
    r"|sk-|pypi-|SG\.[\w-]{22}\.|x(?i:ox[abposr]-)|X(?i:ox[abposr]-)|\.(?i:slack\.com)|s(?i:oftlayer.com)"
    r"|S(?i:oftlayer.com)|sq0csp-|k_live_|:[\w-]{35}|AC[a-z0-9]{32}|SK[a-z0-9]{32}|://[^\s:/?#@]{1,200}:[^\s@]{1,200}@"
)
_WORD = re.compile(r"key|pass|pw|token|secret|contrase", re.IGNORECASE)
_VALUE = re.compile(r"['\"`][^\s'\"`]{5}|[\w-]{24}")


def redact(body: str, secrets: Secrets, environment: Mapping[str, str] | None = None) -> Redacted:
    """The text with every secret replaced. `environment` is where named variables are looked up, by default the process's own.

    Raises UsageError (`policy`) when the person's own patterns take too long on it.
    """
    if not secrets.redact:
        return Redacted(body)
    spans = [
        *_values(body, secrets.variables, os.environ if environment is None else environment),
        *_own(body, secrets.patterns),
        *_shapes(body),
    ]  # fmt: skip
    if hints(body):
        from turnpost import detector

        spans += detector.find(body)
    found = _merged(body, spans)
    for span in reversed(found):
        body = f"{body[: span.start]}{MARK}{span.kind}]{body[span.end :]}"
    return Redacted(body, len(found))


def refuse(what: str, word: str, secrets: Secrets, rule: str) -> None:
    """Raises UsageError by a rule for a secret in what cannot be changed without losing its meaning, such as a name."""
    if redact(word, secrets).taken:
        raise UsageError(f"a secret stands in the {what}; nothing was written. Choose another one", rule=rule)


def hints(body: str) -> bool:
    """Whether a detector could find something. Where this says no, none does: a test asks each of them."""
    if _PREFIX.search(body):
        return True
    return any(_WORD.search(line) and _VALUE.search(line) for line in body.split("\n"))


def _values(body: str, names: Iterable[str], environment: Mapping[str, str]) -> Iterator[Span]:
    """Where values of the named variables stand."""
    patterns = tuple(names)
    for name, value in environment.items() if patterns else ():
        if not any(fnmatchcase(name, pattern) for pattern in patterns):
            continue
        # As the body has it: sent on, a value has gone through the same mending.
        wanted = text.clean(value)[0].strip()
        at = body.find(wanted) if len(wanted) >= VALUE_LENGTH else -1
        while at >= 0:
            yield Span(at, at + len(wanted), name)
            at = body.find(wanted, at + len(wanted))


def _own(body: str, patterns: Iterable[tuple[str, str]]) -> Iterator[Span]:
    """Where the person's own patterns fit. Nothing is sent that they could not look through."""
    own = tuple(patterns)
    if not own:
        return
    import regex  # `re` has no time limit

    end = clock.monotonic() + PATTERN_SECONDS
    for kind, pattern in own:
        try:
            for found in regex.finditer(pattern, body, timeout=max(0.001, end - clock.monotonic())):
                yield Span(found.start(), found.end(), kind)
        except TimeoutError:
            raise UsageError(
                f"the patterns of policy.toml took more than {PATTERN_SECONDS:g} s on this text, the last one '{kind}'; "
                "nothing was written: make that pattern simpler",
                rule="policy",
            ) from None


def _shapes(body: str) -> Iterator[Span]:
    folded = text.folded(body)
    there = {word for word in _WORDS if word in folded}
    for shape in _SHAPES:
        if not there.isdisjoint(shape.words):
            for found in re.finditer(shape.expression, body, shape.flags):
                yield Span(*found.span(found.lastindex or 0), shape.kind)


def _merged(body: str, spans: Iterable[Span]) -> list[Span]:
    """Spans that overlap as one, of the kind of the longest, and sooner of one that says whose it is; none that was redacted before or is empty."""
    merged: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end, span.kind == _ANY)):
        if span.start == span.end or body.startswith(MARK, max(0, span.start)):
            continue
        last = merged[-1] if merged else None
        if last is None or span.start >= last.end:
            merged.append(span)
        elif span.end > last.end:
            longer = span if span.end - span.start > last.end - last.start else last
            merged[-1] = Span(last.start, span.end, longer.kind)
    return merged
