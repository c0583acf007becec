"""The waiter (asyncRewake, armed by SessionStart, UserPromptSubmit and Stop): blocks until a message lands, then wakes the idle agent."""

import os

from turnpost.core import home

if os.environ.get("CLAUDE_CODE_ENTRYPOINT") == "cli":
    from turnpost.core import waiter

    waiter.main(home.home())
