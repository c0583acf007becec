"""What messages add to the model request at each boundary of the real Claude Code, in bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tests.lab.terminal import Terminal
from tests.real.kit import PATIENCE, SETTINGS, Gate, Post, bash, until
from turnpost.actions import agents, sending
from turnpost.core import registry, render
from turnpost.core.sender import Speaker
from turnpost.lab.model import Blocks, ModelRequest, Say, Tool

SIZES = (10, 1000, 8000)
SUBAGENT_SIZES = (10, 1000, 4000)
BATCH = (4, 200)
"""How many messages come at once, and their size."""
ALLOWED = {"permissions": {**SETTINGS["permissions"], "allow": ["Bash", "Agent"]}}
_BEGIN, _END = "turnpost", "</message>"


@dataclass(frozen=True)
class Cost:
    """What each of `count` messages with a body of `body` bytes added: the body itself, and all that came with it.

    `boundary` is `subagent-request` for a subagent's next request. `frame` is what of `added` Claude Code wrote, before our
    first word and after our last.
    """

    boundary: str
    count: int
    body: int
    added: float
    frame: float

    @property
    def limit(self) -> float:
        """The most it may be."""
        return 1.1 * self.body + 300


def measure(
    post: Post,
    sizes: Sequence[int] = SIZES,
    subagent_sizes: Sequence[int] = SUBAGENT_SIZES,
    resume_sizes: Sequence[int] = SIZES,
) -> Iterator[Cost]:
    """Each boundary with each size, and most with a batch."""
    folder = post.project("costs", settings=ALLOWED, install=False)
    # A server of tools makes Claude Code tell of it once, in the same text as whatever comes then.
    post.run("install", "--project", str(folder), "--no-tools")
    post.run("coordinator", "start")  # else a send from here would start it, outside the world
    plans = [*((1, size) for size in sizes), BATCH]
    with Terminal(post.world, folder, "--name", "alpha") as terminal:
        terminal.ready(PATIENCE)
        until(lambda: "alpha" in [one.name for one in agents.agents(post.root).agents], "alpha registers")
        terminal.submit("[[lab:alpha]] begin")
        post.model.wait_for(lambda one: one.name == "alpha" and not one.side, PATIENCE)
        for count, size in plans:
            yield from _planned(post, count, size)
            yield _prompt(post, terminal, count, size)
        yield from _subagents(post, terminal, subagent_sizes)
        post.wait_idle("alpha")
    post.launch("beta", cwd=folder)
    for size in resume_sizes:
        post.wait_idle("beta")
        post.end_session("beta")
        yield _cost(post, "resume", _send(post, "beta", 1, size), size)


def _planned(post: Post, count: int, size: int) -> list[Cost]:
    """The costs of a turn in which each message came where it should: a hook that met a lock leaves its own to the waiter."""
    found: list[Cost] = []
    for _ in range(4):
        found = list(_turn(post, count, size))
        if [one.boundary for one in found] == ["rewake", "next-request", "stop-block"]:
            break
    return found


def _turn(post: Post, count: int, size: int) -> Iterator[Cost]:
    """A turn that a wake begins, in which tools run, and which goes on at its end."""
    begun, ran = post.gate(bash("true")), post.gate(Say("done"))
    post.wait_idle("alpha")
    post.model.script("alpha", [begun, ran])
    with post.paused_waiter("alpha"):
        sent = _send(post, "alpha", count, size)
    yield _cost(post, "rewake", sent, size)
    sent = _through(post, begun, "alpha", count, size, urgent=True)
    yield _cost(post, "next-request", sent, size)
    sent = _through(post, ran, "alpha", count, size)
    cost = _cost(post, "stop-block", sent, size)
    boundaries = [post.wait_receipt("alpha", one, "delivered", "read").boundary for one in sent]
    yield replace(cost, boundary=boundaries[0] or "") if set(boundaries) != {"stop-block"} else cost


def _prompt(post: Post, terminal: Terminal, count: int, size: int) -> Cost:
    """A prompt that takes what waits."""
    post.wait_idle("alpha")
    typed = f"look at {count} of {size}"
    with post.paused_waiter("alpha"):
        sent = _send(post, "alpha", count, size)
        terminal.submit(typed)
        return _cost(post, "prompt", sent, size, typed=typed)


def _subagents(post: Post, terminal: Terminal, sizes: Sequence[int]) -> Iterator[Cost]:
    """One subagent for each size, with a message after its tool and one at its end."""
    post.wait_idle("alpha")
    gates = {size: (post.gate(bash("true")), post.gate(Say("the draft"))) for size in sizes}
    for size, steps in gates.items():
        # What Claude Code tells a subagent after its first tool must not be taken for a message's.
        post.model.script(f"sub-{size}", [bash("true"), *steps, Say("the whole report")])
    post.model.script("alpha", [Blocks(tuple(_agent_call(f"sub-{size}") for size in sizes)), Say("waiting")])
    terminal.submit("use subagents")
    for size, (begun, ran) in gates.items():
        begun.wait_reached()
        to = f"alpha/{post.requests(f'sub-{size}')[0].subagent_id}"
        yield _cost(post, "subagent-request", _through(post, begun, to, 1, size), size)
        yield _cost(post, "subagent-stop", _through(post, ran, to, 1, size), size)


def _agent_call(name: str) -> Tool:
    return Tool(
        "Agent", {"description": "work", "prompt": f"[[lab:{name}]] work", "subagent_type": "general-purpose"}
    )


def _through(
    post: Post, gate: Gate, to: str, count: int, size: int, *, urgent: bool = False
) -> Sequence[str]:
    """Send while a request stands at a gate, and let it through."""
    gate.wait_reached()
    sent = _send(post, to, count, size, urgent=urgent)
    gate.open()
    return sent


def _send(post: Post, to: str, count: int, size: int, *, urgent: bool = False) -> Sequence[str]:
    person = Speaker(registry.person(post.root))
    return [sending.send(post.root, [to], "x" * size, urgent=urgent, speaker=person).id for _ in range(count)]


def _cost(post: Post, boundary: str, sent: Sequence[str], size: int, *, typed: str = "") -> Cost:
    """The cost of messages that come together, from the request that has them and the one before it."""
    marks = [render.mark(one) for one in sent]
    carrying = post.model.wait_for(lambda one: not one.side and one.has(marks[-1]), PATIENCE)
    assert [carrying.count(one) for one in marks] == [1] * len(marks)
    before = [
        one for one in post.model.requests()
        if one.conversation == carrying.conversation and not one.side and one.index < carrying.index
    ][-1]  # fmt: skip
    texts = [text for text in entered(before, carrying) if text != typed]
    added, frame = (sum(len(part.encode()) for part in parts) for parts in (texts, map(_frame, texts)))
    return Cost(boundary, len(sent), size, added / len(sent), frame / len(sent))


def entered(before: ModelRequest, request: ModelRequest) -> list[str]:
    """The texts that a request has beyond an earlier one, without the model's own and those of its tools."""
    known = Counter(before.texts)
    found: list[str] = []
    for one in request.texts:
        if known[one]:
            known[one] -= 1
        elif one[0] in ("user", "system"):
            found.append(one[1])
    return found


def _frame(text: str) -> str:
    """What Claude Code wrote of a text: all but what is between our first word and our last."""
    if _END not in text:
        return "" if _BEGIN in text else text
    before, begin, rest = text.partition(_BEGIN)
    after = (begin + rest).rpartition(_END)[2]
    return before + after.replace(render.WHOLE_REPORT, "")
