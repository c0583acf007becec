"""SessionEnd: the session is gone and from now on counts as stopped."""

from turnpost.core import guard, home

root = home.home()
if key := home.hooked_key(root):
    guard.run(root, key, "at_end")
