"""`turnpost doctor`: is everything there that delivers messages, and what is stuck?

`examine.examine` asks for everything. Each other module gathers facts of one kind and judges them by pure functions, which
the tests feed with broken ones: `claude_code`, `hooks`, `firing`, `spool`, `mail`, `service`. `deep` tries the installed
Claude Code itself in a laboratory.
"""
