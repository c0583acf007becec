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

from turnpost.core import text

VALUE_LENGTH = 6
"""Characters from which the value of a variable counts: a shorter one stands in many a word."""
MARK = "[redacted: "


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


# What detect-secrets does not know, and a private key with all its lines. A group, where there is one, is the secret.
_SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("Private Key", re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)", re.DOTALL)),
    ("Anthropic Key", re.compile(r"\bsk-ant-[A-Za-z0-9_-]{16,}")),
    ("OpenAI Token", re.compile(r"\bsk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,}")),
    ("GitHub Token", re.compile(r"\bgithub_pat_[A-Za-z0-9_]{22,}")),
    ("Google API Key", re.compile(r"\bAIza[0-9A-Za-z_-]{35}")),
    ("Hugging Face Token", re.compile(r"\bhf_[A-Za-z0-9]{30,}")),
    ("NPM tokens", re.compile(r"\bnpm_[A-Za-z0-9]{36}")),
    ("Authorization", re.compile(r"\bauthorization['\"]?\s*[:=]\s*['\"]?(?:bearer|basic|token)\s+([\w.~+/=-]{8,})", re.IGNORECASE)),
    # NAME=value and `name: value` without quotes: a value with both letters and digits is no word of a sentence.
    ("Secret Keyword", re.compile(
        r"(?<![\w.])\w{0,60}?(?:password|passwd|secret|token|api_?key|access_?key|private_?key)\w{0,60}(?:=|: ?)"
        r"((?=[^\s]{0,200}[0-9])(?=[^\s]{0,200}[A-Za-z])[^\s'\"`$(){}<>\[\],;]{8,})", re.IGNORECASE)),
)  # fmt: skip

_PREFIX = re.compile(
    r"AKC[a-zA-Z0-9]{10}|AP[\dA-F][a-zA-Z0-9]{8}|(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[0-9A-Z]{16}|AccountKey=|eyJ"
    r"|[MNO][\w-]{23,25}\.[\w-]{6}\.[\w-]{27}|gh[pousr]_|gl(?:pat|dt|ft|soat|rt|imt|ptt|agent|oas|cbt)-|GR1348941"
    r"|[0-9a-z]{32}-us[0-9]|_authToken|sk-|pypi-|SG\.[\w-]{22}\.|[xX][oO][xX][abposrABPOSR]-|(?i:hooks\.slack\.com)"
    r"|(?i:api.softlayer.com)|sq0csp-|[rs]k_live_|\d{8,10}:[\w-]{35}|(?:AC|SK)[a-z0-9]{32}|://[^\s:/?#@]{1,200}:[^\s@]{1,200}@"
)
_WORD = re.compile(r"key|pass|pw|token|secret|contrase", re.IGNORECASE)
_VALUE = re.compile(r"['\"`][^\s'\"`]{5}|[\w-]{24}")


def redact(body: str, secrets: Secrets, environment: Mapping[str, str] | None = None) -> Redacted:
    """The text with every secret replaced. `environment` is where named variables are looked up, by default the process's own."""
    if not secrets.redact:
        return Redacted(body)
    spans = [
        *_values(body, secrets.variables, os.environ if environment is None else environment),
        *(Span(*found.span(), kind) for kind, pattern in secrets.patterns for found in re.finditer(pattern, body)),
        *_shapes(body),
    ]  # fmt: skip
    if hints(body):
        from turnpost import detector

        spans += detector.find(body)
    found = _merged(body, spans)
    for span in reversed(found):
        body = f"{body[: span.start]}{MARK}{span.kind}]{body[span.end :]}"
    return Redacted(body, len(found))


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


def _shapes(body: str) -> Iterator[Span]:
    for kind, shape in _SHAPES:
        for found in shape.finditer(body):
            yield Span(*found.span(1 if shape.groups else 0), kind)


def _merged(body: str, spans: Iterable[Span]) -> list[Span]:
    """Spans that overlap as one, of the kind of the longest; none that was redacted before or is empty."""
    merged: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if span.start == span.end or body.startswith(MARK, max(0, span.start)):
            continue
        last = merged[-1] if merged else None
        if last is None or span.start >= last.end:
            merged.append(span)
        elif span.end > last.end:
            longer = span if span.end - span.start > last.end - last.start else last
            merged[-1] = Span(last.start, span.end, longer.kind)
    return merged
