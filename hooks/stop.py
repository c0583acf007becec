"""Stop: the turn ends, unless a message waits."""

from turnpost.core import guard, home

root = home.home()
if key := home.hooked_key(root):
    guard.run(root, key, "at_stop")
