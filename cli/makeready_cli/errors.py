"""Failures that end a command with one line on standard error, never with a stack trace."""

from __future__ import annotations

from importing.errors import printable, quoted

__all__ = ["CommandError", "UsageError", "printable", "quoted"]


class CommandError(Exception):
    """The command failed: exit status 1. The text is one sentence for the operator."""


class UsageError(Exception):
    """The arguments contradict each other: exit status 2."""
