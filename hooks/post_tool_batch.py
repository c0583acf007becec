"""PostToolBatch: brings urgent messages into the next model request.

It runs after every batch of tool calls, so with nothing to do it must cost next to nothing: one small read, one look
into a folder, and not even `os` is imported.
"""

import posix

from turnpost.core import home


def has_work(root: str, key: str) -> bool:
    """Whether an urgent message waits, a subagent has mail or has run a command, a permission prompt was answered, or
    plan mode may have ended.
    """
    folder = home.agent(root, key)
    if any("u" in name[41:] for name in posix.listdir(folder + "/queue")):
        return True
    return (
        posix.access(folder + "/blocked", posix.F_OK)
        or posix.access(folder + "/plan", posix.F_OK)
        or posix.access(home.submail(root, key), posix.F_OK)
        or posix.access(home.subcommands(root, key), posix.F_OK)
    )


def main() -> None:
    """Answer the hook."""
    root = home.home()
    key = home.hooked_key(root)
    if key and has_work(root, key):
        from turnpost.core import guard

        guard.run(root, key, "at_tool_batch")


main()
