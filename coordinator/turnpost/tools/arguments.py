"""What each tool takes: validated here, and told to the model as a JSON schema.

Limits of the product are not checked here: the actions refuse with the rule and the numbers, as on the command line.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from turnpost.actions import sending, waiting

_TO = "An agent's name, 'parent' or 'person'; several separated by commas."
_BODY = "The text, Markdown. It reaches the recipient letter for letter."
_ID = "A message's id, as in msg-01JD3QK8V5T0YF6Z2M9XWB4C7R."
_WAKE = "Resume a recipient who has stopped, also for a note, a report or an answer."
_FOR = (
    "What to wait for. Of a message: 'read' (default) or 'reply'. Of an agent: 'idle' (default) or 'message', "
    "one from it to you."
)


class Arguments(BaseModel):
    """What all tools have in common: nothing that is not described is taken."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class List(Arguments):
    """Nothing to choose."""


class Send(Arguments):
    """A new message."""

    to: str = Field(description=_TO)
    body: str = Field(description=_BODY)
    kind: str = Field("note", description="What it is.", json_schema_extra={"enum": list(sending.KINDS)})
    urgent: bool = Field(False, description="Enter at the next model request, not at the turn's end.")
    thread: str | None = Field(
        None, description="The thread it belongs to; default: the names of all concerned."
    )
    reply_to: str | None = Field(None, description="The id of the message it answers.")
    refs: list[str] = Field([], description="Files (path or path:line), commits or URLs it is about.")
    options: list[str] = Field([], description="Answers to choose from, of a question.")
    wake: bool = Field(False, description=_WAKE)


class Wait(Arguments):
    """A short wait."""

    target: str = Field(description="A message's id, or an agent's name.")
    for_: str | None = Field(
        None, alias="for", description=_FOR, json_schema_extra={"enum": [*waiting.GOALS, None]}
    )
    timeout: float = Field(
        1.0,
        description="Seconds, 0 to 30. An answer comes to you by itself, as a message, even when you no longer wait for it.",
        json_schema_extra={"minimum": 0, "maximum": waiting.LONGEST},
    )


class Reply(Arguments):
    """An answer."""

    id: str = Field(description=f"The message you answer. {_ID}")
    body: str = Field(description=_BODY)
    wake: bool = Field(False, description=_WAKE)


class Cancel(Arguments):
    """A message or a child."""

    target: str = Field(description=f"{_ID} Or the name of a child of yours, whose session is to be stopped.")


def schema(model: type[Arguments]) -> dict[str, Any]:
    """The JSON schema of a tool's arguments, without the titles that only repeat the names."""
    found = model.model_json_schema(schema_generator=_Untitled)
    for word in ("title", "description"):
        found.pop(word, None)
    return found


class _Untitled(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's signature
        return False

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        found = super().default_schema(schema)
        if found.get("default", "") is None:
            del found["default"]  # absent is what None means
        return found
