"""Finds the line of a key in a TOML file, for messages. tomllib does not say it."""

from __future__ import annotations

import re
from collections.abc import Sequence

Path = Sequence[str | int]
_KEY = r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)"""
_DOTTED = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_DOTTED})\s*\]\]?")
_SETTING = re.compile(rf"\s*({_DOTTED})\s*=")


def named(path: Path) -> str:
    """A path for a sentence: `records[2].fields.title`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def line_of(text: str, path: Path) -> int:
    """The line of the longest beginning of the path that has one, from 1; 0 if nothing has. An integer in the path is
    the number, from 1, of a table in an array of tables."""
    table: tuple[str | int, ...] = ()
    counts: dict[str, int] = {}
    best, line = 0, 0
    for number, content in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(content):
            keys = _keys(header[2])
            if header[1] == "[[":
                counts[keys[0]] = counts.get(keys[0], 0) + 1
            table = (keys[0], counts[keys[0]], *keys[1:]) if keys[0] in counts else tuple(keys)
            here = table
        elif setting := _SETTING.match(content):
            here = (*table, *_keys(setting[1]))
        else:
            continue
        here = here[: len(path)]
        if here == tuple(path[: len(here)]) and len(here) > best:
            best, line = len(here), number
    return line


def _keys(dotted: str) -> list[str]:
    return [key[1:-1] if key[0] in "\"'" else key for key in re.findall(_KEY, dotted)]
