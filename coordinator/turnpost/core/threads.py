"""Which thread a message belongs to, and the index that finds a thread's messages without reading all that was ever sent.

A thread is a mission's, or a name somebody gave, or that of those concerned: then it is known by their keys, so a rename
splits none, and an answer by somebody else names them. Its folder `threads/DIGEST/` holds one empty file per message; what it is called stands in its messages. All
of it can be made anew from the messages.
"""

from __future__ import annotations

import hashlib

from turnpost.core import files, home, ids, mailbox, missions, registry, store, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from turnpost.core.records import Agent, Message, Mission, Party

INBOX = "inbox"
"""The thread of all that was sent to the person; every message in it is in another thread as well."""


def of_names(names: Iterable[str]) -> str:
    """What the thread of these is called: `alpha+person`."""
    return "+".join(sorted(set(names)))


def of_keys(keys: Iterable[str]) -> str:
    """The identity of the thread of these mailboxes."""
    return "keys " + "+".join(sorted(set(keys)))


def of_name(name: str) -> str:
    """The identity of a thread that has a name of its own: a mission's, or one that was given."""
    return f"name {text.name_key(name)}"


def mission_of(concerned: Sequence[Agent], missions: Mapping[str, Mission]) -> str | None:
    """The mission that a message between these belongs to: the one that each of them is in, or coordinates.

    The person is in every one. `missions` holds those they are in, by name.
    """
    agents = [agent for agent in concerned if agent["kind"] != "person"]
    names = {agent["mission"] for agent in agents if agent["mission"] is not None}
    if len(names) != 1:
        return None
    name = names.pop()
    coordinator = missions[name]["coordinator"] if name in missions else None
    return name if all(agent["mission"] == name or agent["key"] == coordinator for agent in agents) else None


def concerned(message: Message) -> list[Party]:
    """Who sent a message and who gets it."""
    return [message["sender"], *message["to"]]


def whose(message: Message) -> list[Party]:
    """Whose thread a message is in, unless that has a name of its own."""
    return message.get("among") or concerned(message)


def is_unnamed(message: Message) -> bool:
    """Whether a message's thread has no name of its own, and is that of those whose it is."""
    return message["thread"] == of_names(party["name"] for party in whose(message))


def identity(message: Message) -> str:
    """The thread a message is in, as it can be compared: the same after a rename."""
    if is_unnamed(message):
        return of_keys(party["key"] for party in whose(message))
    return of_name(message["thread"])


def identities(message: Message) -> list[str]:
    """All threads a message is found in: its own, and the person's inbox when the person gets it."""
    own = identity(message)
    return [INBOX, own] if any(party["kind"] == "person" for party in message["to"]) else [own]


def answering(
    root: str, asked: Message, sender: Agent, recipients: Sequence[Agent]
) -> tuple[str | None, list[Party]]:
    """The thread of an answer, which is the question's: its name, or those whose it is, or neither for that of those concerned."""
    if not is_unnamed(asked):
        return asked["thread"], []
    parties = whose(asked)
    if {party["key"] for party in parties} == {agent["key"] for agent in (sender, *recipients)}:
        return None, []
    return None, [_named_now(root, party) for party in parties]


def present(root: str, party: Party) -> str:
    """What somebody is called now; whoever is no agent of its own, or gone, as it was then."""
    known = (
        store.if_known(registry.load_agent, root, party["key"])
        if party["kind"] == "agent" and "sub" not in party
        else None
    )
    return known["name"] if known else party["name"]


def spells_those_concerned(name: str) -> bool:
    """Whether a name is one that a thread of those concerned has, or may have once: names joined by `+`."""
    words = name.split("+")
    return len(words) > 1 and all(_may_be_somebody(word.strip()) for word in words)


def index(root: str, message: Message) -> None:
    """Note a message where its thread, the message it replies to, and the person's open questions are looked for.

    Twice is once. A question to the person is noted durably; the rest is found again from the messages. Notes are only
    added: a send that fails after this is taken back, and an answer must not have closed its question then.
    """
    for path in _notes(root, message):
        _note(path)
    if _asks_the_person(message):
        files.mkdir(home.asked(root))
        files.create(f"{home.asked(root)}/{message['id']}", b"")


def forget(root: str, message: Message) -> None:
    """Take the notes of a message away that was not sent after all."""
    for path in [*_notes(root, message), f"{home.asked(root)}/{message['id']}"]:
        files.unlink(path)


