"""The waiter (asyncRewake, armed by SessionStart, UserPromptSubmit and Stop): blocks until a message lands, then wakes the idle agent."""

import os
import time

from turnpost.core import home

TURN_BEGINS = 0.5
"""Seconds a waiter armed by a prompt leaves to the model request of its turn: loading it all at once holds that back."""

if os.environ.get("CLAUDE_CODE_ENTRYPOINT") == "cli":
    begun = os.read(0, 1 << 16)
    # Only a hint: that a message speaks of the event costs its waiter half a second, and nobody a message.
    if b'"UserPromptSubmit"' in begun:
        time.sleep(TURN_BEGINS)
    from turnpost.core import waiter

    waiter.main(home.home(), begun)
