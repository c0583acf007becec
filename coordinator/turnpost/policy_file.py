"""The form of `policy.toml`. Imported only when there is one: it needs pydantic."""

from __future__ import annotations

import math
import re
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from turnpost.core import text
from turnpost.core.loops import Budget
from turnpost.core.routing import Power, Rule
from turnpost.policy import Policy
from turnpost.redaction import PATTERN_SECONDS, Secrets

_REPEATS = re.compile(r"\{\s*([0-9]{1,200})")
_MOST_REPEATS = 100_000
_Line = Annotated[str, Field(max_length=200)]


class _Table(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class RuleTable(_Table):
    """One `[[rule]]`."""

    verdict: Literal["allow", "deny"]
    from_: _Line = Field(default="*", alias="from")
    to: _Line = "*"
    relation: (
        Literal["person", "parent", "child", "mission", "coordinator", "led", "sibling", "stranger"] | None
    ) = None
    may: Power = "write"
    why: _Line = ""

    @field_validator("from_")
    @classmethod
    def _an_agent(cls, pattern: str) -> str:
        if text.name_key(pattern) == "person":
            raise ValueError("the person's own messages are never routed; leave out a rule from 'person'")
        return _pattern(pattern)

    @field_validator("to")
    @classmethod
    def _a_party(cls, pattern: str) -> str:
        return "person" if text.name_key(pattern) == "person" else _pattern(pattern)

    @field_validator("why")
    @classmethod
    def _printable(cls, line: str) -> str:
        if line and not line.isprintable():
            raise ValueError("one printable line is wanted")
        return line


class LoopsTable(_Table):
    """`[loops]`."""

    hops: Annotated[int, Field(ge=1, le=1_000)] = Budget().hops
    messages: Annotated[int, Field(ge=1, le=10_000)] = Budget().messages
    seconds: Annotated[float, Field(ge=1.0, le=86_400.0)] = Budget().seconds


class DeliveryTable(_Table):
    """`[delivery]`."""

    family_urgent: bool = True


class SecretsTable(_Table):
    """`[secrets]`."""

    redact: bool = True
    variables: Annotated[
        tuple[Annotated[str, Field(pattern=r"^[A-Za-z0-9_*]{1,100}$")], ...], Field(max_length=100)
    ] = ()
    patterns: Annotated[
        dict[Annotated[str, Field(pattern=r"^[\w][\w .-]{0,39}$")], _Line], Field(max_length=100)
    ] = {}

    @field_validator("variables")
    @classmethod
    def _named(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if any(not name.strip("*") for name in names):
            raise ValueError("'*' alone would take out every value of the environment")
        return names

    @field_validator("patterns")
    @classmethod
    def _expressions(cls, patterns: dict[str, str]) -> dict[str, str]:
        if not patterns:
            return patterns
        import regex

        for kind, pattern in patterns.items():
            # What must repeat is written out as often when it is compiled, which no time limit ends.
            if math.prod(int(n) for n in _REPEATS.findall(pattern) if int(n)) > _MOST_REPEATS:
                raise ValueError(f"'{kind}' repeats more than {_MOST_REPEATS} times what is in it")
            try:
                empty = regex.search(pattern, "", timeout=PATTERN_SECONDS)
            except (regex.error, TimeoutError) as error:
                raise ValueError(f"'{kind}' is no regular expression: {error}") from error
            if empty:
                raise ValueError(f"'{kind}' fits an empty text, and so everywhere")
        return patterns


class PolicyFile(_Table):
    """The whole file."""

    rule: Annotated[tuple[RuleTable, ...], Field(max_length=500)] = ()
    loops: LoopsTable = LoopsTable()
    delivery: DeliveryTable = DeliveryTable()
    secrets: SecretsTable = SecretsTable()

    def policy(self) -> Policy:
        """The file as what the rules work with."""
        rules = tuple(
            Rule(one.verdict, one.from_, one.to, one.relation, one.may, one.why) for one in self.rule
        )
        loops = Budget(self.loops.hops, self.loops.messages, self.loops.seconds)
        secrets = Secrets(self.secrets.redact, self.secrets.variables, tuple(self.secrets.patterns.items()))
        return Policy(rules, loops, self.delivery.family_urgent, secrets)


def _pattern(pattern: str) -> str:
    """What can mean an agent: a name with stars in it, or a mission. Raises ValueError for what never could."""
    name = pattern.removeprefix("mission:")
    plain = name.replace("*", "") if name == pattern else name
    # 'x' stands in for the stars: `*-review` may begin with what no name begins with.
    fault = text.name_fault(f"x{plain}" if name == pattern and "*" in name else plain)
    if fault:
        raise ValueError(f"'{text.visible(pattern)}' can mean no agent: {fault}")
    return pattern
