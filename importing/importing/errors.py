"""An import that can't be done, and foreign texts in messages."""

from __future__ import annotations


class ImportFault(Exception):  # noqa: N818 - the file's or the mapping's fault
    """A file or a mapping can't be used, or the import can't go on. The text is one sentence for a person."""


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
