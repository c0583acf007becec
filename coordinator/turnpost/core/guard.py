"""The last guard of a hook: whatever goes wrong in ours, Claude goes on (exit 0, no output) and the log says why."""

from __future__ import annotations

from turnpost.core import deliver


def run(root: str, key: str, action: str, *words: str) -> None:
    """Read the hook's input, let `deliver` act on it, and print its answer.

    The answer is printed in one piece after all files are written: a hook that fails half way has said nothing, and
    what it claimed comes back when the lease ends.
    """
    try:
        deliver.answer(getattr(deliver, action)(root, key, deliver.read_input(), *words))
    except Exception as error:  # noqa: BLE001 - the last guard: a bug of ours never stops a session
        deliver.log_failure(root, action, error)
