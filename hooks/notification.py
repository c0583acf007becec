"""Notification: a prompt that waits for the person blocks the agent; nothing else changes its state."""

from turnpost.core import guard, home

root = home.home()
if key := home.hooked_key(root):
    guard.run(root, key, "at_notification")
