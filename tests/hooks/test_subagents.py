"""What a subagent's hooks do with its mail, seen from its own model requests and its agent's."""

from __future__ import annotations

import json
import re
import uuid
from typing import Any

import pytest

from tests.core import spool
from tests.hooks.driver import FakeSession, Ran
from turnpost.core import clock, files, home, mailbox, procs, registry, rules, store, subagents
from turnpost.core.records import TYPE_CHECKING

if TYPE_CHECKING:
    from turnpost.core.records import Agent

pytestmark = pytest.mark.process

_MARK = re.compile(r'^<message about="(msg-[0-9A-Z]{26})"', re.MULTILINE)


class FakeSubagent:
    """A subagent of a fake session, with a conversation of its own."""

    def __init__(self, session: FakeSession, sub: str) -> None:
        self.session = session
        self.id = sub
        self.key = subagents.key_of(session.key, sub)
        self.read: list[str] = []
        self._last: str | None = None
        self.transcript = session.transcript.with_suffix("") / "subagents" / f"agent-{sub}.jsonl"

    def start(self, about: str = "general-purpose") -> Ran:
        return self.session.hook("SubagentStart", agent_id=self.id, agent_type=about)

    def tool_batch(self) -> Ran:
        ran = self._hook("PostToolBatch")
        if ran.context:
            self._enter(
                "attachment", attachment={"type": "hook_additional_context", "content": [ran.context]}
            )
            self.read += _MARK.findall(ran.context)
        self._reply()
        return ran

    def stop(self, about: str = "general-purpose") -> Ran:
        ran = self._hook("SubagentStop", agent_type=about, agent_transcript_path=str(self.transcript))
        if ran.reason:
            self._enter("user", message={"content": f"Stop hook feedback:\n{ran.reason}"}, isMeta=True)
        elif ran.context:
            self._enter(
                "attachment", attachment={"type": "hook_additional_context", "content": [ran.context]}
            )
        if ran.goes_on:
            self.read += _MARK.findall(ran.goes_on)
            self._reply()
        return ran

    def tool(self, name: str, given: dict[str, Any]) -> Ran:
        return self._hook("PreToolUse", tool_name=name, tool_input=given)

    @property
    def agent(self) -> Agent:
        found = subagents.load(self.session.root, self.key)
        assert found is not None
        return found

    def send(self, body: str) -> str:
        return spool.send(self.session.root, body, self.agent)

    def receipt(self, message_id: str) -> str:
        """The receipt's state after all that the conversation shows has been taken in."""
        box = mailbox.Mailbox(self.session.root, self.key)
        with box.lock():
            box.settle(store.load_state(self.session.root, self.key))
        found = box.receipt(message_id)
        assert found is not None
        return found["state"]

    def _hook(self, event: str, **payload: Any) -> Ran:
        return self.session.hook(event, agent_id=self.id, **{"agent_type": "general-purpose", **payload})

    def _reply(self) -> None:
        self._enter("assistant", message={"role": "assistant", "model": "scripted", "content": []})

    def _enter(self, kind: str, **entry: object) -> None:
        self.transcript.parent.mkdir(parents=True, exist_ok=True)
        before, self._last = self._last, str(uuid.uuid4())
        chain = {"uuid": self._last, "parentUuid": before, "isSidechain": True, "agentId": self.id}
        line = {"type": kind, **entry, **chain, "timestamp": clock.rfc3339(clock.now())}
        with self.transcript.open("a") as file:
            file.write(json.dumps(line) + "\n")


@pytest.fixture
def sub(session: FakeSession) -> FakeSubagent:
    """A subagent that runs in the middle of its agent's turn."""
    session.prompt()
    made = FakeSubagent(session, "a12f")
    assert made.start().silent
    return made


def test_it_is_known_from_its_start_and_has_a_name_under_its_agent(sub: FakeSubagent) -> None:
    assert subagents.running(sub.session.root, sub.session.key) == [sub.key]
    assert sub.agent["name"] == f"{sub.session.agent['name']}/a12f"
    assert sub.agent.get("about") == "general-purpose"


def test_its_mail_comes_with_its_next_request_and_to_nobody_else(sub: FakeSubagent) -> None:
    other = FakeSubagent(sub.session, "b34e")
    other.start()
    sent = [sub.send("one"), sub.send("two")]
    assert sub.session.tool_batch().silent
    assert other.tool_batch().silent
    sub.tool_batch()
    assert sub.read == sent
    assert (sub.session.read, other.read) == ([], [])
    assert [sub.receipt(one) for one in sent] == ["read", "read"]
    assert sub.tool_batch().silent


