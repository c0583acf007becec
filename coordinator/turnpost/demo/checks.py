"""What was promised against what the model got. Pure: receipts and counts in, failures out."""

from __future__ import annotations

from collections.abc import Iterable

from turnpost.demo.results import Delivery, Failure


def faults(deliveries: Iterable[Delivery]) -> list[Failure]:
    """Every way in which a message was not read exactly once."""
    return [fault for delivery in deliveries for fault in _faults(delivery)]


def missing(played: Iterable[str], expected: Iterable[str]) -> list[Failure]:
    """The scenes that sent nothing at all."""
    there = set(played)
    return [Failure(agent, "its scene to end", "it did not") for agent in expected if agent not in there]


def _faults(delivery: Delivery) -> list[Failure]:
    about = f"message {delivery.id}"
    found: list[Failure] = []
    if delivery.state != "read":
        found.append(Failure(delivery.agent, f"{about} to be read", delivery.state))
    if delivery.seen != 1:
        found.append(
            Failure(
                delivery.agent,
                f"{about} once in the last request of the conversation that lives on",
                f"{delivery.seen} times",
            )
        )
    if delivery.elsewhere:
        found.append(
            Failure(delivery.agent, f"{about} in one conversation", f"it is in {delivery.elsewhere} more")
        )
    return found
