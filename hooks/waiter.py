"""The waiter (asyncRewake, armed by SessionStart, UserPromptSubmit and Stop): blocks until a message lands, then wakes the idle agent."""

import os

from turnpost.core import home

root = home.home()
if os.environ.get("CLAUDE_CODE_ENTRYPOINT") == "cli" and home.is_private(root):
    from turnpost.core import waiter

    waiter.main(root)
