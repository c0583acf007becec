"""What a person decides about agents writing to each other: `$TURNPOST_HOME/policy.toml`. Without the file the defaults hold.

    [[rule]]                    # the first that fits decides; without one, the lines of work do
    from = "reviewer-*"         # who: a name, * for any text in it, or "mission:NAME"; default "*", every agent
    to = "mission:release"      # to whom: the same, or "person"
    relation = "stranger"       # only where `to` is this to `from`: parent, child, mission, coordinator, led, sibling
    may = "write"               # or "control": stop, hold, release, rename
    verdict = "allow"           # or "deny"
    why = "reviews cross teams" # told to who asks

    [loops]
    hops = 8                    # replies in one exchange of agents
    messages = 20               # messages of two agents …
    seconds = 600.0             # … within this time, without the person

    [delivery]
    family_urgent = true        # between a parent and its own child a message is urgent of itself

    [secrets]
    redact = true               # take secrets out of what is sent
    variables = ["*_TOKEN"]     # environment variables of the sender whose values are secrets
    [secrets.patterns]
    ticket = "CUST-[0-9]{6}"    # what is a secret besides, by the kind it is called

The person's own messages are never routed, and no rule lets an agent write to itself, to one that has ended, or to one
whose mission is over.
"""

from __future__ import annotations

from typing import NamedTuple

from turnpost import toml_file
from turnpost.core.loops import Budget
from turnpost.core.routing import Rule
from turnpost.redaction import Secrets

FILE = "policy.toml"
RULE = "policy"


class Policy(NamedTuple):
    """The person's decisions for one home."""

    rules: tuple[Rule, ...] = ()
    loops: Budget = Budget()
    family_urgent: bool = True
    secrets: Secrets = Secrets()


def load(root: str) -> Policy:
    """The policy of a home. Raises UsageError (`policy`), in one line, for a file that is not what it should be."""
    path = f"{root}/{FILE}"
    found = toml_file.values(path, RULE)
    if found is None:
        return Policy()
    from turnpost.policy_file import PolicyFile

    return toml_file.validated(path, RULE, PolicyFile, found).policy()
