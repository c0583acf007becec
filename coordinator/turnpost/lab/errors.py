"""What can go wrong in the laboratory, each as one line for a person."""

from __future__ import annotations


class LabError(Exception):
    """The laboratory could not do what it was asked; `str(error)` is one line."""


class LabTimeout(LabError):
    """Something expected did not happen within its time."""


class FetchError(LabError):
    """Claude Code could not be had: not on PATH, and not from npm."""
