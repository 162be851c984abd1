"""Failures that end a command with one line on standard error, never with a stack trace."""

from __future__ import annotations


class CommandError(Exception):
    """The command could not do its work: exit status 1. The text is one sentence for the operator."""


class UsageError(Exception):
    """The arguments make no sense together: exit status 2."""


def quoted(text: str, points_max: int = 60) -> str:
    """Somebody else's text, short and harmless to a terminal, in quotes."""
    short = text if len(text) <= points_max else text[: points_max - 1] + "…"
    return '"' + printable(short) + '"'


def printable(text: str) -> str:
    """The text with everything escaped that could steer a terminal or break a line."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape", "surrogatepass").decode()
        for character in text
    )
