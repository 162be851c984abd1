"""Failures that end a command with one line on standard error, never with a stack trace."""

from __future__ import annotations


class CommandError(Exception):
    """The command failed: exit status 1. The text is one sentence for the operator."""


class UsageError(Exception):
    """The arguments contradict each other: exit status 2."""


def quoted(text: str, points_max: int = 60) -> str:
    """Foreign text in quotes, shortened and escaped for a terminal."""
    short = text if len(text) <= points_max else text[: points_max - 1] + "…"
    return '"' + printable(short) + '"'


def printable(text: str) -> str:
    """The text with every character escaped that could steer a terminal or break a line."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape", "surrogatepass").decode()
        for character in text
    )
