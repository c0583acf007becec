"""SubagentStart: an in-process subagent begins and can be written to."""

from turnpost.core import guard, home

root = home.home()
if key := home.hooked_key(root):
    guard.run(root, key, "at_subagent", "at_start")
