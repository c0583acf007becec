"""The detectors of `detect-secrets`, on lines of text: no file is read, nothing is verified, so nothing leaves the machine.

Left out are those that find what agents write all day: public addresses, and strings of high entropy, such as commit
and session ids. Private keys are found whole elsewhere: the detector sees only their first line.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from detect_secrets.filters import heuristic
from detect_secrets.plugins import keyword

from turnpost.redaction import Span

PLUGINS = {
    "artifactory": "ArtifactoryDetector", "aws": "AWSKeyDetector", "azure_storage_key": "AzureStorageKeyDetector",
    "basic_auth": "BasicAuthDetector", "cloudant": "CloudantDetector", "discord": "DiscordBotTokenDetector",
    "github_token": "GitHubTokenDetector", "gitlab_token": "GitLabTokenDetector", "ibm_cloud_iam": "IbmCloudIamDetector",
    "ibm_cos_hmac": "IbmCosHmacDetector", "jwt": "JwtTokenDetector", "mailchimp": "MailchimpDetector",
    "npm": "NpmDetector", "openai": "OpenAIDetector", "pypi_token": "PypiTokenDetector", "sendgrid": "SendGridDetector",
    "slack": "SlackDetector", "softlayer": "SoftlayerDetector", "square_oauth": "SquareOAuthDetector",
    "stripe": "StripeDetector", "telegram_token": "TelegramBotTokenDetector", "twilio": "TwilioKeyDetector",
}  # fmt: skip
LEFT_OUT = ("high_entropy_strings", "ip_public", "keyword", "private_key")
"""Not used by their expressions; `keyword` is asked with its own checks."""
WINDOW = 2_000
"""Characters looked at together: the expressions take the square of a line's length."""
OVERLAP = 400
_WORD_LENGTH = 5
_TOKEN = re.compile(r"(?:[A-Za-z0-9_+/=-]|\.(?=[A-Za-z0-9_-]))*")
_TOKEN_END = re.compile(r"[A-Za-z0-9_+/=.-]")


def find(body: str) -> Iterator[Span]:
    """Where the detectors find secrets. Spans may overlap."""
    for start, part in _parts(body):
        for span in (*_by_shape(part), *_by_word(part)):
            yield Span(start + span.start, start + span.end, span.kind)


@cache
def detectors() -> tuple[tuple[str, Any], ...]:
    """The detectors with the names of what they find."""
    found = [
        getattr(importlib.import_module(f"detect_secrets.plugins.{m}"), name) for m, name in PLUGINS.items()
    ]
    return tuple((str(one.secret_type), one) for one in found)


def _parts(body: str) -> Iterator[tuple[int, str]]:
    """The lines with their places; a long one in windows that overlap."""
    start = 0
    for line in body.split("\n"):
        for at in range(0, max(1, len(line) - OVERLAP), WINDOW - OVERLAP):
            yield start + at, line[at : at + WINDOW]
        start += len(line) + 1


def _by_shape(line: str) -> Iterator[Span]:
    for kind, detector in detectors():
        for expression in detector.denylist:
            for found in expression.finditer(line):
                start, end = _secret(found)
                check = getattr(detector, "is_formally_valid", None)
                if check is None or check(found[0]):
                    yield Span(start, _token_end(line, end), kind)


def _by_word(line: str) -> Iterator[Span]:
    """Values in quotes beside a word such as `password`; no sentence, no placeholder and no reference to elsewhere."""
    if heuristic.is_indirect_reference(line):
        return
    for expression, group in keyword.QUOTES_REQUIRED_DENYLIST_REGEX_TO_GROUP.items():
        for found in expression.finditer(line):
            value = found[group]
            if len(value) >= _WORD_LENGTH and not _is_no_secret(value):
                yield Span(*found.span(group), str(keyword.KeywordDetector.secret_type))


def _is_no_secret(value: str) -> bool:
    return (
        any(c.isspace() for c in value)
        or heuristic.is_templated_secret(value)
        or heuristic.is_prefixed_with_dollar_sign(value)
        or heuristic.is_not_alphanumeric_string(value)
    )


def _secret(found: re.Match[str]) -> tuple[int, int]:
    """The secret in a match: its group where little but a quote follows that, else, where it is but a prefix, all of it."""
    if found.re.groups and found[1] and found.start(1) > found.start() and found.end() - found.end(1) <= 2:
        return found.span(1)
    return found.span()


def _token_end(line: str, end: int) -> int:
    """Where the token ends whose begin was recognised: some expressions know only that."""
    rest = _TOKEN.match(line, end) if end and _TOKEN_END.match(line[end - 1]) else None
    return rest.end() if rest else end
