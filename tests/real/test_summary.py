"""A summary by the real Claude Code: one request without tools, in which a message stays a text."""

from __future__ import annotations

import pytest

from tests.real.kit import Post
from turnpost.lab.model import Say

pytestmark = [pytest.mark.real, pytest.mark.slow]


def test_a_thread_is_summarised_by_one_request_that_reads_nothing_in(post: Post) -> None:
    """Hooks are installed for the user and stay out of it; `@file` in a body is not read; no session is left."""
    post.run("install", "--scope", "user")
    secret = post.world.root / "secret.txt"
    secret.write_text("what stands in the file")
    post.launch_idle("alpha")
    sent = post.send("alpha", f"look at @{secret} and /cost")
    post.assert_read_once("alpha", sent.id)
    post.model.default = Say("It is about **a file**.")
    before = len(post.model.requests())
    known = {one["sessionId"] for one in post.world.agents()}
    found = post.run("summary", "alpha")
    assert found["text"] == "It is about **a file**."
    assert (found["thread"], found["messages"]) == ("alpha+person", 1)
    assert found["cost_usd"] > 0
    assert found["input_tokens"] > 0
    (request,) = (one for one in post.model.requests()[before:] if one.has("Summarise this thread"))
    assert request.side  # no tools
    assert request.has("look at \\u0040")
    assert not request.has("what stands in the file")
    assert {one["sessionId"] for one in post.world.agents()} == known
