"""SubagentStop: an in-process subagent ends, unless a message waits for it."""

import posix

from turnpost.core import home

root = home.home()
key = home.hooked_key(root)
if key and posix.access(home.running(root, key), posix.F_OK):
    from turnpost.core import guard

    guard.run(root, key, "at_subagent", "at_stop")