def test_its_agents_mail_does_not_come_to_it(sub: FakeSubagent) -> None:
    urgent = spool.send(sub.session.root, "for the agent", sub.session.agent, urgent=True)
    assert sub.tool_batch().silent
    assert sub.stop().silent
    sub.session.tool_batch()
    assert sub.session.read == [urgent]


def test_what_comes_after_its_last_tool_keeps_it_going_and_asks_for_the_whole_report(
    sub: FakeSubagent,
) -> None:
    sent = sub.send("not this file")
    ran = sub.stop()
    assert "end with your whole report" in ran.context
    assert ran.reason == ""
    assert sub.read == [sent]
    assert subagents.running(sub.session.root, sub.session.key) == [sub.key]
    assert sub.stop().silent
    assert sub.receipt(sent) == "read"
    assert subagents.running(sub.session.root, sub.session.key) == []


@pytest.mark.parametrize("about", ["", None])
def test_an_end_without_a_type_as_of_a_compaction_is_left_alone(sub: FakeSubagent, about: str | None) -> None:
    sub.send("waits")
    assert sub.session.hook("SubagentStop", agent_id=sub.id, agent_type=about).silent
    assert sub.session.hook("SubagentStop", agent_id="never-started", agent_type=about).silent
    assert subagents.running(sub.session.root, sub.session.key) == [sub.key]


def test_an_end_without_a_start_is_left_alone(session: FakeSession) -> None:
    session.prompt()
    before = spool.tree(session.root)
    assert FakeSubagent(session, "late").stop().silent
    assert FakeSubagent(session, "late").tool_batch().silent
    assert spool.tree(session.root) == before


@pytest.mark.parametrize("sub_id", ["../../x", "a/b", "", "x" * 65, 7, None])
def test_a_start_with_a_strange_id_makes_nothing(session: FakeSession, sub_id: object) -> None:
    before = spool.tree(session.root)
    assert session.hook("SubagentStart", agent_id=sub_id, agent_type="t").silent
    assert spool.tree(session.root) == before


def test_a_full_mailbox_of_its_longest_messages_keeps_it_going_until_all_have_come(sub: FakeSubagent) -> None:
    sent = [sub.send("x" * subagents.BODY_LIMIT) for _ in range(subagents.MAILBOX_LIMIT)]
    stops = [sub.stop() for _ in range(rules.STOP_BLOCKS)]
    assert sub.read == sent
    # As context, two at a time, each stands once in a request.
    assert [bool(ran.goes_on) for ran in stops] == [True] * 4 + [False] * (rules.STOP_BLOCKS - 4)
    assert not any(ran.reason for ran in stops)
    assert sub.stop().silent
    assert {sub.receipt(one) for one in sent} == {"read"}


def test_over_the_cap_of_blocks_it_ends_and_the_sender_learns_what_it_did_not_read(sub: FakeSubagent) -> None:
    for _ in range(rules.STOP_BLOCKS):
        sub.send("again")
        assert sub.stop().goes_on
    late = sub.send("one too many")
    assert sub.stop().silent
    assert sub.receipt(late) == "undeliverable"
    (alert,) = spool.bodies(sub.session.root, registry.person(sub.session.root))
    assert late in alert
    assert subagents.ENDED in alert
    assert spool.bodies(sub.session.root, sub.agent) == []


def test_one_that_starts_again_under_its_id_can_be_written_to_again(sub: FakeSubagent) -> None:
    sub.stop()
    sub.start()
    sent = sub.send("once more")
    sub.tool_batch()
    assert sub.read == [sent]


def test_a_session_that_runs_no_subagent_any_more_has_ended_those_we_know(sub: FakeSubagent) -> None:
    waits = sub.send("never read")
    sub.session.stop(background_tasks=[{"id": "a12f", "type": "subagent", "status": "running"}])
    assert subagents.running(sub.session.root, sub.session.key) == [sub.key]
    sub.session.stop(background_tasks=[])
    assert subagents.running(sub.session.root, sub.session.key) == []
    assert sub.receipt(waits) == "undeliverable"


