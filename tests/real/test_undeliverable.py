"""What cannot be delivered is kept, and its sender is told."""

from __future__ import annotations

import pytest

from tests.real.kit import Post, bash, bodies, until
from turnpost.core import files, home, store
from turnpost.core.render import mark

pytestmark = [pytest.mark.real, pytest.mark.slow]


def test_a_session_that_claude_code_has_forgotten_is_given_up_aloud(post: Post) -> None:
    post.configure(resume_attempts=2, resume_backoff_seconds=1.0, resume_confirm_seconds=3.0)
    session_id = post.launch_idle("alpha")
    post.launch_idle("beta", options=("--parent", "alpha", "--no-report"))
    post.end_session("alpha")
    known = store.load_state(post.root, post.key("alpha"))
    assert known
    bogus = {**known, "session_id": "00000000-0000-4000-8000-000000000000"}
    files.write(home.agent(post.root, post.key("alpha")) + "/state.json", store.pack(bogus))

    post.model.script("beta", [bash("turnpost send alpha 'from beta' --json | tee sent.json")])
    by_person = post.send("alpha", "from the person")
    post.send("beta", "write to alpha")
    receipt = post.wait_receipt("alpha", by_person.id, "undeliverable")
    assert receipt.reason
    assert "could not be resumed" in receipt.reason
    failed, again = post.log("resume-failed")[:2]
    assert failed["agent"] == again["agent"] == post.key("alpha")

    def alert() -> str:
        found = [one for one in post.run("inbox", "--keep")["messages"] if one["sender"] == "system"]
        return next((str(one["body"]) for one in found if one["kind"] == "alert"), "")

    body = until(alert, "the person is told")
    assert by_person.id in body
    assert "alpha" in body
    # beta is told in its own conversation.
    heard = post.model.wait_for(lambda one: one.name == "beta" and one.has('from="system"'), 45.0)
    (line,) = [line for _, text in heard.texts for line in text.splitlines() if 'from="system"' in line]
    alert_id = line.partition('about="')[2].partition('"')[0]
    assert "Not delivered to alpha" in bodies(heard, [alert_id])[0]
    post.assert_read_once("beta", alert_id)
    assert len(post.requests("alpha")) == 1

    # The agent itself is not given up: once its session is known again, it can be written to.
    post.run("coordinator", "stop")
    post.configure(resume_attempts=2)
    store.save_state(post.root, post.key("alpha"), known)
    later = post.send("alpha", "once more")
    post.assert_read_once("alpha", later.id)
    assert post.agent("alpha").session_id == session_id
    assert not post.requests("alpha")[-1].has(mark(by_person.id))
