"""UserPromptSubmit: the agent works now; what waits comes with the prompt.

It also runs for a wake, between the waiter's message and the model request that carries it. The waiter has recorded all
there is to record then, so nothing more is loaded. As installed, the shell sees that before it starts this.
"""

import posix

from turnpost.core import home


def begun(root: str, key: str) -> bool:
    """Whether a waiter has begun this turn; true once.

    A person's prompt that comes just before the wake is taken for it. That costs nothing: its turn is recorded too, and
    the hook of the wake itself then finds a turn that runs.
    """
    try:
        posix.unlink(home.woken(root, key))
    except OSError:
        return False
    return True


def main() -> None:
    """Answer the hook."""
    root = home.home()
    key = home.hooked_key(root)
    if key and not begun(root, key):
        from turnpost.core import guard

        guard.run(root, key, "at_prompt")


main()