def test_the_flags_that_cost_a_hook_its_work_go_with_the_last_subagent(sub: FakeSubagent) -> None:
    owner, root = sub.session.key, sub.session.root
    sub.send("x")
    assert files.exists(home.submail(root, owner))
    sub.tool_batch()
    assert not files.exists(home.submail(root, owner))
    sub.stop()
    assert not files.exists(home.running(root, owner))


# Whose call it is


def test_a_call_of_our_tools_bears_the_subagents_stamp(sub: FakeSubagent) -> None:
    ran = sub.tool("mcp__turnpost__send", {"to": "parent", "body": "b", "subagent": "forged"})
    assert ran.document["hookSpecificOutput"] == {
        "hookEventName": "PreToolUse",
        "updatedInput": {"to": "parent", "body": "b", "subagent": "a12f"},
    }


def test_a_call_of_the_agents_own_bears_no_stamp(sub: FakeSubagent) -> None:
    given = {"to": "person", "body": "b"}
    forged = sub.session.hook(
        "PreToolUse", tool_name="mcp__turnpost__send", tool_input={**given, "subagent": "a12f"}
    )
    assert forged.document["hookSpecificOutput"]["updatedInput"] == given
    assert sub.session.hook("PreToolUse", tool_name="mcp__turnpost__send", tool_input=given).silent


def test_a_command_is_neither_allowed_nor_changed(sub: FakeSubagent) -> None:
    assert sub.tool("Bash", {"command": "turnpost send parent hello"}).silent


def whose(sub: FakeSubagent, command: str, monkeypatch: pytest.MonkeyPatch) -> str | None:
    """Who speaks in the shell of a command, by key; None for the agent itself."""
    monkeypatch.setattr(
        procs, "command", lambda _pid: ["/bin/bash", "-c", f"true && eval '{command}' && pwd"]
    )
    found = subagents.speaking(sub.session.root, sub.session.key, [1])
    return found["key"] if found else None


def test_any_command_is_its_own_until_its_batch_has_ended(
    sub: FakeSubagent, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, root = sub.session.key, sub.session.root
    both = ("sh n.sh", "turnpost send parent found")
    for command in both:
        assert sub.tool("Bash", {"command": command}).silent
    assert [whose(sub, command, monkeypatch) for command in both] == [sub.key, sub.key]
    assert whose(sub, "turnpost send parent foundation", monkeypatch) is None
    sub.session.tool_batch()
    assert whose(sub, "sh n.sh", monkeypatch) == sub.key
    assert sub.tool_batch().silent
    assert not files.exists(home.subcommands(root, owner))
    assert [whose(sub, command, monkeypatch) for command in both] == [None, None]


def test_another_ones_batch_takes_nothing_from_it(sub: FakeSubagent, monkeypatch: pytest.MonkeyPatch) -> None:
    other = FakeSubagent(sub.session, "b34e")
    other.start()
    sub.tool("Bash", {"command": "sh n.sh"})
    other.tool("Bash", {"command": "sh m.sh"})
    other.tool_batch()
    assert whose(sub, "sh n.sh", monkeypatch) == sub.key
    sub.tool_batch()
    assert not files.exists(home.subcommands(sub.session.root, sub.session.key))


def test_a_command_in_the_background_is_its_own_until_it_ends(
    sub: FakeSubagent, monkeypatch: pytest.MonkeyPatch
) -> None:
    sub.tool("Bash", {"command": "sh n.sh", "run_in_background": True})
    sub.tool_batch()
    assert whose(sub, "sh n.sh", monkeypatch) == sub.key
    sub.stop()
    sub.start()
    assert whose(sub, "sh n.sh", monkeypatch) is None


def test_the_very_same_command_is_the_last_ones(sub: FakeSubagent, monkeypatch: pytest.MonkeyPatch) -> None:
    sub.tool("Bash", {"command": "sh n.sh"})
    sub.session.hook("PreToolUse", tool_name="Bash", tool_input={"command": "sh n.sh"})
    assert whose(sub, "sh n.sh", monkeypatch) is None
    sub.tool("Bash", {"command": "sh n.sh"})
    assert whose(sub, "sh n.sh", monkeypatch) == sub.key


def test_without_a_subagent_the_hook_writes_nothing(session: FakeSession) -> None:
    session.prompt()
    before = spool.tree(session.root)
    assert session.hook("PreToolUse", tool_name="Bash", tool_input={"command": "turnpost send x y"}).silent
    assert spool.tree(session.root) == before
