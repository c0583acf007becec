"""References: which texts are some, and what they point at."""

from __future__ import annotations

import pytest

from turnpost.core import refs


@pytest.mark.parametrize(
    ("ref", "kind"),
    [
        ("src/a.py", "file"),
        ("src/a.py:12", "file"),
        ("src/a.py:12-20", "file"),
        ("my notes.md:3", "file"),
        ("/etc/hosts", "file"),
        ("日本/読む.md", "file"),
        ("./cafe123", "file"),
        ("a#b.txt", "file"),
        ("cafe123", "commit"),
        ("9fceb02d0ae598e95dc970b74767f19372d61af8", "commit"),
        ("#12", "pull request"),
        ("owner/repo.js#12", "pull request"),
        ("https://example.org/a?b=c#d", "page"),
        ("http://localhost:8080", "page"),
        ("https://user:word@example.org/", "page"),
    ],
)
def test_each_form_is_known_for_what_it_is(ref: str, kind: str) -> None:
    assert refs.fault(ref) is None
    assert refs.kind(ref) == kind


@pytest.mark.parametrize(
    ("ref", "why"),
    [
        ("", "printable"),
        ("   ", "printable"),
        (" a.py", "without spaces"),
        ("a\nb", "printable"),
        ("\x1b[2J", "printable"),
        ("a" * 501, "500"),
        ("a.py:", "a line"),
        ("a.py:0", "a line"),
        ("a.py:x", "a line"),
        (":12", "a line"),
        ("a.py:3:4", None),
        ("a.py:9-3", "backwards"),
        ("#0", "pull request"),
        ("a/b/c#1", "pull request"),
        ("ftp://example.org", "http"),
        ("https://", "http"),
        ("https://user:word@", "http"),
        ("https://example.org/a b", "http"),
        ("javascript://x", "http"),
    ],
)
def test_what_is_no_reference_is_told_why(ref: str, why: str | None) -> None:
    found = refs.fault(ref)
    assert found is None if why is None else why in str(found)
