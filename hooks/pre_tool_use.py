"""PreToolUse: stamps the tool calls by which a subagent sends, and tells its commands from its agent's.

It runs before every command and every tool of ours, so while no subagent runs it must cost next to nothing.
"""

import posix

from turnpost.core import home

root = home.home()
key = home.hooked_key(root)
if key and posix.access(home.running(root, key), posix.F_OK):
    from turnpost.core import guard

    guard.run(root, key, "at_subagent", "at_tool")
