"""StopFailure: the model could not be reached; the turn is over without a Stop."""

from turnpost.core import guard, home

root = home.home()
if key := home.hooked_key(root):
    guard.run(root, key, "record", "idle")
