"""SessionStart: finds or makes the agent of this session and relinks it."""

import os

from turnpost.core import home

root = home.home()
if os.environ.get("CLAUDE_CODE_ENTRYPOINT") == "cli" and home.is_private(root):
    from turnpost.core import guard

    guard.run(root, "", "at_start")
