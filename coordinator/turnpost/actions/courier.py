"""Seeing to it that a coordinator runs. A message that is durable must not fail because none can be started."""

from __future__ import annotations


def ensure(root: str) -> tuple[str, ...]:
    """Start the home's coordinator if none runs; what to tell the caller when that failed."""
    try:
        from turnpost.service import process

        process.ensure(root)
    except Exception as error:  # noqa: BLE001 - the message lies safe in the spool, and that is what was asked for
        why = " ".join(str(error).split()) or type(error).__name__
        advice = "live agents are reached all the same, stopped ones after `turnpost coordinator start`"
        return (f"no coordinator could be started ({why}); {advice}",)
    return ()
