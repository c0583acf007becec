"""Durable messages to Claude Code agents, delivered at turn boundaries.

Nothing is imported here: a hook with no work must start as fast as the bare interpreter.
"""

__version__ = "0.2.0"
