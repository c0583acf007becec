"""SessionStart: finds or makes the agent of this session and relinks it."""

import os

from turnpost.core import home

if os.environ.get("CLAUDE_CODE_ENTRYPOINT") == "cli":
    from turnpost.core import guard

    guard.run(home.home(), "", "at_start")
