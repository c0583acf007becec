"""PermissionRequest: a prompt is open. Nothing is printed, so it stays exactly as it is."""

from turnpost.core import guard, home

root = home.home()
if key := home.hooked_key(root):
    guard.run(root, key, "record", "blocked")