def refresh(root: str) -> int:
    """Index what is not: messages of an older turnpost, and what a power cut took. Lists folders and reads what is missing."""
    # The inbox is indexed first, so what is only there was cut off.
    own = [thread for thread in every(root) if thread != digest(INBOX)]
    known = {name for thread in own for name in messages(root, thread)}
    missing = 0
    for day in files.names(root + "/messages"):
        for message_id in files.names(f"{root}/messages/{day}"):
            if message_id not in known and (
                message := store.if_known(mailbox.load_message, root, message_id)
            ):
                index(root, message)
                missing += 1
    return missing


def every(root: str) -> list[str]:
    """The digests of all threads."""
    return files.names(home.threads(root))


def messages(root: str, thread: str) -> list[str]:
    """The ids of a thread's messages, oldest first; `thread` is a digest."""
    return [name for name in files.names(home.thread(root, thread)) if ids.is_id(name, "msg")]


def replies(root: str, message_id: str) -> list[str]:
    """The ids of what was sent in reply to a message, oldest first."""
    found = {name for name in files.names(_replies(root, message_id)) if ids.is_id(name, "msg")}
    packed = mailbox.archived(root, message_id)
    return sorted(found | set(packed["replies"])) if packed is not None else sorted(found)


def answers(root: str, message_id: str) -> list[Message]:
    """The answers to a message that reach its sender, oldest first."""
    asked = mailbox.load_message(root, message_id)
    found = [store.if_known(mailbox.load_message, root, reply) for reply in replies(root, message_id)]
    return [
        reply
        for reply in found
        if reply and reply["kind"] == "answer" and store.if_known(reaches, root, reply, asked)
    ]


def reaches(root: str, reply: Message, asked: Message | None) -> bool:
    """Whether a reply goes to who asked, and was not taken back."""
    key = asked["sender"]["key"] if asked else ""
    if asked and all(party["key"] != key for party in reply["to"]):
        return False
    receipt = mailbox.Mailbox(root, key).receipt(reply["id"]) if asked else None
    return receipt is None or receipt["state"] != "cancelled"


def open_questions(root: str) -> list[Message]:
    """The questions to the person that the person has not answered, oldest first."""
    found: list[Message] = []
    for message_id in files.names(home.asked(root)):
        message = store.if_known(mailbox.load_message, root, message_id)
        if message is None:
            continue  # damaged, a newer turnpost's, or just on its way out of the outbox
        if store.if_known(is_open, root, message) is not False:
            found.append(message)
        else:
            files.unlink(f"{home.asked(root)}/{message_id}")
    return found


def is_open(root: str, message: Message) -> bool:
    """Whether a message is a question that the person has yet to answer.

    What was taken back asks nothing, and nobody can answer an agent whose mission is over.
    """
    if not _asks_the_person(message):
        return False
    asker = registry.load_agent(root, message["sender"]["key"])
    if asker is not None and missions.over(root, asker):
        return False
    if any(answer["sender"]["kind"] == "person" for answer in answers(root, message["id"])):
        return False
    receipt = mailbox.Mailbox(root, registry.PERSON).receipt(message["id"])
    return receipt is None or receipt["state"] not in ("cancelled", "undeliverable")


def taken_back(root: str, answer: Message) -> None:
    """Pin the question again that a message had answered."""
    asked = mailbox.load_message(root, answer["reply_to"]) if answer["reply_to"] else None
    if asked is not None and is_open(root, asked):
        files.touch(f"{home.asked(root)}/{asked['id']}")


def digest(thread: str) -> str:
    """The folder name of a thread's identity, which may be longer than a file name and hold any character."""
    return hashlib.sha256(thread.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _named_now(root: str, party: Party) -> Party:
    named: Party = {"kind": party["kind"], "name": present(root, party), "key": party["key"]}
    if "sub" in party:
        named["sub"] = party["sub"]
    return named


def _may_be_somebody(word: str) -> bool:
    agent, slash, sub = word.partition("/")
    return (not text.name_fault(agent) or text.name_key(agent) in text.RESERVED) and bool(sub or not slash)


def _asks_the_person(message: Message) -> bool:
    return message["kind"] == "question" and any(party["kind"] == "person" for party in message["to"])


def _notes(root: str, message: Message) -> list[str]:
    """The empty files that stand for a message."""
    found = [f"{home.thread(root, digest(thread))}/{message['id']}" for thread in identities(message)]
    asked = message["reply_to"]
    return (
        [*found, f"{_replies(root, asked)}/{message['id']}"] if asked and ids.is_id(asked, "msg") else found
    )


def _note(path: str) -> None:
    while True:
        try:
            return files.mark(path)
        except FileNotFoundError:
            pass  # the folder was empty for a moment, and the archive's housekeeping took it away


def _replies(root: str, message_id: str) -> str:
    return mailbox.message_folder(root, message_id) + "/replies"
