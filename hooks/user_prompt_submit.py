"""UserPromptSubmit: the agent works now; what waits comes with the prompt."""

from turnpost.core import guard, home

root = home.home()
if key := home.hooked_key(root):
    guard.run(root, key, "at_prompt")
