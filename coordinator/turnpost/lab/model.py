"""A model that follows a script and keeps every request as evidence.

An agent is put under a script by a tag in its launch prompt:

    with ScriptedModel() as model:
        model.script("alpha", [Tool("Bash", {"command": "date"}), Say("done")])
        ...  # launch an agent with the prompt "[[lab:alpha]] begin"
        model.wait_for(lambda request: request.name == "alpha" and request.has("CET"), timeout=20)
"""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Self, TypeAlias

from . import wire
from .errors import LabError, LabTimeout
from .requests import ModelRequest
from .server import LoopbackServer, Reply
from .steps import Answer, Blocks, Fail, Hang, Say, Slow, Step, Tool

__all__ = [
    "Answer", "Blocks", "Fail", "Hang", "ModelRequest", "Say", "ScriptedModel", "ScriptedStep", "Slow",
    "Step", "Tool",
]  # fmt: skip

ScriptedStep: TypeAlias = Step | Callable[[ModelRequest], Step]
"""A step, or a function that looks at the request and gives one."""


_OK = Say("ok")


class ScriptedModel:
    """Answers `POST /v1/messages` on loopback; a context manager. All methods may be called from any thread.

    Side calls and unscripted conversations are answered with `default`, and so is a scripted one whose steps
    are used up.
    """

    def __init__(self, default: Step = _OK) -> None:
        self.default = default
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._requests: list[ModelRequest] = []
        self._scripts: defaultdict[str, deque[ScriptedStep]] = defaultdict(deque)
        self._names: dict[str, str] = {}
        self._fault: str | None = None
        self._server = LoopbackServer(self._respond)
        self._server.start()

    @property
    def url(self) -> str:
        """What `ANTHROPIC_BASE_URL` must be."""
        return self._server.url

    def script(self, name: str, steps: Iterable[ScriptedStep]) -> None:
        """Add steps for the agent with this tag, or for the session with this id; the latter go first."""
        with self._changed:
            self._scripts[name].extend(steps)

    def requests(self, name: str | None = None) -> tuple[ModelRequest, ...]:
        """The requests so far, side calls left out when a `name` (tag or session id) is given."""
        with self._changed:
            return tuple(
                request
                for request in self._requests
                if name is None or (name in (request.name, request.session_id) and not request.side)
            )

    def wait_for(
        self, predicate: Callable[[ModelRequest], bool], timeout: float, *, after: int = -1
    ) -> ModelRequest:
        """The first request that satisfies `predicate`, waiting up to `timeout` seconds for it.

        Only those with an index above `after` are looked at; requests that came before the call count too.
        Raises LabTimeout, and LabError when a scripted function failed.
        """
        end = time.monotonic() + timeout
        seen = after + 1
        with self._changed:
            while True:
                if self._fault:
                    raise LabError(self._fault)
                for request in self._requests[seen:]:
                    if predicate(request):
                        return request
                seen = max(seen, len(self._requests))
                left = end - time.monotonic()
                if left <= 0:
                    raise LabTimeout(f"no such request within {timeout:g} s; {self._summary()}")
                self._changed.wait(left)

    def close(self) -> None:
        """Stop serving; requests that wait or hang end without an answer. A second call does nothing."""
        if not self._closing.is_set():
            self._closing.set()
            self._server.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _respond(self, headers: Mapping[str, str], body: Mapping[str, Any]) -> Reply | None:
        request, chosen = self._record(headers, body)
        try:
            step = chosen(request) if callable(chosen) else chosen
        except Exception as error:  # noqa: BLE001 - a script may fail in any way, and whoever waits is told
            with self._changed:
                self._fault = f"the script of {request.name} failed: {error!r}"
                self._changed.notify_all()
            step = Fail(400)  # Not 500: Claude Code would try that again for minutes.
        return self._perform(step, body)

    def _record(
        self, headers: Mapping[str, str], body: Mapping[str, Any]
    ) -> tuple[ModelRequest, ScriptedStep]:
        """Keep the request and take its step in one go: requests and steps have the same order."""
        with self._changed:
            request = ModelRequest(len(self._requests), time.monotonic(), time.time(), headers, body)
            request = replace(request, name=self._name(request))
            self._requests.append(request)
            self._changed.notify_all()
            return request, self._next_step(request)

    def _name(self, request: ModelRequest) -> str | None:
        """Whose request it is. A compacted conversation has lost its tag, so a name sticks to it."""
        if request.side:
            return request.tag or self._names.get(request.conversation)
        if request.tag:
            self._names.setdefault(request.conversation, request.tag)
        return self._names.get(request.conversation)

    def _next_step(self, request: ModelRequest) -> ScriptedStep:
        if request.side:
            return self.default
        own = None if request.subagent_id else request.session_id
        for key in (own, request.name):
            if key is not None and self._scripts.get(key):
                return self._scripts[key].popleft()
        return self.default

    def _perform(self, step: Step, body: Mapping[str, Any]) -> Reply | None:
        while isinstance(step, Slow):
            if self._closing.wait(step.seconds):
                return None
            step = step.step
        if isinstance(step, Hang):
            self._closing.wait()
            return None
        if isinstance(step, Fail):
            return Reply(step.status, json.dumps(wire.error(step.status)).encode())
        model = str(body.get("model", "scripted"))
        if body.get("stream"):
            return Reply(200, wire.stream(step, model), "text/event-stream")
        return Reply(200, json.dumps(wire.message(step, model)).encode())

    def _summary(self) -> str:
        mains = [request.name or "untagged" for request in self._requests if not request.side]
        counts = ", ".join(f"{name}: {mains.count(name)}" for name in sorted(set(mains)))
        return f"so far {len(self._requests)} requests ({counts or 'no conversation'})"
